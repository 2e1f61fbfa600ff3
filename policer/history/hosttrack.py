"""What is seen of one host: seconds and minutes of its routers, and days of its contracts."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from policer.contract import Contract
from policer.fleet import HostLive
from policer.history.chunks import MINUTE_S, SECOND_S, Chunk, RawChunk, Values, begin_of
from policer.history.days import DAY_S, DayAccount
from policer.history.guarantee import Due, due, is_punished, owed_after
from policer.history.stretch import LONGEST_S, HostTime, Stretch, shares, stretch_of
from policer.sight import Sight
from policer.store import DayRow
from xtc.wire import Report

LATE_S = LONGEST_S + 5.0
"""No tick tells of what was longer ago."""
WRITE_EVERY_S = 60
"""How often what still grows is written: the minutes of this hour, and this day."""


class _Router(NamedTuple):
    """What is remembered of a router from tick to tick."""

    deficit: float = 0.0
    punished: bool = False


class HostTrack:
    """One host, as one recorder saw it."""

    def __init__(self, host: str, part: int, wall: float) -> None:
        self.host, self._part = host, part
        self.time = HostTime()
        self._seconds: dict[int, Chunk] = {}
        self._minutes: dict[int, Chunk] = {}
        self._days: dict[tuple[str, int], DayAccount] = {}
        self._routers: dict[str, _Router] = {}
        # Hosts take turns, so that no second has the work of all.
        self._write_at = wall + zlib.crc32(host.encode()) % WRITE_EVERY_S

    def heard(self, live: HostLive, sight: Sight, wall: float) -> None:
        """Take over a tick; `live` is the host before it."""
        self.time, stretch = stretch_of(self.time, live.sight, sight, wall)
        if stretch is None:
            return
        touched = [(self._chunk(self._seconds, SECOND_S, at), at, s) for at, s in shares(stretch)]
        before, self._routers = self._routers, {}
        for vr, report in sight.routers.items():
            terms = _terms(live, vr)
            self._routers[vr] = _Router(punished=terms.punished)
            if report.offered_pps is None or report.throughput_pps is None:
                continue
            values = self._judged(report, terms, stretch, before.get(vr))
            for chunk, at, seconds in touched:
                rows = chunk.rows(vr, contracted=terms.contract is not None)
                if rows is not None:
                    chunk.add(rows, at, values, seconds)

    def _judged(
        self, report: Report, terms: "_Terms", stretch: Stretch, before: "_Router | None"
    ) -> Values:
        """Return what each second of a tick is; the router's day takes over the whole of it."""
        offered, delivered = report.offered_pps or 0.0, report.throughput_pps or 0.0
        length = stretch.end - stretch.begin
        lacks = before.deficit if before is not None and stretch.follows else 0.0
        owed = owed_after(lacks, terms.due, length, offered, delivered)
        self._routers[report.vr] = _Router(owed.deficit, terms.punished)
        breach, punished = float(owed.missing > 0), float(terms.punished)
        if terms.contract is not None:
            promised = terms.contract.guarantee_pps
            began = terms.punished and before is not None and not before.punished
            packets = (promised * length, owed.wanted, delivered * length, owed.missing)
            sums = (length, *packets, breach * length, punished * length, float(began))
            day = report.vr, int(stretch.end // DAY_S)
            self._days.setdefault(day, DayAccount()).add(promised, sums)
        setpoint = report.setpoint_pps if report.active else None
        held = float(setpoint is not None)
        rates = (offered, delivered, held, setpoint or 0.0, terms.due.rate_pps)
        return (1.0, *rates, breach, punished)

    def cut(self, wall: float) -> tuple[list[RawChunk], list[DayRow]]:
        """Return what is complete, and at times what grows; all of it at infinity."""
        chunks = [chunk.taken(self.host, self._part) for chunk in self._complete(wall)]
        if wall < self._write_at:
            return chunks, []
        self._write_at = wall + WRITE_EVERY_S
        chunks += [c.taken(self.host, self._part) for c in self._minutes.values() if c.changed]
        rows = list(self._rows())
        self._forget_old()
        return chunks, rows

    def _complete(self, wall: float) -> Iterator[Chunk]:
        """Yield the chunks of seconds that nothing more comes to; minutes take over their sums."""
        for at in sorted(self._seconds):
            chunk = self._seconds[at]
            if self.time.until < chunk.end and wall < chunk.end + LATE_S:
                continue
            del self._seconds[at]
            minutes = self._chunk(self._minutes, MINUTE_S, at)
            for vr in chunk.routers:
                rows = minutes.rows(vr, contracted=(vr, at // DAY_S) in self._days)
                if rows is not None:
                    minutes.add(rows, at, chunk.sums(vr))
            yield chunk

    def _rows(self) -> Iterator[DayRow]:
        for (vr, day), account in self._days.items():
            if account.changed:
                yield account.row(self.host, vr, day, self._part)

    def _forget_old(self) -> None:
        """Forget what was written and is over."""
        oldest = min(self._seconds, default=int(self.time.until))
        self._minutes = {at: one for at, one in self._minutes.items() if one.end > oldest}
        today = int(self.time.until // DAY_S)
        self._days = {key: account for key, account in self._days.items() if key[1] >= today}

    @staticmethod
    def _chunk(chunks: dict[int, Chunk], span: int, at: int) -> Chunk:
        begin = begin_of(span, at)
        if begin not in chunks:
            chunks[begin] = Chunk(span, begin)
        return chunks[begin]


class _Terms(NamedTuple):
    """What a router's tick is judged by."""

    contract: Contract | None
    due: Due
    punished: bool


def _terms(live: HostLive, vr: str) -> _Terms:
    contract = live.contracts.get(vr)
    in_force = due(contract, live.orders.get(vr))
    return _Terms(contract, in_force, is_punished(live.state.routers.get(vr)))
