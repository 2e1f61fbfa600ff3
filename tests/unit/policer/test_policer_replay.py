"""Contracts held against recorded traffic: overload of hosts, and what ceilings hold back."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.promised import ANYWHERE
from policer.contracts.replay import Fleet, HostReplay, RouterReplay, Sample, replay
from policer.contracts.schedule import Hours

BEGIN = datetime(2026, 5, 4, 7, 59, 30, tzinfo=UTC)
NOW = BEGIN + timedelta(days=1)
GOLD = Host("gold", "ipc:///a", "ipc:///b", 100.0)


class Taped:
    """Samples of a list, each so many seconds long."""

    def __init__(self, span_s: float, *samples: tuple[float, str, float, float]) -> None:
        """Take seconds since the beginning, router, offered load and throughput."""
        self.span_s, self._samples = span_s, samples
        self.gaps = 1.0
        """By how much less of each is known."""

    def __iter__(self) -> Iterator[Sample]:
        for seconds, vr, offered, throughput in self._samples:
            at = BEGIN + timedelta(seconds=seconds)
            yield Sample(at, "gold", vr, offered, throughput, self.span_s / self.gaps)


def fleet(**contracts: Contract) -> Fleet:
    return Fleet({"gold": GOLD}, {}, {("gold", vr): one for vr, one in contracts.items()})


def test_a_host_is_overloaded_while_its_guarantees_are_wanted_and_exceed_it() -> None:
    promised = fleet(r1=Contract(guarantee_pps=80.0), r2=Contract(guarantee_pps=20.0, cost=2.0))
    samples = ((0, "r1", 90, 50), (0, "r2", 5, 5), (1, "r1", 900, 50), (1, "r2", 12, 5))
    found = replay(Taped(1.0, *samples), promised, NOW)
    second = BEGIN + timedelta(seconds=1)
    assert found.hosts == (HostReplay("gold", 100.0, 2.0, 1.0, 104.0, second),)
    assert (found.begin, found.end) == (BEGIN, BEGIN + timedelta(seconds=2))
    assert found.routers == ()


def test_a_full_host_is_not_overloaded() -> None:
    promised = fleet(r1=Contract(guarantee_pps=80.0), r2=Contract(guarantee_pps=20.0))
    found = replay(Taped(60.0, (0, "r1", 1e6, 0), (0, "r2", 1e6, 0)), promised, NOW)
    assert found.hosts == (HostReplay("gold", 100.0, 60.0, 0.0, 100.0, BEGIN),)


def test_what_a_ceiling_holds_back_is_counted_and_what_of_it_is_new() -> None:
    promised = fleet(r1=Contract(ceiling_pps=50.0), r2=Contract(ceiling_pps=50.0))
    samples = ((0, "r1", 80, 60), (0, "r2", 50, 50), (60, "r1", 70, 40))
    found = replay(Taped(60.0, *samples), promised, NOW)
    assert found.routers == (RouterReplay("gold", "r1", 60 * 30 + 60 * 20, 60 * 10, 120.0),)


def test_of_what_is_known_in_part_only_that_part_counts() -> None:
    tape = Taped(60.0, (0, "r1", 80, 60), (0, "r2", 120, 50))
    tape.gaps = 2.0
    found = replay(tape, fleet(r1=Contract(50.0, 50.0), r2=Contract(guarantee_pps=60.0)), NOW)
    assert found.hosts == (HostReplay("gold", 100.0, 30.0, 30.0, 110.0, BEGIN),)
    assert found.routers == (RouterReplay("gold", "r1", 30 * 30, 30 * 10, 30.0),)


def test_a_contract_on_the_host_comes_first_while_it_holds() -> None:
    morning = Contract(ceiling_pps=50.0, hours=(Hours("07:00", "08:00"),))
    both = {("gold", "r1"): morning, (ANYWHERE, "r1"): Contract(ceiling_pps=30.0)}
    samples = ((0, "r1", 60, 60), (30, "r1", 60, 60))
    found = replay(Taped(1.0, *samples), Fleet({"gold": GOLD}, {}, both), NOW)
    assert found.routers[0].held_back_packets == 10 + 30


def test_hours_hold_as_at_the_time_of_the_recording() -> None:
    office = (Hours("08:00", "18:00"),)
    promised = fleet(r1=Contract(ceiling_pps=50.0, hours=office))
    samples = ((29, "r1", 60, 60), (30, "r1", 60, 60), (31, "r1", 60, 60))
    assert replay(Taped(1.0, *samples), promised, NOW).routers[0].held_back_s == 2.0


def test_contracts_that_are_to_come_count_and_those_that_are_over_do_not() -> None:
    coming = Contract(ceiling_pps=50.0, valid_from=NOW + timedelta(days=30))
    over = Contract(ceiling_pps=50.0, valid_until=NOW)
    found = replay(Taped(1.0, (0, "r1", 60, 60), (0, "r2", 60, 60)), fleet(r1=coming, r2=over), NOW)
    assert [router.vr for router in found.routers] == ["r1"]


def test_classes_and_contracts_that_follow_routers_count() -> None:
    uuid = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"
    silver = Contract(class_name="silver")
    promised = Fleet(
        {"gold": GOLD},
        {"silver": Contract(ceiling_pps=50.0)},
        {(ANYWHERE, "r1"): silver, (ANYWHERE, uuid): silver, ("gold", "r3"): Contract()},
        {("gold", "r2"): uuid},
    )
    samples = ((0, "r1", 60, 60), (0, "r2", 70, 60), (0, "r3", 80, 80), (0, "r4", 90, 90))
    found = replay(Taped(1.0, *samples), promised, NOW)
    assert [(one.vr, one.held_back_packets) for one in found.routers] == [("r1", 10), ("r2", 20)]


def test_hosts_that_are_not_in_the_fleet_are_left_out() -> None:
    found = replay(Taped(1.0, (0, "r1", 60, 60)), Fleet({}, {}, {}), NOW)
    assert found.hosts == ()
    empty = replay(Taped(1.0), fleet(), NOW)
    assert (empty.begin, empty.end, empty.hosts) == (None, None, ())
