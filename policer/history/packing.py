"""Points of all routers of a host as a few bytes, and back.

Each column is one number where it stays the same, else a list; seconds are in milliseconds, packets
whole. MessagePack (msgpack.org) and zlib (RFC 1950), both read by any language.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from policer.history.point import WIDTH, Point, point_of

VERSION: Final = 1
LEVEL: Final = 1
"""Higher levels take several times as long for a few percent."""
MOST_BYTES: Final = 16 << 20
"""Of what is unpacked: more is no chunk of ours."""
SCALES: Final = (1000, 1, 1, 1000, 1, 1, 1000, 1000)
_Column = int | list[int]


class _Chunk(msgspec.Struct, frozen=True, array_like=True):
    version: int
    routers: dict[str, msgspec.Raw]


def packed(routers: Mapping[str, Sequence[float]]) -> bytes:
    """Return the points of routers, each a row of `WIDTH` numbers after the other."""
    columns = {vr: msgspec.Raw(_encode(_columns(rows))) for vr, rows in routers.items()}
    return zlib.compress(_encode(_Chunk(VERSION, columns)), LEVEL)


def unpacked(raw: bytes, vr: str, length: int) -> dict[int, Point]:
    """Return the points of one router, by their place in the chunk; those without data are not in.

    Args:
        raw: what `packed` returned.
        vr: the router.
        length: points of a chunk.

    Raises:
        ValueError: the bytes are none of ours.
    """
    try:
        chunk = msgspec.msgpack.decode(_inflated(raw), type=_Chunk)
        if chunk.version != VERSION:
            raise ValueError(f"a chunk of version {chunk.version}")
        if vr not in chunk.routers:
            return {}
        columns = msgspec.msgpack.decode(chunk.routers[vr], type=list[_Column])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"a chunk of history cannot be read: {error}") from error
    return _points(columns, length)


def _inflated(raw: bytes) -> bytes:
    inflater = zlib.decompressobj()
    found = inflater.decompress(raw, MOST_BYTES)
    if not inflater.eof:
        raise ValueError("a chunk of history is too large, or cut off")
    return found


def _encode(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


def _columns(rows: Sequence[float]) -> list[_Column]:
    return [_column(rows[place::WIDTH], SCALES[place]) for place in range(WIDTH)]


def _column(values: Sequence[float], scale: int) -> _Column:
    if min(values) == max(values):
        return round(scale * values[0])
    return [round(scale * value) for value in values]


def _points(columns: list[_Column], length: int) -> dict[int, Point]:
    if len(columns) != WIDTH or any(isinstance(c, list) and len(c) != length for c in columns):
        raise ValueError("a chunk of history has other columns")
    whole = [c if isinstance(c, list) else [c] * length for c in columns]
    return {
        place: point_of([value / scale for value, scale in zip(row, SCALES, strict=True)])
        for place, row in enumerate(zip(*whole, strict=True))
        if row[0]
    }
