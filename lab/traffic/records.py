"""Reads the file of a capture: one record for each packet, in order of arrival."""

import ipaddress
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

RECORD: Final = struct.Struct("=QII")
"""As written by lab/traffic/capture.c: 16 bytes."""
_CHUNK: Final = RECORD.size * 4096


class Arrival(NamedTuple):
    """One packet, with the kernel's timestamp."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    source: str
    """IPv4 address."""
    length: int
    """Bytes of the frame, without its checksum."""
    protocol: int
    """IP protocol: 6 TCP, 17 UDP, 1 ICMP."""


def read(path: Path) -> Iterator[Arrival]:
    """Yield the arrivals of a capture; an incomplete record ends them.

    Raises:
        OSError: the file cannot be read.
    """
    names: dict[int, str] = {}
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            whole = len(chunk) - len(chunk) % RECORD.size
            for at_ns, source, packed in RECORD.iter_unpack(chunk[:whole]):
                name = names.get(source) or names.setdefault(source, _name(source))
                yield Arrival(at_ns, name, packed & 0xFFFFFF, packed >> 24)


def _name(source: int) -> str:
    return str(ipaddress.IPv4Address(source))
