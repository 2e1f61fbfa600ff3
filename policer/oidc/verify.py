"""Verifies tokens that an issuer has signed; pure: the keys and the time are parameters.

All that is cryptography or a format is the library's (joserfc). Decided here is what is accepted:
asymmetric algorithms alone, keys that the issuer has published for signatures, and the claims of
RFC 7519, section 4.1, as RFC 8725 wants them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from joserfc import jwk, jwt
from joserfc.errors import (
    BadSignatureError,
    ClaimError,
    ExpiredTokenError,
    JoseError,
    UnsupportedAlgorithmError,
)
from joserfc.jws import JWSRegistry
from joserfc.util import base64_to_int

from policer.errors import Unauthenticated

MOST_KEYS = 100
"""An issuer publishes a handful."""
RSA_BITS = (2048, 8192)
"""Shorter keys are weak (RFC 7518, section 3.3); longer ones take long."""
LAST_INSTANT = 253402300799
"""The last second of the year 9999."""
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""What a token may call itself (RFC 8725, section 3.11): a logout token is none."""
_WORDS: Final = {
    "aud": "this token is for another audience",
    "iat": "this token was issued in the future: compare the clocks",
    "iss": "this token is of another issuer",
    "nbf": "this token is not valid yet: compare the clocks",
}


class UnknownKey(Exception):  # noqa: N818
    """A token names a key that the issuer had not published when it was last asked."""


class NamedKey(NamedTuple):
    """A key of an issuer's."""

    kid: str | None
    key: jwk.Key


class Registry(JWSRegistry):
    """What the library takes of a token; headers that are unknown mean nothing (RFC 7515, 4)."""

    max_header_length = 4096
    max_payload_length = 16 * 1024


class Verifier:
    """What tokens must fulfil."""

    def __init__(
        self, issuer: str, audience: str, algorithms: Sequence[str], leeway_s: int
    ) -> None:
        self._algorithms, self._leeway = algorithms, leeway_s
        self._claims: dict[str, jwt.ClaimsOption] = {
            "iss": {"essential": True, "value": issuer},
            "aud": {"essential": True, "value": audience},
            "sub": {"essential": True},
            "exp": {"essential": True},
        }
        self._registry = Registry(algorithms=algorithms, strict_check_header=False)

    def claims(self, token: str, keys: Sequence[NamedKey], now: float) -> dict[str, Any]:
        """Return the claims of a token.

        Args:
            token: as it was shown.
            keys: of the issuer.
            now: seconds since 1970.

        Raises:
            Unauthenticated: it is none, or not for here and now; says why.
            UnknownKey: its key is not among these.
        """
        try:
            return self._checked(token, keys, int(now))
        except (UnknownKey, Unauthenticated):
            raise
        except JoseError as error:
            raise Unauthenticated(self._said(error)) from None
        except Exception:  # noqa: BLE001  the one firewall: the text is anybody's
            # Its words may have the token in them, and are not passed on.
            raise Unauthenticated("this token cannot be read") from None

    def _checked(self, token: str, keys: Sequence[NamedKey], now: int) -> dict[str, Any]:
        find = _finder(keys)
        read = jwt.decode(token, find, registry=self._registry)
        kind = read.header.get("typ", "jwt")
        if not isinstance(kind, str) or kind.lower() not in _TYPES:
            raise Unauthenticated("this is another kind of token than for access")
        jwt.JWTClaimsRegistry(now=now, leeway=self._leeway, **self._claims).validate(read.claims)
        if read.claims["exp"] > LAST_INSTANT:
            raise Unauthenticated("this token has no end that a calendar knows")
        return read.claims

    def _said(self, error: JoseError) -> str:
        """Return why a token is not taken; nothing of what is in it."""
        if isinstance(error, ExpiredTokenError):
            return "this token has expired"
        if isinstance(error, ClaimError):
            known = error.claim if error.claim in {*_WORDS, *self._claims} else "a claim"
            return _WORDS.get(error.claim, f"{known} in this token is missing or wrong")
        if isinstance(error, UnsupportedAlgorithmError):
            return f"this token is signed by none of {', '.join(self._algorithms)}"
        if isinstance(error, BadSignatureError):
            return "this token has a wrong signature"
        return "this token cannot be read"


def _finder(keys: Sequence[NamedKey]) -> Callable[[Any], jwk.Key]:
    def find(signed: Any) -> jwk.Key:
        header = signed.headers()
        kid, algorithm = header.get("kid"), JWSRegistry.algorithms[header["alg"]]
        named = [one for one in keys if one.kid == kid or kid is None]
        fitting = [one.key for one in named if _fits(one.key, algorithm)]
        if not fitting or (kid is None and len(fitting) > 1):
            raise UnknownKey
        return fitting[0]

    return find


def _fits(key: jwk.Key, algorithm: Any) -> bool:
    try:
        algorithm.check_key(key)
    except JoseError:
        return False
    return True


def usable_keys(raw: bytes) -> tuple[NamedKey, ...]:
    """Return the keys for signatures in a JWK set (RFC 7517).

    What is of no use here is left out: symmetric and private keys, keys for encryption, and kinds
    that the library does not know.

    Raises:
        ValueError: it is no such set, or has no such key.
    """
    try:
        found = msgspec.json.decode(raw, type=_KeySet).keys
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"no set of keys: {error}") from None
    keys = tuple(_usable(found[:MOST_KEYS]))
    if not keys:
        raise ValueError("it has no key for signatures that is of use here")
    return keys


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


def _usable(found: Sequence[dict[str, Any]]) -> Iterator[NamedKey]:
    for one in found:
        if one.get("kty") not in {"RSA", "EC", "OKP"} or "d" in one:
            continue
        if one.get("use", "sig") != "sig" or "verify" not in one.get("key_ops", ["verify"]):
            continue
        try:
            if one["kty"] == "RSA" and not _strong(one):
                continue
            key = jwk.import_key(one)
            key.check_use("sig")
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        kid = one.get("kid")
        yield NamedKey(kid if isinstance(kid, str) else None, key)


def _strong(one: dict[str, Any]) -> bool:
    least, most = RSA_BITS
    return least <= base64_to_int(one["n"]).bit_length() <= most
