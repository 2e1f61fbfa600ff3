"""Knows who shows a token of the issuer that the settings name."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from policer.config.schema import OidcSection
from policer.contracts.reach import Reach
from policer.errors import NotGranted, SettingsError, Unauthenticated
from policer.oidc.fetch import FromFile, OverHttp
from policer.oidc.grants import Grant, granted, name_of, subject_of, values_of
from policer.oidc.keyring import FetchError, KeyRing
from policer.oidc.verify import UnknownKey, Verifier, usable_keys
from policer.rest.access.identity import Known
from policer.store import TokenRow


class Issuer:
    """Verifies tokens, and says what they may do."""

    def __init__(
        self,
        section: OidcSection,
        ring: KeyRing,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Take the settings, the issuer's keys, and the time of day in seconds since 1970."""
        assert section.issuer is not None
        assert section.audience is not None
        self._section, self._ring, self._wall = section, ring, wall
        self._name = section.issuer
        self._verifier = Verifier(
            section.issuer, section.audience, section.algorithms, section.leeway_s
        )
        self._grants = [
            Grant(one.value, one.scope, Reach(one.hosts, one.routers, one.tenants))
            for one in section.grants
        ]

    async def known(self, token: str) -> Known:
        """Return who shows a token, and until when it is one.

        Raises:
            Unauthenticated: it is none, or not for here and now.
            NotGranted: nothing is granted to whom it names.
            IssuerAway: the keys cannot be had.
        """
        claims = await self._claims(token)
        subject = subject_of(claims)
        if not subject:
            raise Unauthenticated("sub in this token is missing or wrong")
        grant = granted(self._grants, values_of(claims, self._section.claim))
        if grant is None:
            raise NotGranted(self._section.claim)
        ends = datetime.fromtimestamp(claims["exp"], UTC)
        row = TokenRow(
            id=f"{self._name}-{subject}",
            name=name_of(claims, self._section.name_claim, subject),
            scopes=(grant.scope,),
            created_at=datetime.fromtimestamp(self._wall(), UTC),
            created_by=self._name,
            expires_at=ends,
            reach=grant.reach,
        )
        return Known(row, ends + timedelta(seconds=self._section.leeway_s))

    async def _claims(self, token: str) -> dict[str, Any]:
        """Return a token's claims; a key that is not known may be new."""
        try:
            return self._verifier.claims(token, await self._ring.keys(), self._wall())
        except UnknownKey:
            keys = await self._ring.renewed()
        try:
            return self._verifier.claims(token, keys, self._wall())
        except UnknownKey:
            problem = "this token is signed with a key that its issuer has not published"
            raise Unauthenticated(problem) from None

    async def close(self) -> None:
        """Stop asking the issuer."""
        await self._ring.close()


def issuer_of(section: OidcSection, clock: Callable[[], float]) -> Issuer:
    """Return what verifies the tokens of the issuer that the settings name.

    Args:
        section: with an issuer.
        clock: monotonic.
    """
    assert section.issuer is not None
    return Issuer(section, KeyRing(section.issuer, keys_from(section), clock))


def keys_from(section: OidcSection) -> Callable[[], Awaitable[bytes]]:
    """Return what gets the issuer's keys."""
    assert section.issuer is not None
    if section.jwks_file is not None:
        return FromFile(Path(section.jwks_file))
    return OverHttp(section.issuer, section.jwks_url)


def keys_found(section: OidcSection) -> int:
    """Return how many of the issuer's keys are of use; for programs without a loop.

    Raises:
        SettingsError: they cannot be had.
    """
    where = "oidc.issuer" if section.jwks_file is None else "oidc.jwks_file"

    async def fetched() -> bytes:
        return await keys_from(section)()

    try:
        return len(usable_keys(asyncio.run(fetched())))
    except (FetchError, ValueError) as error:
        fix = "see whether it is there, and what it answers"
        raise SettingsError(where, str(error), fix) from None
