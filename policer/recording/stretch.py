"""Which time of day a tick is about; pure.

A tick's rates are of the period that ends with it. Hosts have clocks of their own: their time of
day is where the first tick was heard, and moves on with the host's clock, so that periods follow
each other without gaps and overlaps however unevenly messages arrive.
"""

import math
from collections.abc import Iterator

import msgspec

from policer.decide.telemetry import HostTelemetry

LONGEST_S = 60.0
"""No daemon has a longer period."""
ADRIFT_S = 2.0
"""Where a host's clock and the time of day differ by more, the host's time begins again."""
BACK_S = 60.0
"""A time of day that falls by more than this was wrong before."""


class HostTime(msgspec.Struct, frozen=True):
    """How a host's clock goes with the time of day."""

    offset: float | None = None
    """What its clock lacks of the seconds since 1970."""
    until: float = 0.0
    """The end of the latest period that was recorded, seconds since 1970."""


class Stretch(msgspec.Struct, frozen=True):
    """The time that a tick is about, in seconds since 1970."""

    begin: float
    end: float
    follows: bool
    """Whether it begins where the one before ended."""


def stretch_of(
    known: HostTime, before: HostTelemetry, after: HostTelemetry, wall: float
) -> tuple[HostTime, Stretch | None]:
    """Return the time that a message is about; None where that is unknown.

    Args:
        known: how the host's clock goes.
        before: the host as it was seen before the message.
        after: the same with it.
        wall: seconds since 1970.
    """
    offset = _offset(known, after, wall)
    end = after.host_clock + offset
    begin = max(known.until, end - _length(before, after))
    if begin >= end:
        return HostTime(offset, known.until), None
    follows = begin - known.until <= 1e-3 * (end - begin)
    return HostTime(offset, end), Stretch(begin, end, follows)


def went_back(known: HostTime, wall: float) -> bool:
    """Whether the time of day fell so far that what was recorded lies in the future."""
    return wall < known.until - BACK_S


def shares(stretch: Stretch) -> Iterator[tuple[int, float]]:
    """Yield the seconds that a stretch touches, and how much of each."""
    second = math.floor(stretch.begin)
    while second < stretch.end:
        yield second, min(stretch.end, second + 1.0) - max(stretch.begin, float(second))
        second += 1


def _offset(known: HostTime, after: HostTelemetry, wall: float) -> float:
    if known.offset is not None and abs(after.host_clock + known.offset - wall) <= ADRIFT_S:
        return known.offset
    return wall - after.host_clock


def _length(before: HostTelemetry, after: HostTelemetry) -> float:
    """Return the period's length: of several ticks since the message before, the last one's."""
    elapsed = after.host_clock - before.host_clock
    ticks = 1 if before.distrust else after.tick - before.tick
    if before.heard_at is None or ticks < 1:
        return 0.0
    return min(LONGEST_S, elapsed / ticks)
