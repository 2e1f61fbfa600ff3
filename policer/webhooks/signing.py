"""Signatures of messages, as the Standard Webhooks specification 1.0.0 has them ("v1"); pure."""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final

PREFIX: Final = "whsec_"
KEY_BYTES: Final = 32
"""The specification asks for 24 to 64."""
LEAST, MOST = 24, 64


def new_secret() -> str:
    """Return a new secret, as receivers take it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """Return the key of a secret.

    Raises:
        ValueError: it is none.
    """
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("no base64") from None
    if not secret.startswith(PREFIX) or not LEAST <= len(key) <= MOST:
        raise ValueError(f"not {PREFIX} and {LEAST} to {MOST} bytes in base64")
    return key


def signed(secret: str, message: str, at: int, body: bytes) -> Mapping[str, str]:
    """Return the headers of a message.

    Args:
        secret: the webhook's.
        message: its id, the same in every attempt; it holds no full stop.
        at: when the attempt is made, seconds since 1970.
        body: what is sent.
    """
    content = f"{message}.{at}.".encode() + body
    mark = base64.b64encode(hmac.digest(key_of(secret), content, hashlib.sha256)).decode()
    return {
        "webhook-id": message,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{mark}",
    }
