"""Message keys: the controllers' master key, and the keys derived from it for each host.

A host's file holds its number and its own keys, so that it cannot pose as another host or as the
controller. Two are for messages with the controller, the others for messages with other hosts.
xco/core/common/keys.c reads the same files; docs/decisions/0062 and 0077 give the reasons.
"""

import hashlib
import os
import secrets
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xco.errors import ConfigError

KEY_BYTES: Final = 32
HOST_FILE_BYTES: Final = 72
"""Of a file without keys for other hosts."""

_MAGIC = b"XCOH"
_ALONE, _WITH_PEERS = 1, 2
"""Versions of a host's file."""
_HOST = struct.Struct("<4sHH32s32s")
_PEERS = struct.Struct("<32sH6x")
_HOST_CONTEXT, _ROOT_CONTEXT, _PEER_CONTEXT = b"xcohost_", b"xcoroot_", b"xcopeer_"


@dataclass(frozen=True, slots=True)
class PeerKeys:
    """The keys of one host's messages with other hosts."""

    root: bytes
    """The keys of messages to this host are derived from it."""
    to: tuple[bytes, ...]
    """Key of messages to each host, by number."""


@dataclass(frozen=True, slots=True)
class HostKeys:
    """The keys of one host's messages."""

    host: int
    up: bytes
    """Host to controller."""
    down: bytes
    """Controller to host."""
    peers: PeerKeys | None = None


def derive(master: bytes, host: int, hosts: int = 0) -> HostKeys:
    """Return the keys of a host, as libsodium's crypto_kdf derives them.

    Args:
        master: the master key.
        host: its number.
        hosts: number of hosts that it can write to; 0: it writes to the controller only.
    """
    up, down = (_subkey(master, 2 * host + way, _HOST_CONTEXT) for way in (0, 1))
    if hosts == 0:
        return HostKeys(host, up, down)
    to = tuple(peer_key(_root(master, other), host) for other in range(hosts))
    return HostKeys(host, up, down, PeerKeys(_root(master, host), to))


def peer_key(root: bytes, sender: int) -> bytes:
    """Return the key of a host's messages to the one that has this root."""
    return _subkey(root, sender, _PEER_CONTEXT)


def _root(master: bytes, host: int) -> bytes:
    return _subkey(master, host, _ROOT_CONTEXT)


def read_master(path: Path) -> bytes:
    """Read the master key, a file of exactly 32 bytes.

    Raises:
        ConfigError: the file cannot be read, or holds no such key.
    """
    fix = f"copy it from another controller, or make one: xco key make {path}"
    content = _content(path, fix)
    if content.startswith(_MAGIC) and len(content) >= HOST_FILE_BYTES:
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
    keys = _parsed(content)
    if keys is None:
        raise ConfigError(str(path), "", f"{len(content)} bytes, no key of a host", fix)
    if keys.host != host:
        problem = f"is the key of host number {keys.host}; {name} is number {host} of the topology"
        raise ConfigError(str(path), "", problem, fix)
    return keys


def _parsed(content: bytes) -> HostKeys | None:
    head, rest = content[:HOST_FILE_BYTES], content[HOST_FILE_BYTES:]
    if len(head) < HOST_FILE_BYTES:
        return None
    magic, version, number, up, down = _HOST.unpack(head)
    if magic != _MAGIC or version != (_WITH_PEERS if rest else _ALONE):
        return None
    if not rest:
        return HostKeys(number, up, down)
    peers = _parsed_peers(rest)
    return HostKeys(number, up, down, peers) if peers else None


def _parsed_peers(rest: bytes) -> PeerKeys | None:
    if len(rest) < _PEERS.size:
        return None
    root, count = _PEERS.unpack_from(rest)
    if count == 0 or len(rest) != _PEERS.size + count * KEY_BYTES:
        return None
    at = range(_PEERS.size, len(rest), KEY_BYTES)
    return PeerKeys(root, tuple(rest[start : start + KEY_BYTES] for start in at))


def host_file(keys: HostKeys) -> bytes:
    """Return the content of a host's key file."""
    version = _WITH_PEERS if keys.peers else _ALONE
    head = _HOST.pack(_MAGIC, version, keys.host, keys.up, keys.down)
    if keys.peers is None:
        return head
    return head + _PEERS.pack(keys.peers.root, len(keys.peers.to)) + b"".join(keys.peers.to)


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


def _subkey(key: bytes, number: int, context: bytes) -> bytes:
    salt = number.to_bytes(8, "little")
    return hashlib.blake2b(digest_size=KEY_BYTES, key=key, salt=salt, person=context).digest()


def _content(path: Path, fix: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(str(path), "", error.strerror or "cannot be read", fix) from error
