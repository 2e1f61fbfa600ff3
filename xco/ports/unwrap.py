"""Extends counters of 32 bits to 64: a wrapped counter continues, a restarted one begins again."""

from typing import Final

_SPAN: Final = 2**32
_HALF: Final = 2**31


class Unwrapped:
    """One counter of 32 bits, read more often than it wraps."""

    __slots__ = ("_high", "_last")

    def __init__(self) -> None:
        self._last = self._high = 0

    def value(self, raw: int) -> int:
        """Return the whole count.

        A counter that falls by more than half of its range has wrapped; one that falls by less was
        restarted, and so is the count.

        Args:
            raw: the counter as read; only its lowest 32 bits count, so that sums may be passed.
        """
        raw %= _SPAN
        if raw < self._last:
            self._high = self._high + _SPAN if self._last - raw > _HALF else 0
        self._last = raw
        return self._high + raw
