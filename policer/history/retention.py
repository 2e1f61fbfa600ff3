"""How long what was seen is kept; pure."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import NamedTuple

from policer.history.chunks import MINUTE_S, SECOND_S

DAY_S = 86_400


class Oldest(NamedTuple):
    """What is kept of the history: all from these instants on, seconds since 1970."""

    second: float
    minute: float
    day: date
    """Of which there are reports."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long; nothing is kept of what is 0."""

    seconds_s: int = 3600
    """Seconds that each second is kept."""
    minutes_days: int = 30
    """Days that each minute is kept."""
    report_months: int = 25
    """Months of which there are reports, this one included."""

    def keeps(self, span: int) -> bool:
        """Whether points of so many seconds are kept at all."""
        return self.length_s(span) > 0

    def length_s(self, span: int) -> int:
        """Return how long points of so many seconds are kept, in seconds."""
        return {SECOND_S: self.seconds_s, MINUTE_S: DAY_S * self.minutes_days}[span]

    def oldest(self, wall: float) -> Oldest:
        """Return what is kept at a time of day, in seconds since 1970."""
        today = datetime.fromtimestamp(wall, UTC)
        first = month_begin(12 * today.year + today.month - self.report_months)
        return Oldest(wall - self.length_s(SECOND_S), wall - self.length_s(MINUTE_S), first)


def month_begin(number: int) -> date:
    """Return the first day of a month, counted so that 12 x year + month - 1 is its number."""
    return date(number // 12, number % 12 + 1, 1)
