"""The dumbbell of the SDN-GCC paper, in short phases: what each law gives the tagged sender.

The paper's phases take ten seconds: `benchmarks.xco.dumbbell` has those, and the figures.
Here each is half a second, or longer where a law takes longer.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xco.arrays import jain
from xco.errors import ConfigError
from xco.simulate.dumbbell.control import Limits, max_min
from xco.simulate.dumbbell.options import Dumbbell
from xco.simulate.dumbbell.port import PACKET_BITS, Port
from xco.simulate.dumbbell.run import DumbbellResult, run_dumbbell
from xco.simulate.dumbbell.senders import Kind

STEP_S = 1e-4
LINK = 1e9
FIRST_SHARES = (0.02, 0.9)


@cache
def result(**given: Any) -> DumbbellResult:
    return run_dumbbell(Dumbbell(**({"phase_s": 0.5} | given)))


@pytest.mark.parametrize("kind", [Kind.UDP, Kind.DCTCP])
def test_without_control_a_tagged_flow_starves_beside_those_that_do_not_yield(kind: Kind) -> None:
    """RED drops what is not marked."""
    _, beside, _ = result(competitors=kind).phases_mbps
    assert beside < 0.1 * 243


def test_without_control_equal_flows_share() -> None:
    _, beside, alone = result(competitors=Kind.TCP, phase_s=1.0, mark_at=1.0).phases_mbps
    assert beside > 0.5 * 243
    assert alone > 0.9 * 973


def test_static_shares_are_fair_and_leave_the_link_idle() -> None:
    found = result(strategy="static")
    assert found.jain > 0.999
    assert found.used[2] == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("senders", [4, 32])
@pytest.mark.parametrize("kind", [Kind.UDP, Kind.TCP])
@pytest.mark.parametrize("strategy", ["gcc", "hygenicc"])
def test_a_fair_law_gives_the_tagged_flow_its_share_of_the_aim(
    strategy: str, kind: Kind, senders: int
) -> None:
    found = result(strategy=strategy, competitors=kind, senders=senders)
    assert found.of_ideal > 0.99 * 0.99
    assert found.jain > 0.99
    assert found.lost_in_second == 0


@pytest.mark.parametrize("strategy", ["gcc", "hygenicc"])
@pytest.mark.parametrize("first", FIRST_SHARES)
def test_unequal_starts_do_not_last(strategy: str, first: float) -> None:
    assert result(strategy=strategy, first_share=first).jain > 0.99


def test_as_published_gcc_lets_a_newcomer_keep_its_lead_and_marks_by_bytes_take_it_back() -> None:
    published = result(strategy="gcc", law="published", phase_s=2.0)
    by_bytes = result(strategy="gcc", law="by-bytes", phase_s=2.0)
    assert published.jain < 0.5
    assert by_bytes.jain > published.jain + 0.2


@pytest.mark.parametrize("delay_s", [5e-3, 50e-3])
@pytest.mark.parametrize("strategy", ["gcc", "hygenicc"])
def test_a_slow_loop_costs_little(strategy: str, delay_s: float) -> None:
    found = result(strategy=strategy, delay_s=delay_s, phase_s=2.0)
    assert found.of_ideal > 0.95


@pytest.mark.parametrize("strategy", ["gcc", "hygenicc"])
def test_foreign_traffic_takes_their_part_and_the_others_share_the_rest(strategy: str) -> None:
    found = result(strategy=strategy, foreign=0.3, phase_s=2.0)
    beside = result(strategy="rate", foreign=0.3, mark_at=1.0, phase_s=2.0)
    assert found.jain > 0.99
    assert found.lost_in_second * 50 < beside.lost_in_second


@pytest.mark.parametrize("mark_at", [0.2, 1.0])
@pytest.mark.parametrize("strategy", ["gcc", "hygenicc"])
def test_a_link_that_is_slower_than_stated_is_found_out_by_marks_or_by_drops(
    strategy: str, mark_at: float
) -> None:
    found = result(strategy=strategy, believed=1.25, mark_at=mark_at, phase_s=1.0)
    beside = result(strategy="rate", believed=1.25, mark_at=1.0, phase_s=1.0)
    assert found.jain > 0.95
    assert found.lost_packets < 0.1 * beside.lost_packets


def test_marks_alone_are_fair_where_the_congested_link_is_in_between() -> None:
    found = result(strategy="hygenicc", bottleneck="core", phase_s=2.0)
    assert found.jain > 0.95
    assert min(found.used) > 0.9


def test_the_same_run_gives_the_same_result() -> None:
    given = Dumbbell(strategy="gcc", phase_s=0.2)
    assert run_dumbbell(given) == run_dumbbell(given)


@pytest.mark.parametrize(
    ("field", "value"),
    [("senders", 1), ("capacity_bps", 0.0), ("phase_s", 0.0), ("delay_s", -1.0), ("mark_at", 2.0)],
)
def test_a_wrong_option_is_named(field: str, value: float) -> None:
    name = field.removesuffix("_bps").removesuffix("_s")
    with pytest.raises(ConfigError, match=name):
        run_dumbbell(Dumbbell(**{field: value}))


sizes = arrays(np.float64, st.integers(1, 8), elements=st.floats(0, 1e6))


@given(st.lists(sizes, max_size=20).filter(lambda steps: len({len(s) for s in steps}) < 2))
def test_a_port_keeps_loses_and_sends_every_bit(steps: list[Any]) -> None:
    port = Port(LINK, 100 * PACKET_BITS, 20 * PACKET_BITS)
    arrived = left = lost = 0.0
    for sent in steps:
        passed = port.take(sent, STEP_S)
        arrived += float(sent.sum())
        left += passed.left
        lost += float(passed.lost.sum())
        assert 0 <= port.queue <= 100 * PACKET_BITS
        assert (passed.marked <= passed.kept + 1e-9).all()
        assert passed.left <= LINK * STEP_S * (1 + 1e-9)
    assert arrived == pytest.approx(left + lost + port.queue, rel=1e-9, abs=1e-3)


demands = arrays(np.float64, st.integers(1, 10), elements=st.floats(0, 1e9))


@given(demands, st.floats(1.0, 1e10))
def test_shares_are_max_min(demand: Any, capacity: float) -> None:
    shares = max_min(capacity, demand, np.ones(len(demand)))
    assert (shares <= demand * (1 + 1e-9)).all()
    assert shares.sum() == pytest.approx(min(capacity, demand.sum()), rel=1e-6, abs=1e-6)
    short = shares < demand * (1 - 1e-6)
    if short.any():
        assert shares[short].min() >= shares.max() * (1 - 1e-6)


def test_weights_divide_what_is_left() -> None:
    shares = max_min(90.0, np.array([np.inf, np.inf, 10.0]), np.array([3.0, 1.0, 1.0]))
    assert shares == pytest.approx([60.0, 20.0, 10.0])


def test_limits_arrive_after_the_delay_and_in_order() -> None:
    limits = Limits(np.zeros(1), delay_s=0.01)
    limits.tell(1.0, np.array([5.0]))
    limits.tell(1.005, np.array([7.0]))
    assert limits.at(1.009)[0] == 0
    assert limits.at(1.0101)[0] == 5
    assert limits.at(2.0)[0] == 7


def test_jain_of_one_that_has_all_is_one_by_n() -> None:
    assert jain(np.array([1.0, 0.0, 0.0, 0.0])) == 0.25
