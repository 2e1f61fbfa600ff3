"""How a contract was kept on one day (UTC): what SLA reports add up; pure."""

from datetime import UTC, datetime

from policer.recording.guarantee import Owed
from policer.store import DayRow

DAY_S = 86_400


class DayAccount:
    """The sums of one contract and day."""

    __slots__ = (
        "_breach_s",
        "_data_s",
        "_delivered",
        "_missing",
        "_promised",
        "_punished_s",
        "_punishments",
        "_wanted",
        "changed",
    )

    def __init__(self) -> None:
        self._data_s = 0.0
        self._promised = self._wanted = self._delivered = self._missing = 0.0
        self._breach_s = self._punished_s = 0.0
        self._punishments = 0
        self.changed = False
        """Since its row was made."""

    def add(
        self, guarantee_pps: float, seconds: float, delivered_pps: float, owed: Owed, *, began: bool
    ) -> None:
        """Add what was seen in a stretch of the day.

        Args:
            guarantee_pps: what the contract promised.
            seconds: length of the stretch.
            delivered_pps: what the router forwarded.
            owed: how it stood against its guarantee.
            began: whether its punishment began.
        """
        self._data_s += seconds
        self._promised += guarantee_pps * seconds
        self._wanted += owed.wanted
        self._delivered += delivered_pps * seconds
        if owed.missing:
            self._missing += owed.missing
            self._breach_s += seconds
        self._punishments += began
        self.changed = True

    def punished(self, seconds: float) -> None:
        """Add seconds in which the router was punished."""
        self._punished_s += seconds

    def row(self, host: str, vr: str, day: int, part: int, follows: str = "") -> DayRow:
        """Return the sums, of a day counted from 1970 on; `follows` as of the row."""
        self.changed = False
        return DayRow(
            host=host,
            vr=vr,
            day=datetime.fromtimestamp(day * DAY_S, UTC).date(),
            part=part,
            follows=follows,
            data_s=self._data_s,
            promised=self._promised,
            wanted=self._wanted,
            delivered=self._delivered,
            missing=self._missing,
            breach_s=self._breach_s,
            punished_s=self._punished_s,
            punishments=self._punishments,
        )
