"""Rounds with contracts in bits/s: who is held in which unit, and that all else goes on as ever."""

from itertools import pairwise

import pytest
from policer_plant import Frame, PolicedHost, Router, SimulatedHost, between, held_report, steady
from policer_scenes import FLOOD, changes, flooded, mean
from round_rig import GOLD, LADDER, Context, full, telemetry

from policer.contracts.contract import Contract
from policer.contracts.ladder import Step
from policer.decide.in_packets import sized
from policer.decide.packet_size import Size
from policer.decide.round import LEEWAY, decide_round
from policer.decide.state import HostState, HostView, Order, Policy, RouterState
from xtc.modes import Finding
from xtc.wire import Activate, Report

LINE = Contract(ceiling_bps=80e6)
SOLD = Contract(guarantee_bps=112e6, packet_bytes=350)
RESERVED = 40e3
ALTERNATING = (64.0, 1500.0)
"""A second each: what makes of bits the most packets, and the fewest."""


def alternating(seconds: int = 1, *, sizes: tuple[float, float] = ALTERNATING) -> Router:
    """Return a router that is sent more than it was sold, in sizes that go up and down."""
    return Router(steady(90e3), size=lambda at: sizes[int(at) // seconds % 2])


def in_bits(vr: str = "a", bps: float = 80e6, size: float = 1000.0, **changed: object) -> Report:
    """Return the report of a router that is held in bits/s and fills its setpoint."""
    pps = bps / 8 / size
    fields = {"setpoint_bps": bps, "throughput_bps": bps, "throughput_pps": pps}
    return held_report(vr, pps, **(fields | {"setpoint_pps": None, "offered_pps": pps} | changed))


def free(vr: str = "a", pps: float = 20e3, size: float = 1000.0) -> Report:
    fields = {"active": False, "lease_remaining_s": None, "binding": None}
    return held_report(vr, pps, throughput_bps=8 * size * pps, setpoint_pps=None, **fields)


def test_on_a_calm_host_a_ceiling_in_bits_is_ordered_in_bits() -> None:
    context = Context(a=LINE)
    assert context.decide_round(free("a", 9e3)).orders["a"] == Order()
    assert context.decide_round(free("a", 20e3)).orders["a"] == Order(setpoint_bps=80e6)


def test_one_that_is_held_in_bits_stays_held_while_it_fills_its_ceiling() -> None:
    context = Context(a=LINE)
    orders = context.decide_round(in_bits(), rounds=50).orders
    assert orders["a"] == Order(setpoint_bps=80e6)
    sizes = (64.0, 350.0, 1500.0, 9000.0)
    for size in sizes * 3:
        assert context.decide_round(in_bits(size=size)).orders["a"] == Order(setpoint_bps=80e6)


def test_it_is_let_go_when_it_has_no_use_for_its_ceiling() -> None:
    context = Context(a=LINE)
    context.decide_round(in_bits(), rounds=5)
    idle = in_bits(throughput_pps=5e3, throughput_bps=40e6, offered_pps=5e3, binding=False)
    assert context.decide_round(idle).orders["a"] == Order()


def test_a_contended_host_orders_packets() -> None:
    context = Context(a=LINE, b=GOLD)
    context.decide_round(in_bits(), full("b", 20e3))
    contended = context.decide_round(in_bits(), full("b", 95e3))
    assert contended.state.standing.engaged
    order = contended.orders["a"]
    assert order.setpoint_bps is None
    assert order.setpoint_pps == pytest.approx(10e3)


def test_a_configured_router_is_held_at_its_ceiling_in_bits() -> None:
    configured = held_report("a", 1e3, lease_remaining_s=None)
    assert Context(a=LINE).decide_round(configured).orders["a"] == Order(setpoint_bps=80e6)


def test_where_the_daemon_takes_no_bits_a_ceiling_is_ordered_in_packets() -> None:
    context = Context(a=LINE)
    context.decide_round(free("a", 20e3))
    view = HostView(1e5, context.contracts, telemetry(9.0, free("a", 20e3)), packets_only={"a"})
    order = decide_round(9.0, view, context.state, Policy()).orders["a"]
    assert order == Order(10e3)


def test_a_burst_goes_with_a_ceiling_in_bits() -> None:
    context = Context(a=Contract(ceiling_bps=80e6, burst=1e3))
    assert context.decide_round(free("a", 20e3)).orders["a"] == Order(
        setpoint_bps=80e6, burst=2.8e6
    )


def test_what_is_saved_comes_on_top_of_a_ceiling_in_bits() -> None:
    context = Context(a=Contract(ceiling_bps=80e6, packet_bytes=1000, burst_packets=5e3))
    context.decide_round(free("a", 5e3), rounds=3)
    assert context.decide_round(free("a", 14e3)).orders["a"] == Order(setpoint_bps=88e6)


def test_a_host_that_is_not_believed_keeps_its_orders_in_their_units() -> None:
    context = Context(a=LINE)
    before = context.decide_round(in_bits(), rounds=3)
    lying = context.decide_round(in_bits(size=64.0), rounds=20, distrust="it lies")
    assert lying.orders == before.orders == {"a": Order(setpoint_bps=80e6)}


def test_a_punished_router_is_lowered_in_packets() -> None:
    context = Context(a=replace_terms(SOLD, ceiling_bps=224e6), b=GOLD)
    context.punish("a", 2)
    order = context.decide_round(in_bits("a", 224e6, 350.0), full("b", 95e3)).orders["a"]
    assert order.punishment
    assert order.setpoint_pps == pytest.approx(RESERVED)


def test_a_flood_into_a_router_that_is_held_in_bits_is_shielded_and_convicted() -> None:
    context = Context(a=replace_terms(LINE, measures=tuple(Step), punish="always"))
    flooded_one = in_bits(offered_pps=90e3)
    shielded = context.decide_round(flooded_one, rounds=2).orders["a"]
    assert shielded.setpoint_bps == 80e6
    assert shielded.limit_pps == pytest.approx(LEEWAY * 10e3)
    context.decide_round(flooded_one, rounds=10)
    assert context.state.routers["a"].evidence.guilty


def test_a_limit_leaves_room_for_the_smallest_packets_of_late() -> None:
    context = Context(a=LINE)
    context.decide_round(in_bits(offered_pps=90e3), rounds=3)
    order = context.decide_round(in_bits(size=250.0, offered_pps=90e3)).orders["a"]
    assert order.limit_pps == pytest.approx(LEEWAY * 40e3)


def test_a_router_whose_packets_grow_on_a_full_host_does_not_seem_to_starve() -> None:
    """With the same bits in fewer packets it shows less, as a starving one does."""
    context = Context(a=SOLD, b=Contract())
    small = in_bits("a", 100e6, 350.0, setpoint_bps=None, setpoint_pps=RESERVED, binding=False)
    large = in_bits("a", 100e6, 1400.0, setpoint_bps=None, setpoint_pps=RESERVED, binding=False)
    context.decide_round(small, full("b", 62e3), rounds=20)
    assert context.state.standing.engaged
    for _ in range(20):
        assert context.decide_round(large, full("b", 88e3)).state.standing.harmed == ()


def test_what_is_remembered_is_in_packets_of_the_present_size() -> None:
    line = Contract(guarantee_bps=80e6, ceiling_bps=80e6, packet_bytes=500, burst_packets=1e3)
    known = Size(((20e3, 80e6),), 500.0, 500.0, 500.0, at=0.0)
    state = RouterState(needed=20e3, reserve=10e3, saved=-800.0, size=known)
    before = HostState(routers={"a": state, "b": state})
    reports = free("a", 10e3, 1000.0), free("b", 10e3, 1000.0)
    view = HostView(1e5, {"a": line, "b": GOLD}, telemetry(1.0, *reports))
    after = sized(1.0, view, before).routers
    assert (after["a"].needed, after["a"].reserve, after["a"].saved) == (10e3, 5e3, -400.0)
    assert after["b"] is state


def test_one_that_starves_is_found_to_whatever_its_unit() -> None:
    context = Context(a=SOLD, b=Contract())
    free_one = free("a", 30e3, 350.0)
    starves = replace_report(free_one, offered_pps=45e3)
    harmed = context.decide_round(starves, full("b", 65e3), rounds=5).state.standing.harmed
    assert harmed == ("a",)
    found = replace_report(in_bits("a", 80e6, 350.0), finding=Finding.STARVED, binding=False)
    assert context.decide_round(found, full("b", 50e3), rounds=6).state.routers["a"].starving.on


def replace_terms(contract: Contract, **changed: object) -> Contract:
    fields = {name: getattr(contract, name) for name in contract.__struct_fields__}
    return Contract(**(fields | changed))


def replace_report(report: Report, **changed: object) -> Report:
    fields = {name: getattr(report, name) for name in report.__struct_fields__}
    return Report(**(fields | changed))


# --- the closed loop


def beside(router: Router, contract: Contract, other: float = 45e3) -> PolicedHost:
    """Return a host on which a router competes with one that keeps to its guarantee."""
    host = SimulatedHost({"a": router, "b": Router(steady(other))})
    return PolicedHost(host, {"a": contract, "b": Contract(guarantee_pps=other)})


def leases(frames: list[Frame]) -> int:
    return sum(isinstance(r, Activate) and r.vr == "a" for f in frames for r in f.requests)


@pytest.mark.parametrize("seconds", [1, 2, 3, 7])
@pytest.mark.parametrize("ceiling", [None, 140e6, 280e6])
def test_sizes_that_alternate_take_no_neighbours_guarantee_on_a_contended_host(
    seconds: int, ceiling: float | None
) -> None:
    sold = Contract(guarantee_bps=140e6, ceiling_bps=ceiling, punish="never")
    policed = beside(alternating(seconds), sold)
    policed.run(10)
    held = [frame for frame in policed.run(100) if frame.engaged]
    assert len(held) > 50
    assert all(frame.orders["a"].setpoint_bps is None for frame in held)
    assert mean(held, lambda frame: frame.forwarded["b"]) >= 0.97 * 45e3
    spare = 100e3 - 45e3
    assert max(frame.orders["a"].setpoint_pps or 0.0 for frame in held) <= spare


@pytest.mark.parametrize("seconds", [1, 2])
def test_sizes_that_alternate_by_the_second_change_no_order(seconds: int) -> None:
    policed = beside(alternating(seconds), Contract(guarantee_bps=140e6, punish="never"))
    policed.run(20)
    frames = policed.run(100)
    assert changes(frames) == 0
    assert len({frame.orders["a"] for frame in frames}) == 1
    assert leases(frames) == 20  # renewals alone
    assert not any(frame.round.state.standing.harmed for frame in frames)


def test_no_order_changes_its_unit_but_when_the_host_is_engaged_or_let_go() -> None:
    sold = Contract(guarantee_bps=140e6, ceiling_bps=140e6, punish="never")
    policed = beside(alternating(5), sold)
    frames = policed.run(300)
    for before, after in pairwise(frames):
        was, now = before.orders["a"], after.orders["a"]
        if (was.setpoint_bps is None) is not (now.setpoint_bps is None) and was.holds and now.holds:
            assert before.engaged is not after.engaged
    assert changes(frames) <= 2 * 300 / 30


def test_a_guarantee_in_bits_is_kept_at_the_size_sold_and_above() -> None:
    for size in (350.0, 700.0, 1500.0):
        router = Router(steady(140e6 / 8 / size), size=lambda _, size=size: size)
        policed = beside(router, Contract(guarantee_bps=140e6), other=10e3)
        policed.host.routers["flood"] = Router(between(20, 1e9, FLOOD))
        policed.contracts["flood"] = Contract(measures=(Step.LIMIT,))
        policed.run(40)
        sent = [8 * size * frame.forwarded["a"] for frame in policed.run(60)]
        assert min(sent[5:]) >= 0.95 * 140e6


def test_packets_that_grow_leave_more_to_others() -> None:
    router = Router(steady(60e3), size=lambda at: 350.0 if at < 60 else 1500.0)
    line = Contract(guarantee_bps=112e6, ceiling_bps=112e6, punish="never")
    policed = beside(router, line, other=10e3)
    policed.host.routers["c"] = Router(steady(80e3))
    policed.contracts["c"] = Contract()
    policed.run(40)
    small, large = policed.run(20), policed.run(60)[10:]
    assert mean(small, lambda frame: frame.forwarded["a"]) == pytest.approx(40e3, rel=0.05)
    assert mean(large, lambda frame: frame.forwarded["a"]) == pytest.approx(112e6 / 12e3, rel=0.05)
    more = mean(large, lambda f: f.forwarded["c"]) - mean(small, lambda f: f.forwarded["c"])
    assert more > 0.5 * (40e3 - 112e6 / 12e3)


def test_a_flood_climbs_the_same_ladder_whatever_the_unit_of_its_contract() -> None:
    heights = []
    for contract in (LADDER, replace_terms(LADDER, guarantee_pps=0.0, guarantee_bps=28e6)):
        policed = flooded(contract=contract)
        frames = policed.run(120)
        heights.append([f.round.state.routers["flood"].punishment.height for f in frames])
    assert heights[0] == heights[1]
    assert max(heights[0]) >= 3
