"""Points of a router over some time, as coarse as is asked for; so many and no more."""

from collections.abc import Iterator
from typing import Final

import msgspec

from policer.errors import Invalid, Problem, StoreGone
from policer.history.chunks import MINUTE_S, POINTS, SECOND_S, begin_of
from policer.history.packing import unpacked
from policer.history.point import Point, merged
from policer.history.retention import Retention
from policer.store.history.chunks import History

MOST_POINTS: Final = 1500
ENOUGH: Final = 720
"""Points of an answer where no step is given."""
STEPS: Final = (1, 2, 5, 10, 30, 60, 300, 900, 3600, 21_600, 86_400)
"""Lengths of points to choose from, seconds."""
AT_ONCE: Final = 100
"""Times of chunks that are read together."""
MOST_ROWS: Final = 100 * AT_ONCE
"""Rows that are read together, several leaders' chunks of one time included."""


class Plan(msgspec.Struct, frozen=True):
    """What is read; seconds since 1970."""

    begin: int
    """A multiple of the step."""
    end: int
    step_s: int

    @property
    def span(self) -> int:
        """Length of the points that are stored."""
        return MINUTE_S if self.step_s >= MINUTE_S else SECOND_S


def plan(begin: float, end: float, step_s: int | None, now: float, kept: Retention) -> Plan:
    """Return how a stretch of time is read.

    Args:
        begin: seconds since 1970.
        end: after that.
        step_s: length of a point; None chooses one.
        now: seconds since 1970.
        kept: how long what is kept.

    Raises:
        Invalid: there would be too many points, or none of this length are kept.
    """
    step = step_s or _step(begin, end, now, kept)
    if step > MINUTE_S and step % MINUTE_S:
        raise _no_step(step, "from a minute on, it must be whole minutes", "give 60, 300 or 3600")
    if (end - begin) / step > MOST_POINTS:
        fix = f"give {_step(begin, end, now, kept)} or more, or ask for less time"
        raise _no_step(step, f"there would be more than {MOST_POINTS} points", fix)
    return Plan(int(begin) - int(begin) % step, int(end), step)


def read(history: History, host: str, vr: str, wanted: Plan) -> dict[int, Point]:
    """Return a router's points by when they begin; those without data are not in.

    Raises:
        StoreError: the store cannot be read, or what is in it cannot.
    """
    found: dict[int, Point] = {}
    for series in _series(history, host, vr, wanted):
        found = merged((found, series), wanted.step_s)
    return found


def _series(history: History, host: str, vr: str, wanted: Plan) -> Iterator[dict[int, Point]]:
    span = wanted.span
    length = POINTS[span] * span
    for begin in range(begin_of(span, wanted.begin), wanted.end, AT_ONCE * length):
        end = min(wanted.end, begin + AT_ONCE * length)
        for at, raw in history.chunks(host, span, begin, end, MOST_ROWS):
            try:
                points = unpacked(raw, vr, POINTS[span])
            except ValueError as error:
                raise StoreGone(f"the history of {host} at {at}: {error}") from error
            instants = {at + span * place: point for place, point in points.items()}
            yield {t: p for t, p in instants.items() if wanted.begin <= t < wanted.end}


def _step(begin: float, end: float, now: float, kept: Retention) -> int:
    least = (end - begin) / ENOUGH
    if begin < now - kept.seconds_s:
        least = max(least, MINUTE_S)
    return next((step for step in STEPS if step >= least), STEPS[-1])


def _no_step(step: int, problem: str, fix: str) -> Invalid:
    return Invalid([Problem("step", f"{step} s: {problem}", fix)])
