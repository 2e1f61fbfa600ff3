"""Reads a loop's statistics: a mapped file of counters under a seqlock.

xco/core/common/stats.h has the layout.
"""

import mmap
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from xco.errors import ControllerError

_MAGIC = b"XCOSTAT1"
_HEADER = struct.Struct("=8sIIIIQQQQQ")
_NAME_BYTES = 32
_PATIENCE_S = 2.0
"""A writer that holds its lock for so long counts as dead: a living one may lose its CPU."""
_AT_ONCE, _PAUSE_S = 100, 0.001
"""Attempts to read without a pause, since a write takes microseconds; the pause after those."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A loop's statistics at one instant.

    `updated_ns` is CLOCK_MONOTONIC of its last write; `rows` are one a host or one a V2V flow.
    """

    pid: int
    updated_ns: int
    values: dict[str, int]
    rows: tuple[dict[str, int], ...]

    def age_ns(self, now_ns: int) -> int:
        """Return the age of the loop's last write, at an instant of the monotonic clock."""
        return max(0, now_ns - self.updated_ns)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Tells two states of a file of statistics apart without reading it whole."""

    pid: int
    sequence: int
    updated_ns: int


def read_stamp(path: Path) -> Stamp:
    """Return the stamp of a statistics file.

    Raises:
        ControllerError: the file is missing or malformed.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
    except OSError as error:
        raise ControllerError(
            str(path), f"no statistics: {error}", "is the loop running?"
        ) from error
    if len(head) < _HEADER.size or head[:8] != _MAGIC:
        raise ControllerError(str(path), "not a file of statistics", "name another one")
    _, _, _, _, pid, sequence, updated_ns, *_ = _HEADER.unpack(head)
    return Stamp(pid, sequence, updated_ns)


def read_statistics(
    path: Path,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Snapshot:
    """Return a consistent snapshot of a statistics file, once its writer is not writing.

    Raises:
        ControllerError: the file is missing or malformed, or its writer died while writing.
    """
    try:
        with path.open("rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise ControllerError(
            str(path), f"no statistics: {error}", "is the loop running?"
        ) from error
    with mapping:
        return _parsed(path, _consistent(path, mapping, clock, sleep))


def _consistent(
    path: Path,
    mapping: mmap.mmap,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> bytes:
    """Return the bytes of the file, read while it was not written."""
    if len(mapping) < _HEADER.size or mapping[:8] != _MAGIC:
        raise ControllerError(str(path), "not a file of statistics", "name another one")
    deadline, attempts, late = clock() + _PATIENCE_S, count(), False
    while (image := _whole(mapping)) is None:
        if late:
            problem = "its writer ended during a write"
            raise ControllerError(str(path), problem, "start the loop again")
        sleep(0 if next(attempts) < _AT_ONCE else _PAUSE_S)
        late = clock() >= deadline  # one more attempt: this program may have lost its CPU, too
    return image


def _whole(mapping: mmap.mmap) -> bytes | None:
    """Return the bytes of the file if its sequence was even and stayed the same meanwhile."""
    before = _sequence(mapping)
    image = mapping[:]
    return image if before % 2 == 0 and _sequence(mapping) == before else None


def _sequence(mapping: mmap.mmap) -> int:
    return int(_HEADER.unpack_from(mapping)[5])


def _parsed(path: Path, image: bytes) -> Snapshot:
    _, fields, columns, rows, pid, _, updated_ns, used, *_ = _HEADER.unpack_from(image)
    values_at = _HEADER.size + (fields + columns) * _NAME_BYTES
    if len(image) != values_at + (fields + rows * columns) * 8 or used > rows:
        raise ControllerError(str(path), "cut short", "start the loop again")
    names = [_name(image, _HEADER.size + index * _NAME_BYTES) for index in range(fields + columns)]
    numbers = struct.unpack_from(f"={fields + used * columns}Q", image, values_at)
    values = dict(zip(names[:fields], numbers[:fields], strict=True))
    table = tuple(
        dict(zip(names[fields:], numbers[start : start + columns], strict=True))
        for start in range(fields, fields + used * columns, columns)
    )
    return Snapshot(pid, updated_ns, values, table)


def _name(image: bytes, at: int) -> str:
    return image[at : at + _NAME_BYTES].rstrip(b"\0").decode("ascii", "replace")
