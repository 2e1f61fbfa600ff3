"""What is seen of one host: seconds and minutes of its routers, and days of its contracts."""

import zlib
from collections.abc import Iterator

from policer.contracts.contract import Contract
from policer.decide.state import Order
from policer.decide.telemetry import HostTelemetry
from policer.fleet.live import HostLive
from policer.history.chunks import MINUTE_S, SECOND_S, Chunk, RawChunk, Values, begin_of
from policer.recording.counted import Counted
from policer.recording.days import DAY_S, DayAccount
from policer.recording.guarantee import (
    NOTHING_DUE,
    Due,
    Owed,
    due,
    is_punished,
    owed_after,
    part_of,
    told_in_packets,
)
from policer.recording.stretch import LONGEST_S, HostTime, Stretch, shares, stretch_of
from policer.store import DayRow
from xtc.wire import Report

LATE_S = LONGEST_S + 5.0
"""No tick tells of what was longer ago."""
WRITE_EVERY_S = 60
"""How often what still grows is written: the minutes of this hour, and this day."""

Days = dict[tuple[str, int], dict[str, DayAccount]]
"""Accounts by router and day; those of one by the contract that followed the router, or ""."""


class _Router:
    """What is remembered of a router from tick to tick."""

    __slots__ = ("_account_of", "_contract", "_due", "account", "deficit", "punished", "under")

    def __init__(self) -> None:
        self.deficit = 0.0
        self.under: str | None = None
        """The contract of a tick ago: its name if it follows the router, "" if it is this host's;
        None without one."""
        self.punished = False
        """Whether it was punished then."""
        self.account: DayAccount | None = None
        self._account_of = (-1, "")
        """The day and the contract of that account."""
        self._contract: Contract | None = None
        self._due = NOTHING_DUE

    def due(self, contract: Contract | None, order: Order | None) -> Due:
        """Return what it is to get; of the same contract as before, the same."""
        if order is not None and order.punishment:
            return due(contract, order)
        if contract is not self._contract:
            self._contract, self._due = contract, due(contract, None)
        return self._due

    def begins(self, under: str | None, *, punished: bool) -> bool:
        """Whether it is punished now and was not a tick ago, under the same contract.

        A router that comes from another host, or is taken over by a leader, may bring a punishment.
        """
        began = punished and not self.punished and self.under == under
        self.under, self.punished = under, punished
        return began

    def account_in(self, days: Days, vr: str, day: int, under: str) -> DayAccount:
        """Return its account of a day and contract."""
        if self.account is None or self._account_of != (day, under):
            accounts = days.setdefault((vr, day), {})
            self.account = accounts.setdefault(under, DayAccount())
            self._account_of = day, under
        return self.account


class HostTrack:
    """One host, as one recorder saw it."""

    def __init__(self, host: str, part: int, wall: float, counted: Counted) -> None:
        """Begin at a time of day; `counted` is shared by all hosts of the recorder."""
        self.host, self._part = host, part
        self._counted = counted
        self.time = HostTime()
        self._seconds: dict[int, Chunk] = {}
        self._minutes: dict[int, Chunk] = {}
        self._days: Days = {}
        self._routers: dict[str, _Router] = {}
        # Hosts take turns, so that no second has the work of all.
        self._write_at = wall + zlib.crc32(host.encode()) % WRITE_EVERY_S

    def heard(self, live: HostLive, telemetry: HostTelemetry, wall: float) -> None:
        """Take over a tick; `live` is the host before it."""
        self.time, stretch = stretch_of(self.time, live.telemetry, telemetry, wall)
        if stretch is None:
            return
        touched = [(self._chunk(self._seconds, SECOND_S, at), at, s) for at, s in shares(stretch)]
        before, self._routers = self._routers, {}
        for vr, report in telemetry.routers.items():
            router = self._routers[vr] = before.get(vr) or _Router()
            values = self._judged(router, live, report, stretch)
            if values is None:
                continue
            for chunk, at, seconds in touched:
                rows = chunk.rows(vr, contracted=vr in live.contracts)
                if rows is not None:
                    chunk.add(rows, at, values, seconds)

    def _judged(
        self, router: _Router, live: HostLive, report: Report, stretch: Stretch
    ) -> Values | None:
        """Return what each second of a tick is; the router's day takes over the whole of it."""
        vr, offered, delivered = report.vr, report.offered_pps, report.throughput_pps
        contract, punished = live.contracts.get(vr), is_punished(live.state.routers.get(vr))
        under = None if contract is None else live.follows.get(vr, "")
        began = router.begins(under, punished=punished)
        if offered is None or delivered is None:
            router.deficit = 0.0
            return None
        contract = contract and told_in_packets(contract, report)
        length, in_force = stretch.end - stretch.begin, router.due(contract, live.orders.get(vr))
        lacks = router.deficit if stretch.follows else 0.0
        owed = owed_after(lacks, in_force, length, offered, delivered)
        router.deficit = owed.deficit
        if contract is not None:
            self._count(router, contract, report, owed, stretch, began=began)
        setpoint = report.setpoint_pps if report.active else None
        return (
            1.0,
            offered,
            delivered,
            0.0 if setpoint is None else 1.0,
            setpoint or 0.0,
            in_force.rate_pps,
            1.0 if owed.missing else 0.0,
            1.0 if punished else 0.0,
        )

    def _count(
        self,
        router: _Router,
        contract: Contract,
        report: Report,
        owed: Owed,
        stretch: Stretch,
        *,
        began: bool,
    ) -> None:
        """Have the day of a router's contract take over a tick, but for what is counted already."""
        under = router.under or ""
        share = self._counted.share(under, stretch) if under else 1.0
        if not (share or began):
            return
        seconds = share * (stretch.end - stretch.begin)
        account = router.account_in(self._days, report.vr, int(stretch.end // DAY_S), under)
        delivered = report.throughput_pps or 0.0
        account.add(contract.guarantee_pps, seconds, delivered, part_of(owed, share), began=began)
        if router.punished:
            account.punished(seconds)

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
        for (vr, day), accounts in self._days.items():
            for under, account in accounts.items():
                if account.changed:
                    yield account.row(self.host, vr, day, self._part, under)

    def _forget_old(self) -> None:
        """Forget what was written and is over."""
        oldest = min(self._seconds, default=int(self.time.until))
        self._minutes = {at: one for at, one in self._minutes.items() if one.end > oldest}
        today = int(self.time.until // DAY_S)
        self._days = {key: accounts for key, accounts in self._days.items() if key[1] >= today}

    @staticmethod
    def _chunk(chunks: dict[int, Chunk], span: int, at: int) -> Chunk:
        begin = begin_of(span, at)
        if begin not in chunks:
            chunks[begin] = Chunk(span, begin)
        return chunks[begin]
