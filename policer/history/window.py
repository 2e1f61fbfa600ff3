"""Which part of the history contracts are held against: its seconds, or its minutes; pure."""

from typing import Final, NamedTuple

from policer.errors import Invalid, Problem
from policer.history.chunks import MINUTE_S, SECOND_S
from policer.history.retention import DAY_S, Retention

LONGEST_REPLAY_S: Final = 400 * DAY_S
"""No minute is kept for longer, whatever the settings."""


class Window(NamedTuple):
    """What is read; seconds since 1970."""

    begin: int
    end: int
    span: int
    """Length of a point: of a second, or of a minute."""


def window(length_s: int, now: float, kept: Retention) -> Window:
    """Return what is read of the time until now: seconds where they are kept, else minutes.

    Args:
        length_s: how far back.
        now: seconds since 1970.
        kept: how long what is kept.

    Raises:
        Invalid: history of so long ago is not kept.
    """
    span = SECOND_S if length_s <= kept.length_s(SECOND_S) else MINUTE_S
    if length_s > kept.length_s(span):
        raise Invalid([_too_long(length_s, kept)])
    end = int(now) - int(now) % span
    return Window(end - length_s + length_s % span, end, span)


def _too_long(length_s: int, kept: Retention) -> Problem:
    most = max(kept.length_s(SECOND_S), kept.length_s(MINUTE_S))
    if not most:
        fix = "set history.minutes_days in the policer's settings, and let it record"
        return Problem("replay_s", "this policer keeps no history", fix)
    problem = f"{length_s} s: history is kept for {most} s ({most / DAY_S:.3g} days)"
    return Problem("replay_s", problem, f"give at most {most}")
