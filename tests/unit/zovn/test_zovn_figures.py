"""Figures of the switch: what is made of what the generator counted."""

import sys
from typing import Any

import pytest

from benchmarks.zovn.latency import latency, pings
from benchmarks.zovn.overload import overload, traffic
from benchmarks.zovn.receivers import CONTROL, DESTINATIONS, FAST, SLOW, SOURCES
from benchmarks.zovn.receivers import rows_of as receivers
from benchmarks.zovn.receivers import traffic as to_both
from benchmarks.zovn.runs import Spread, in_turns, parsed, parser, shown, spread, spread_of_known
from benchmarks.zovn.speed import speeds
from benchmarks.zovn.switches import Measured
from benchmarks.zovn.traffic import Counted, Tally, Traffic, command, counted, guest
from lab.traffic.counts import Pinged
from zovn import core_files


def station(number: int, **more: Any) -> dict[str, Any]:
    return {"number": number, "granted": 0, "sent": {}, "received": {}} | more


def came(frames: int, *, repeated: int = 0, overtaken: int = 0, in_time: int = 0) -> dict[str, int]:
    return {"frames": frames, "repeated": repeated, "overtaken": overtaken, "in_time": in_time}


def report(*stations: dict[str, Any], seconds: float = 2.0) -> dict[str, Any]:
    return {"seconds": seconds, "hz": 2_000_000_000, "stations": list(stations)}


TWO = counted(
    [
        report(station(0, sent={"32": 100}), station(1, sent={"32": 50})),
        report(
            station(
                32,
                granted=80.0,
                received={"0": came(98, repeated=3, overtaken=1, in_time=40), "1": came(50)},
            )
        ),
    ]
)
"""Of two processes; a frame of station 0 is known to have come three times more than once."""


def test_what_one_process_sent_and_another_received_is_one_pair() -> None:
    assert TWO.pairs == {(0, 32): Tally(100, 98, 3, 1, 40), (1, 32): Tally(50, 50, 0, 0, 0)}
    assert TWO.granted[32] == 80.0


def test_a_repeat_does_not_hide_a_loss() -> None:
    assert TWO.pairs[0, 32].lost == 5
    assert TWO.total("lost") == 5
    assert TWO.lost_share() == pytest.approx(5 / 150)


def test_a_frame_that_never_came_is_lost() -> None:
    assert counted([report(station(0, sent={"1": 7}), station(1))]).total("lost") == 7


def test_rates_and_use_are_of_the_time_that_was_measured() -> None:
    assert TWO.rate() == TWO.rate(32) == 20.0
    assert TWO.rate(1) == 0.0
    assert TWO.used(32) == 0.5


def shares(*in_time: int) -> Counted:
    pairs = {(at, 9): Tally(each, each, 0, 0, each) for at, each in enumerate(in_time)}
    return Counted(1.0, 1e9, pairs, {9: float(sum(in_time))})


def test_fairness_is_that_of_jain() -> None:
    assert shares(5, 5, 5, 5).fairness(9) == pytest.approx(1.0)
    assert shares(8, 0, 0, 0).fairness(9) == pytest.approx(0.25)
    assert shares(1, 3).fairness(9) == pytest.approx(16 / 20)


def words(traffic: Traffic, sockets: list[str], first: int, *turns: int) -> list[str]:
    made = command(traffic, [guest(path) for path in sockets], first, turns)
    return made[made.index("--") + 1 :]


def options(made: list[str], flag: str) -> list[str]:
    return [made[at + 1] for at, word in enumerate(made) if word == flag]


@pytest.fixture
def _built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.zovn.traffic.program", lambda name: core_files.BUILD / name)


@pytest.mark.usefixtures("_built")
def test_a_process_gets_only_what_its_own_stations_do() -> None:
    both = traffic(32, 64, 300_000, 1.0)
    first = words(both, [f"/s{number}" for number in range(32)], 0, 7, 8)
    second = words(both, ["/s32"], 32, 9, 6)
    assert options(first, "-x") == [f"{number}:32" for number in range(32)]
    assert options(second, "-x") == options(first, "-r") == []
    assert options(second, "-r") == ["32:300000"]
    assert options(second, "-n") == ["32"]
    assert options(first, "-y") == ["7:8"]
    assert options(second, "-y") == ["9:6"]
    assert "-y" not in words(both, ["/s"], 0)


@pytest.mark.usefixtures("_built")
def test_one_queue_for_each_source_is_what_the_senders_play() -> None:
    sockets = [f"/s{number}" for number in range(6)]
    made = {way: words(to_both(way, 5e3, 1.0), sockets, 0) for way in (SOURCES, CONTROL)}
    assert "-f" in made[SOURCES]
    assert options(made[SOURCES], "-r") == [f"{SLOW}:5000"]
    assert options(made[CONTROL], "-r") == []
    assert "-f" not in words(to_both(DESTINATIONS, 5e3, 1.0), sockets, 0)


