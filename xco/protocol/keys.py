"""Message keys: the controllers' master key, and two keys derived from it for each host.

A host's file holds its number and its own two keys, so that it cannot pose as another host or as
the controller. xco/core/common/keys.c reads the same files; docs/decisions/0062 gives the reasons.
"""

import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xco.errors import ConfigError

KEY_BYTES: Final = 32
HOST_FILE_BYTES: Final = 72

_HEAD = b"XCOH\x01\x00"
_CONTEXT = b"xcohost_"


@dataclass(frozen=True, slots=True)
class HostKeys:
    """The keys of one host's messages."""

    host: int
    up: bytes
    """Host to controller."""
    down: bytes
    """Controller to host."""


def derive(master: bytes, host: int) -> HostKeys:
    """Return the keys of a host, as libsodium's crypto_kdf derives them."""
    return HostKeys(host, _subkey(master, 2 * host), _subkey(master, 2 * host + 1))


def read_master(path: Path) -> bytes:
    """Read the master key, a file of exactly 32 bytes.

    Raises:
        ConfigError: the file cannot be read, or holds no such key.
    """
    fix = f"copy it from another controller, or make one: xco key make {path}"
    content = _content(path, fix)
    if len(content) == HOST_FILE_BYTES and content.startswith(_HEAD):
        raise ConfigError(str(path), "", "is the key of a host, not the master key", fix)
    if len(content) != KEY_BYTES:
        raise ConfigError(str(path), "", f"{len(content)} bytes, not {KEY_BYTES}", fix)
    return content


def read_host_keys(path: Path, host: int, name: str) -> HostKeys:
    """Read the key file of a host.

    Raises:
        ConfigError: the file cannot be read, or belongs to another host.
    """
    fix = f"make it on a controller: xco key host MASTER {name} --topology FILE --out {path.name}"
    content = _content(path, fix)
    if len(content) == KEY_BYTES:
        problem = "is a master key, which only controllers may hold"
        raise ConfigError(str(path), "", problem, fix)
    if len(content) != HOST_FILE_BYTES or not content.startswith(_HEAD):
        raise ConfigError(str(path), "", f"{len(content)} bytes, no key of a host", fix)
    number = int.from_bytes(content[6:8], "little")
    if number != host:
        problem = f"is the key of host number {number}; {name} is number {host} of the topology"
        raise ConfigError(str(path), "", problem, fix)
    return HostKeys(host, content[8:40], content[40:72])


def host_file(keys: HostKeys) -> bytes:
    """Return the content of a host's key file."""
    return _HEAD + keys.host.to_bytes(2, "little") + keys.up + keys.down


def new_master() -> bytes:
    """Return a random master key."""
    return secrets.token_bytes(KEY_BYTES)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; refuse to replace an existing one.

    Raises:
        ConfigError: it exists, or cannot be created.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
    except FileExistsError as error:
        fix = "give another name, or remove the old key first"
        raise ConfigError(str(path), "", "already exists", fix) from error
    except OSError as error:
        fix = "give a file that you may write"
        raise ConfigError(str(path), "", error.strerror or "cannot be made", fix) from error


def _subkey(master: bytes, number: int) -> bytes:
    salt = number.to_bytes(8, "little")
    return hashlib.blake2b(digest_size=KEY_BYTES, key=master, salt=salt, person=_CONTEXT).digest()


def _content(path: Path, fix: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(str(path), "", error.strerror or "cannot be read", fix) from error
