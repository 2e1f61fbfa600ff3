"""Contracts held against the recorded history of some hosts; reads the store host by host."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from policer.contracts.replay import Fleet, HostReplay, Replay, Replayed, Sample, replay
from policer.errors import StoreGone
from policer.history.chunks import POINTS, begin_of
from policer.history.packing import unpacked_all
from policer.history.point import Point, merged
from policer.history.window import Window
from policer.reports.history import AT_ONCE, MOST_ROWS
from policer.store.history.chunks import History

MOST_SAMPLES: Final = 1_000_000
"""Points of routers that one replay looks at, which takes some seconds."""
MOST_SHOWN: Final = 1000
"""Routers of an answer: those of which the most would have been held back."""


def replayed(
    history: History, hosts: Sequence[str], wanted: Window, fleet: Fleet, now: datetime
) -> Replayed:
    """Return what contracts would have meant for the traffic of some hosts.

    Args:
        history: where that is recorded.
        hosts: their names, in the order in which they are looked at.
        wanted: of which time.
        fleet: the contracts.
        now: with its zone; contracts that ended before it are over.

    Raises:
        StoreError: the store cannot be read, or what is in it cannot.
    """
    found: list[Replay] = []
    room = MOST_SAMPLES
    for place, host in enumerate(hosts):
        recorded = _Recorded(history, host, wanted, room)
        one = replay(recorded, fleet, now)
        if recorded.is_cut:
            return _answer(wanted, found, hosts[place:])
        found.append(one if one.hosts else _without_data(host, fleet))
        room -= recorded.taken
    return _answer(wanted, found, ())


def _without_data(name: str, fleet: Fleet) -> Replay:
    host = fleet.hosts.get(name)
    return Replay(None, None, () if host is None else (HostReplay(name, host.capacity_pps),), ())


def _answer(wanted: Window, found: Sequence[Replay], left_out: Sequence[str]) -> Replayed:
    routers = [router for one in found for router in one.routers]
    routers.sort(key=lambda one: (-one.held_back_packets, one.host, one.vr))
    return Replayed(
        begin=datetime.fromtimestamp(wanted.begin, UTC),
        end=datetime.fromtimestamp(wanted.end, UTC),
        span_s=wanted.span,
        hosts=tuple(host for one in found for host in one.hosts),
        routers=tuple(routers[:MOST_SHOWN]),
        left_out=tuple(left_out),
    )


class _Recorded:
    """The recorded history of one host, so many samples of it and no more."""

    def __init__(self, history: History, host: str, wanted: Window, most: int) -> None:
        self._history, self._host, self._wanted, self._most = history, host, wanted, most
        self.taken = 0
        """Samples so far."""

    @property
    def span_s(self) -> float:
        """Length of a sample, seconds."""
        return self._wanted.span

    @property
    def is_cut(self) -> bool:
        """Whether there was more than may be taken."""
        return self.taken > self._most

    def __iter__(self) -> Iterator[Sample]:
        for _, rows in groupby(self._rows(), key=lambda row: row[0]):
            found = self._points([routers for _, routers in rows])
            self.taken += sum(map(len, found.values()))
            if self.is_cut:
                return
            yield from self._samples(found)

    def _rows(self) -> Iterator[tuple[int, dict[str, dict[int, Point]]]]:
        """Yield when chunks begin, and their points by router and instant."""
        begin, end, span = self._wanted
        length = POINTS[span] * span
        for at in range(begin_of(span, begin), end, AT_ONCE * length):
            until = min(end, at + AT_ONCE * length)
            for first, raw in self._history.chunks(self._host, span, at, until, MOST_ROWS):
                yield first, self._unpacked(first, raw)

    def _unpacked(self, first: int, raw: bytes) -> dict[str, dict[int, Point]]:
        begin, end, span = self._wanted
        try:
            routers = unpacked_all(raw, POINTS[span])
        except ValueError as error:
            raise StoreGone(f"the history of {self._host} at {first}: {error}") from error
        return {
            vr: {t: p for place, p in points.items() if begin <= (t := first + span * place) < end}
            for vr, points in routers.items()
        }

    def _points(self, rows: Sequence[dict[str, dict[int, Point]]]) -> dict[str, dict[int, Point]]:
        """Return the points of one chunk's time, of which several leaders wrote a part each."""
        if len(rows) == 1:
            return rows[0]
        routers = {vr for row in rows for vr in row}
        return {vr: merged((row.get(vr, {}) for row in rows), self._wanted.span) for vr in routers}

    def _samples(self, found: dict[str, dict[int, Point]]) -> Iterator[Sample]:
        instants = sorted({at for points in found.values() for at in points})
        for instant in instants:
            at = datetime.fromtimestamp(instant, UTC)
            for vr, points in found.items():
                if (point := points.get(instant)) is not None:
                    known = point.data_s
                    offered, delivered = point.offered / known, point.delivered / known
                    yield Sample(at, self._host, vr, offered, delivered, known)
