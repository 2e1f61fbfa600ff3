"""What the promise benchmark makes of counters: whose packets they are, what was kept."""

import time
from itertools import accumulate
from typing import cast

import pytest

from benchmarks.xtc.promise_line import COUNT_S, Counted, Player, kept
from common.setpoint import Setpoint
from lab.programs.processes import Source
from xtc.simulation.loads import Load, Pulses, Steady

SETPOINT = Setpoint(1000.0, burst=100.0)


class FakeSource:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.rates: list[float] = []

    def set_rate(self, rate_pps: float) -> None:
        self.rates.append(rate_pps)


def counted(*steps: tuple[int, int]) -> list[Counted]:
    """Return readings every 20 ms, of what was offered and forwarded in each step."""
    offered = accumulate((step[0] for step in steps), initial=7)
    forwarded = accumulate((step[1] for step in steps), initial=3)
    pairs = enumerate(zip(offered, forwarded, strict=True))
    return [Counted(10.0 + COUNT_S * at, into, (out,)) for at, (into, out) in pairs]


def everything(_begin: float, _end: float) -> list[float]:
    return [1.0]


def test_what_exceeds_setpoint_and_burst_is_over_the_promise() -> None:
    (found,) = kept(counted(*[(100, 50)] * 5), [SETPOINT], everything, 10.0, 11.0)
    assert found.delivered == 250
    assert found.wanted == pytest.approx(5 * 20)
    assert found.account.over == pytest.approx(250 - 100 - 100)
    assert found.account.under == 0
    assert found.account.breach_s == pytest.approx(2 * COUNT_S)


def test_what_is_missing_beyond_the_burst_is_under_the_promise() -> None:
    (found,) = kept(counted(*[(100, 0)] * 10), [SETPOINT], everything, 10.0, 11.0)
    assert found.account.under == pytest.approx(200 - 100)
    assert found.seconds == [0]


def test_only_what_lies_within_the_promise_counts() -> None:
    readings = counted((9, 9), (20, 20), (20, 20), (9, 9))
    (found,) = kept(readings, [SETPOINT], everything, readings[1].at, readings[3].at)
    assert found.delivered == 40


def test_the_longest_time_between_two_readings_is_told() -> None:
    readings = counted((1, 1), (1, 1), (1, 1))
    del readings[1:3]
    (found,) = kept(readings, [SETPOINT], everything, 10.0, 11.0)
    assert found.longest_step_s == pytest.approx(3 * COUNT_S)


def test_each_router_is_offered_its_part() -> None:
    loads: list[Load] = [Steady(300.0), Pulses(900.0, 1.0, 2.0)]
    player = Player([(cast("Source", FakeSource()), load) for load in loads])
    assert player.shares(0.0, 1.0) == pytest.approx([0.25, 0.75])
    assert player.shares(1.0, 2.0) == [1.0, 0.0]
    assert Player([]).shares(0.0, 1.0) == [1.0]


def test_a_player_tells_its_source_the_rate_and_stops_it() -> None:
    source = FakeSource()
    with Player([(cast("Source", source), Steady(500.0))]):
        deadline = time.monotonic() + 30
        while not source.rates and time.monotonic() < deadline:
            time.sleep(0.001)
    assert source.rates[0] == pytest.approx(500.0)
    assert source.rates[-1] == 0.0
    assert len(source.rates) == 2
