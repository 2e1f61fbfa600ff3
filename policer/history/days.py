"""How a contract was kept on one day (UTC): what SLA reports add up; pure."""

from datetime import UTC, datetime
from typing import Any

from policer.store import DayRow, Kept

DAY_S = 86_400


class DayAccount:
    """The sums of one contract and day."""

    __slots__ = ("_guarantee_pps", "_sums", "changed")

    def __init__(self) -> None:
        self._guarantee_pps = 0.0
        self._sums = (0.0,) * len(Kept._fields)
        self.changed = False
        """Since its row was made."""

    def add(self, guarantee_pps: float, sums: tuple[float, ...]) -> None:
        """Add what was seen in a stretch of the day, in the order of `Kept`."""
        self._guarantee_pps = guarantee_pps
        self._sums = tuple(map(sum, zip(self._sums, sums, strict=True)))
        self.changed = True

    def row(self, host: str, vr: str, day: int, part: int) -> DayRow:
        """Return the sums, of a day counted from 1970 on."""
        self.changed = False
        of_day = datetime.fromtimestamp(day * DAY_S, UTC).date()
        sums: dict[str, Any] = dict(zip(Kept._fields, self._sums, strict=True))
        sums["punishments"] = round(sums["punishments"])
        return DayRow(host, vr, of_day, part, self._guarantee_pps, **sums)