def test_losses_of_all_repetitions_count_and_shares_have_a_spread() -> None:
    runs = [
        Counted(1.0, 1e9, {(0, 2): Tally(100, got, 0, 0, got), (1, 2): Tally(100, got, 0, 0, got)},
                {2: 100.0})
        for got in (50, 40, 30)
    ]  # fmt: skip
    found = overload("lossy", 2, 64, runs)
    assert (found.sent, found.lost, found.lost_percent) == (600, 360, 60.0)
    assert found.used == Spread(0.8, 0.6, 1.0)
    assert found.fairness.low == pytest.approx(1.0)


def test_speeds_are_compared_with_ovs_in_the_same_turn() -> None:
    def runs(*rates: int) -> list[Measured]:
        pairs = [{(0, 1): Tally(rate, rate, 0, 0, rate)} for rate in rates]
        return [Measured(Counted(1.0, 1e9, each, {}), 300.0) for each in pairs]

    found = speeds({(64, "zovn"): runs(600, 100, 900), (64, "ovs"): runs(300, 100, 300)})
    ours, ovs = found
    assert ours.against_ovs == Spread(2.0, 1.0, 3.0)
    assert ovs.against_ovs == Spread(1.0, 1.0, 1.0)
    assert ours.gigabits_per_s == 600 * 64 * 8 / 1e9
    (alone,) = speeds({(64, "zovn"): runs(600)})
    assert alone.against_ovs is None


def test_the_fast_receiver_is_compared_with_one_queue_in_the_same_turn() -> None:
    def run(rate: int) -> Counted:
        return Counted(1.0, 1e9, {(0, FAST): Tally(rate, rate, 0, 0, rate)}, {})

    found = receivers({(5e3, DESTINATIONS): [run(400)], (5e3, SOURCES): [run(10)]})
    assert found[0].times_of_one_queue == Spread(40.0, 40.0, 40.0)
    assert found[1].times_of_one_queue == Spread(1.0, 1.0, 1.0)


def pinged(sent: int, *rtt_ms: int) -> Pinged:
    return Pinged(
        now_ns=0,
        sent=sent,
        received=len(rtt_ms),
        rtt_ns=tuple(each * 10**6 for each in rtt_ms),
        samples_lost=0,
    )


def test_round_trips_are_those_between_two_reports() -> None:
    found = pings(pinged(10), pinged(111, *range(100)))
    assert (found.sent, found.unanswered) == (101, 1)
    assert (found.p50_ms, found.p99_ms, found.max_ms) == (50.0, 99.0, 99.0)


def test_without_answers_there_are_no_round_trips() -> None:
    found = latency("zovn", "idle", [pings(pinged(0), pinged(5))])
    assert (found.unanswered, found.p50_ms) == (5, None)


def test_ways_take_turns_within_each_repetition() -> None:
    made: list[tuple[int, str]] = []

    def measure(case: int, way: str) -> int:
        made.append((case, way))
        return len(made)

    found = in_turns([64, 1500], ["a", "b"], 2, measure)
    assert made == [(64, "a"), (64, "b"), (1500, "a"), (1500, "b")] * 2
    assert found[64, "a"] == [1, 5]


def test_a_program_that_does_not_start_is_started_once_more() -> None:
    tries: list[str] = []

    def measure(case: int, way: str) -> int:
        tries.append(way)
        if len(tries) == 1 or case == 2:
            raise RuntimeError("it did not start")
        return case

    assert in_turns([1], ["a"], 1, measure) == {(1, "a"): [1]}
    with pytest.raises(RuntimeError):
        in_turns([2], ["a"], 1, measure)


def test_quick_has_other_defaults_and_no_other_options(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*given: str) -> tuple[float, list[int]]:
        monkeypatch.setattr(sys, "argv", ["program", *given])
        made = parser("", seconds=5.0, repetitions=7, ways=["a"])
        made.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 3])
        found = parsed(made, sizes=[1])
        return found.seconds, found.sizes

    assert read() == (5.0, [1, 2, 3])
    assert read("--quick") == (0.2, [1])
    assert read("--quick", "--seconds", "9", "--sizes", "4") == (9.0, [4])


def test_a_spread_is_shown_with_its_ends_where_they_differ() -> None:
    assert shown(spread([4e6, 1e6, 2e6]), ".1f", 1e-6) == "2.0 (1.0 to 4.0)"
    assert shown(spread([2.0]), ".1f") == "2.0"
    assert shown(spread_of_known([None]), ".1f") == "-"
