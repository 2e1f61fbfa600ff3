"""The policer's own CURVE key pair, read from a file that only its owner can read."""

import stat
from dataclasses import dataclass, field
from pathlib import Path

import zmq
import zmq.auth

from policer.errors import SettingsError

WHERE = "link.secret_key_file"
"""The setting that names the file."""


@dataclass(frozen=True, slots=True)
class Keys:
    """A CURVE key pair in Z85, as `zmq.auth` reads it."""

    public: bytes
    secret: bytes = field(repr=False)


def load_keys(path: Path) -> Keys:
    """Read a key pair, as `xtc config keys` makes it (NAME.key_secret).

    Raises:
        SettingsError: the file does not exist, others can read it, or it holds no key pair.
    """
    _check_private(path)
    try:
        public, secret = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise SettingsError(WHERE, f"{path}: {error}") from error
    if secret is None:
        raise SettingsError(WHERE, f"{path} holds no secret key", "name the file NAME.key_secret")
    if _public_of(secret) != public:
        fix = "make another pair with `xtc config keys`"
        raise SettingsError(WHERE, f"{path}: its two keys do not match", fix)
    return Keys(public, secret)


def _check_private(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SettingsError(WHERE, f"{path}: {error.strerror}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(WHERE, f"{path} can be read by others", f"chmod 600 {path}")


def _public_of(secret: bytes) -> bytes | None:
    """Return the public key of a secret one; None if it is not a key."""
    try:
        return zmq.curve_public(secret)
    except (ValueError, zmq.ZMQError):
        return None
