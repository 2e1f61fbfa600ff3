"""Gets an issuer's keys: from where its discovery document says, an address, or a file."""

import asyncio
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx
import msgspec

from policer.config.file import is_safe_url
from policer.oidc.keyring import FetchError

FETCH_S: Final = 5.0
"""For all of it."""
MOST_BYTES: Final = 256 * 1024
DISCOVERY: Final = "/.well-known/openid-configuration"


class _Discovered(msgspec.Struct):
    """What is read of a discovery document (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    jwks_uri: str


class OverHttp:
    """Asks an issuer, over HTTPS; without redirects, proxies of the environment, or cookies."""

    def __init__(self, issuer: str, jwks_url: str | None) -> None:
        """Take the issuer, and where its keys are; None is discovered."""
        self._issuer, self._jwks_url = issuer, jwks_url
        self._trust = ssl.create_default_context()

    async def __call__(self) -> bytes:
        """Return its JWK set; raises FetchError."""
        try:
            async with (
                asyncio.timeout(FETCH_S),
                httpx.AsyncClient(verify=self._trust, trust_env=False, timeout=FETCH_S) as client,
            ):
                url = self._jwks_url or await self._discovered(client)
                return await _read(client, url)
        except TimeoutError:
            raise FetchError(f"no answer within {FETCH_S:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise FetchError(str(error) or type(error).__name__) from None

    async def _discovered(self, client: httpx.AsyncClient) -> str:
        """Return where the issuer says that its keys are; raises FetchError."""
        raw = await _read(client, self._issuer.rstrip("/") + DISCOVERY)
        try:
            found = msgspec.json.decode(raw, type=_Discovered)
        except (msgspec.DecodeError, RecursionError) as error:
            raise FetchError(f"its discovery document cannot be read: {error}") from None
        if found.issuer != self._issuer:
            raise FetchError(f"its discovery document is of {found.issuer[:200]!r}")
        if not is_safe_url(found.jwks_uri) or (
            _is_https(self._issuer) and not _is_https(found.jwks_uri)
        ):
            raise FetchError("its discovery document has no jwks_uri with https")
        return found.jwks_uri


class FromFile:
    """Reads a file at each call, so that a new key takes no restart."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __call__(self) -> bytes:
        """Return the JWK set; raises FetchError."""
        return await asyncio.to_thread(self.read)

    def read(self) -> bytes:
        """Return the JWK set; raises FetchError."""
        try:
            with self._path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise FetchError(f"{self._path}: {error.strerror}") from None
        if len(raw) > MOST_BYTES:
            raise FetchError(f"{self._path}: larger than {MOST_BYTES} bytes")
        return raw


async def _read(client: httpx.AsyncClient, url: str) -> bytes:
    """Return what is at an address; raises FetchError."""
    async with client.stream("GET", url) as answer:
        if answer.status_code != httpx.codes.OK:
            raise FetchError(f"{url} answered {answer.status_code}")
        raw = b""
        async for part in answer.aiter_bytes():
            raw += part
            if len(raw) > MOST_BYTES:
                raise FetchError(f"{url} answered more than {MOST_BYTES} bytes")
        return raw


def _is_https(url: str) -> bool:
    return urlsplit(url).scheme == "https"
