"""The history writer: what the leader saw is written once, whatever the database does meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

import pytest
from history_rig import BEGAN, ToldHost, report
from store_values import host, promise

from policer.decide.telemetry import HostTelemetry
from policer.errors import StoreGone
from policer.fleet.live import HostLive
from policer.history.chunks import POINTS
from policer.history.packing import unpacked
from policer.history.point import Point, added
from policer.history.retention import Retention
from policer.recording import writer as module
from policer.recording.writer import HistoryWriter
from policer.store import Store

pytest_plugins = ["store_rig"]

GUARANTEE = promise(1000.0)
DAYS = (date(2026, 9, 1), date(2026, 10, 1))


class Policer:
    """The history writer of a policer, and a host that it hears; it leads from the beginning."""

    def __init__(self, store: Store, *, wall: float = BEGAN) -> None:
        self.leads, self.wall = True, wall
        retention = Retention(seconds_s=86_400)
        self.history_writer = HistoryWriter(store, lambda: self.leads, retention, lambda: self.wall)
        self.told = ToldHost(self._hear, {"r1": GUARANTEE}, wall=wall)

    def _hear(self, live: HostLive, telemetry: HostTelemetry, wall: float) -> None:
        self.wall = wall
        if self.leads:
            self.history_writer.heard(live, telemetry)

    def see(self, seconds: int) -> None:
        """Hear a tick a second, and take over what is complete now and then."""
        for _ in range(seconds):
            self.told.hear(report("r1", 100.0, 100.0))
            if round(self.wall) % 5 == 0:
                self.history_writer.collect()


@pytest.fixture
def filled(store: Store) -> Store:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", GUARANTEE, None, "ann")
    return store


def taken(store: Store, name: str = "ann") -> int:
    """Take the lead, and lose it at once; return its epoch."""
    leadership = store.leadership(name)
    epoch = leadership.acquire()
    leadership.release()
    assert epoch is not None
    return epoch


def written(store: Store, span: int = 1) -> Point:
    """Return all that the store has of r1."""
    chunks = store.history.chunks("gold", span, 0, 2**40, 10_000)
    return added(p for row in chunks for p in unpacked(row.points, "r1", POINTS[span]).values())


def of_days(store: Store) -> float:
    """Return the seconds that the days of r1 come to."""
    return store.sla.page(DAYS, None, 9)[0].kept.data_s


def test_all_that_was_seen_is_written(filled: Store) -> None:
    policer = Policer(filled)
    epoch = taken(filled)
    policer.history_writer.lead(epoch, epoch)
    policer.see(125)
    policer.history_writer.flush()
    assert 115 <= written(filled).data_s <= 125
    policer.history_writer.close()
    assert written(filled).data_s == written(filled, 60).data_s == of_days(filled) == 125.0
    assert (policer.history_writer.waiting, policer.history_writer.dropped) == (0, 0)


def test_to_write_again_changes_nothing(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is lost at the end of a transaction leaves the writer in doubt."""
    policer, real = Policer(filled), filled.history.put
    epoch = taken(filled)
    policer.history_writer.lead(epoch, epoch)

    def in_doubt(*given: object) -> bool:
        real(*given)  # type: ignore[arg-type]  # passed on as it came
        raise StoreGone("the connection was lost")

    for _ in range(10):
        policer.see(10)
        with monkeypatch.context() as patch:
            patch.setattr(filled.history, "put", in_doubt)
            policer.history_writer.flush()
    policer.history_writer.close()
    assert written(filled).data_s == written(filled, 60).data_s == of_days(filled) == 100.0


def test_nothing_is_lost_while_the_database_is_away_for_a_while(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    policer = Policer(filled)
    epoch = taken(filled)
    policer.history_writer.lead(epoch, epoch)
    with gone(filled, monkeypatch):
        for _ in range(30):
            policer.see(20)
            policer.history_writer.flush()
    policer.history_writer.close()
    assert written(filled).data_s == of_days(filled) == 600.0
    assert policer.history_writer.dropped == 0


def test_memory_is_bounded_while_the_database_is_away(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 600)
    policer = Policer(filled)
    epoch = taken(filled)
    policer.history_writer.lead(epoch, epoch)
    with gone(filled, monkeypatch):
        policer.see(600)
        policer.history_writer.flush()
        assert policer.history_writer.waiting < 30
    policer.history_writer.close()
    assert (lost := policer.history_writer.dropped) > 0
    assert 600.0 - 10.0 * lost <= written(filled).data_s < 600.0
    assert of_days(filled) == 600.0  # sums, which need no more room the longer they wait


def test_what_two_leaders_see_is_counted_once(filled: Store) -> None:
    """Both hear every tick; a leader that was cut off goes on to believe that it leads."""
    first, second = Policer(filled), Policer(filled)
    second.leads = False
    epoch = taken(filled)
    first.history_writer.lead(epoch, epoch)
    for policer in (first, second):
        policer.see(100)
    first.history_writer.collect()
    first.history_writer.flush()
    before = written(filled).data_s, of_days(filled)
    following = taken(filled, "ben")
    second.leads = True
    second.history_writer.lead(following, following)
    for policer in (first, second):
        policer.see(100)
        policer.history_writer.close()
    assert written(filled).data_s == before[0] + 100.0
    assert of_days(filled) == before[1] + 100.0
    third = taken(filled)
    first.history_writer.lead(third, third)
    first.history_writer.close()
    assert written(filled).data_s == before[0] + 100.0
    assert first.history_writer.dropped > 0


def test_a_leader_that_was_in_doubt_goes_on_where_nobody_else_led(filled: Store) -> None:
    policer = Policer(filled)
    epoch = taken(filled)
    policer.history_writer.lead(epoch, epoch)
    policer.see(50)
    policer.leads = False
    policer.history_writer.flush()
    assert written(filled).data_s == 0.0
    again = taken(filled)
    policer.leads = True
    policer.history_writer.lead(epoch, again)
    policer.see(50)
    policer.history_writer.close()
    assert written(filled).data_s == of_days(filled) == 100.0


def test_what_is_not_to_be_kept_is_not_written(filled: Store) -> None:
    policer = Policer(filled)
    policer.history_writer.retention = Retention(seconds_s=0, minutes_days=0)
    epoch = taken(filled)
    policer.history_writer.lead(epoch, epoch)
    policer.see(100)
    policer.history_writer.close()
    assert written(filled) == written(filled, 60) == Point()
    assert of_days(filled) == 100.0


def test_the_leader_removes_what_is_old(filled: Store) -> None:
    policer = Policer(filled)
    policer.history_writer.retention = Retention(seconds_s=60)
    epoch = taken(filled)
    policer.history_writer.lead(epoch, epoch)
    for _ in range(12):
        policer.see(50)
        policer.history_writer.flush()
    assert written(filled).data_s <= 60 + module.PRUNE_EVERY_S + 10
    policer.history_writer.close()
    assert written(filled, 60).data_s == 600.0


def test_a_bug_in_the_history_stops_no_tick(
    filled: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def bug(*_: object) -> None:
        raise KeyError("a bug")

    policer = Policer(filled)
    epoch = taken(filled)
    policer.history_writer.lead(epoch, epoch)
    monkeypatch.setattr(policer.history_writer._recorder, "heard", bug)
    policer.see(50)
    assert capsys.readouterr().out.count("tick_not_recorded") == 1


@contextmanager
def gone(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the database be away."""

    def refused(*_: object) -> bool:
        raise StoreGone("the database cannot be reached")

    with monkeypatch.context() as patch:
        patch.setattr(store.history, "put", refused)
        patch.setattr(store.sla, "put", refused)
        yield
