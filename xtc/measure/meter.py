"""Throughput Meter: reads /proc/net/dev and turns two snapshots into rates per interface."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple, Self

from common.units import MAX_BIT_RATE, BitsPerSecond, PacketsPerSecond, Seconds
from xtc.errors import MeterError

MAX_BYTES = 32 << 20
"""A larger file is no /proc/net/dev: 100,000 interfaces take 14 MB."""
LINE_RATE = 150e6
"""Packets/s of a 100 Gb/s port with the smallest frames; more is not a measurement."""
WRAP_RATE = 15e6
"""Packets/s up to which a falling 32-bit counter is taken to have wrapped (10 Gb/s)."""
WRAP_BITS = 10e9
"""The same in bits/s, for a falling 32-bit counter of bytes."""
_COLUMNS = 16
_counted = itemgetter(0, 1, 3, 8, 9, 11)
"""Selects the columns of `Counters`."""
_HEADER_LINES = 2


_Deltas = tuple[int, int, int, int]
"""Of packets received, dropped on the way in, sent, and dropped on the way out."""


class Counters(NamedTuple):
    """What the kernel has counted on one interface since it was created."""

    rx_bytes: int
    rx_packets: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_dropped: int


class Fault(Enum):
    """Why an interface has no rate in this interval."""

    APPEARED = "appeared"
    VANISHED = "vanished"
    RESET = "reset"
    IMPLAUSIBLE = "implausible"


class InterfaceRate(NamedTuple):
    """Rates of one interface, in packets/s; dropped packets are counted apart from sent ones.

    Bits are those of the packets that were not dropped, and None where the byte counter is
    implausible; packets are reported anyway.
    """

    rx: PacketsPerSecond
    rx_dropped: PacketsPerSecond
    tx: PacketsPerSecond
    tx_dropped: PacketsPerSecond
    rx_bits: BitsPerSecond | None
    tx_bits: BitsPerSecond | None


@dataclass(frozen=True)
class Snapshot:
    """The text of /proc/net/dev at an instant; parsed on demand."""

    at: Seconds
    raw: bytes = field(repr=False)

    @cached_property
    def counters(self) -> Mapping[str, Counters]:
        """Counters by interface name.

        Raises:
            MeterError: the text is not /proc/net/dev; the whole of it is rejected.
        """
        return parse(self.raw)


def parse(raw: bytes) -> dict[str, Counters]:
    """Read the text of /proc/net/dev (linux/net/core/net-procfs.c).

    Raises:
        MeterError: any line is not understood; nothing is guessed from the rest.
    """
    if len(raw) > MAX_BYTES:
        raise MeterError(0, f"{len(raw)} bytes are more than any host's interfaces fill")
    if not raw.endswith(b"\n"):
        raise MeterError(0, "the text ends within a line")
    lines = raw.split(b"\n")
    if not lines[0].startswith(b"Inter-|") or lines[1].count(b"|") != _HEADER_LINES:
        raise MeterError(1, "the two header lines are missing")
    counters: dict[str, Counters] = {}
    for number, line in enumerate(lines[_HEADER_LINES:-1], start=_HEADER_LINES + 1):
        name, values = _parse_line(number, line)
        if name in counters:
            raise MeterError(number, f"interface {name} occurs twice")
        counters[name] = values
    return counters


def _parse_line(number: int, line: bytes) -> tuple[str, Counters]:
    name, _, rest = line.partition(b":")
    columns = rest.split()
    if len(columns) != _COLUMNS:
        raise MeterError(number, f"{len(columns)} columns, not {_COLUMNS}")
    try:
        text = _text(name.strip())
        values = Counters._make(map(int, _counted(columns)))
    except ValueError:
        raise MeterError(number, "a column is no number") from None
    if not text or min(values) < 0 or max(values) >= 1 << 64:
        raise MeterError(number, "a counter is out of range, or the name is empty")
    return text, values


def _text(name: bytes) -> str:
    """Return a name of any bytes; one that is no text as what no other interface can be called.

    Odd names, or two that look alike, must not blind every router of the host.
    """
    try:
        return name.decode()
    except UnicodeDecodeError:
        return "/" + name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def rate(before: Counters, after: Counters, dt: Seconds) -> InterfaceRate | Fault:
    """Return the rates between two readings of one interface, never negative.

    A counter that fell has wrapped if it was within reach of 2^32 at line rate; otherwise the
    interface was reset, and the interval is unusable.
    """
    deltas = (
        after.rx_packets - before.rx_packets,
        after.rx_dropped - before.rx_dropped,
        after.tx_packets - before.tx_packets,
        after.tx_dropped - before.tx_dropped,
    )
    if min(deltas) < 0 or max(deltas) > LINE_RATE * dt:
        unwrapped = _unwrapped(deltas, before, dt)
        if isinstance(unwrapped, Fault):
            return unwrapped
        deltas = unwrapped
    rx_bits = _bits(before.rx_bytes, after.rx_bytes, dt)
    tx_bits = _bits(before.tx_bytes, after.tx_bytes, dt)
    rx, rx_dropped, tx, tx_dropped = [PacketsPerSecond(delta / dt) for delta in deltas]
    return InterfaceRate(rx, rx_dropped, tx, tx_dropped, rx_bits, tx_bits)


def _unwrapped(deltas: _Deltas, before: Counters, dt: Seconds) -> _Deltas | Fault:
    """Return the counts, corrected for wrapped 32-bit counters; or what is wrong."""
    counted = []
    olds = before.rx_packets, before.rx_dropped, before.tx_packets, before.tx_dropped
    for old, delta in zip(olds, deltas, strict=True):
        passed = delta + (1 << 32) if delta < 0 else delta
        if delta < 0 and (old >= 1 << 32 or passed > WRAP_RATE * dt):
            return Fault.RESET
        if passed > LINE_RATE * dt:
            return Fault.IMPLAUSIBLE
        counted.append(passed)
    return counted[0], counted[1], counted[2], counted[3]


def _bits(old: int, new: int, dt: Seconds) -> BitsPerSecond | None:
    """Return the bit rate between two byte counts; None where it cannot be computed."""
    bits = 8 * (new - old)
    if bits < 0:
        bits += 8 << 32
        if old >= 1 << 32 or bits > WRAP_BITS * dt:
            return None
    return None if bits > MAX_BIT_RATE * dt else BitsPerSecond(bits / dt)


def rates(before: Snapshot, after: Snapshot) -> dict[str, InterfaceRate | Fault]:
    """Return rates for every interface of either snapshot.

    Raises:
        MeterError: either snapshot cannot be understood, or they have the same instant.
    """
    dt = Seconds(after.at - before.at)
    if dt <= 0:
        raise MeterError(0, "no time passed between two snapshots")
    old, new = before.counters, after.counters
    found: dict[str, InterfaceRate | Fault] = {}
    for name, counters in new.items():
        earlier = old.get(name)
        found[name] = Fault.APPEARED if earlier is None else rate(earlier, counters, dt)
    if old.keys() != new.keys():
        found.update((name, Fault.VANISHED) for name in old.keys() - new.keys())
    return found


class ProcNetDev:
    """/proc/net/dev, kept open, of this process or of a process in another network namespace."""

    def __init__(self, path: str = "/proc/self/net/dev") -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def read(self, now: Seconds) -> Snapshot:
        """Return a snapshot taken at the instant given.

        Raises:
            MeterError: the file cannot be read.
        """
        try:
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_RDONLY)
            os.lseek(self._fd, 0, os.SEEK_SET)
            return Snapshot(now, self._whole())
        except OSError as error:
            self.close()
            raise MeterError(0, f"{self._path} cannot be read: {error.strerror}") from error

    def _whole(self) -> bytes:
        parts = []
        while part := os.read(self._fd, 1 << 20):
            parts.append(part)
        return b"".join(parts)
