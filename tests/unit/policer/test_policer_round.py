"""A round: from what is seen to orders; and nobody is punished on bad evidence."""

import msgspec
import pytest
from policer_plant import held_report, report_of
from round_rig import ALWAYS, CAPACITY, GOLD, LADDER, Context, flood, full, telemetry

from policer.contracts.contract import MAX_PPS, Contract, Punish
from policer.contracts.ladder import Step
from policer.decide.round import KEPT_S, LEEWAY, LOWERED, PAUSED_PPS, decide_round
from policer.decide.state import HostView, Order, Policy
from policer.decide.telemetry import GONE_AFTER_S
from xtc.modes import Finding, Mode
from xtc.wire import Report


def test_a_calm_host_gets_no_orders_but_to_be_let_go() -> None:
    context = Context(a=GOLD)
    calm = context.decide_round(report_of("a", throughput_pps=3e4, offered_pps=3e4), report_of("b"))
    assert calm.orders == {"a": Order(), "b": Order()}
    assert calm.notes == ()


def test_a_contended_host_is_held() -> None:
    context = Context(a=GOLD)
    context.decide_round(report_of("a", throughput_pps=3e4, offered_pps=3e4), report_of("b"))
    held = context.decide_round(
        report_of("a", throughput_pps=3e4, offered_pps=3e4),
        report_of("b", throughput_pps=6e4, offered_pps=6e4),
    )
    assert [note.kind for note in held.notes] == ["engaged"]
    assert held.orders["a"].setpoint_pps >= 40e3  # type: ignore[operator]  # it is held
    assert held.orders["b"].setpoint_pps == pytest.approx(62.5e3)


def test_what_a_router_was_promised_is_not_lent_on_a_host_that_was_full_when_first_seen() -> None:
    """It may starve already: a flow that does sends less."""
    held = Context(a=GOLD).decide_round(
        report_of("a", throughput_pps=1e3, offered_pps=1e3),
        report_of("b", throughput_pps=95e3, offered_pps=95e3),
    )
    assert held.orders["b"].setpoint_pps == pytest.approx(55e3, rel=0.01)


def test_every_order_is_one_that_a_daemon_takes() -> None:
    """More than nothing, and no more than a port forwards."""
    context = Context(
        a=Contract(guarantee_pps=CAPACITY), b=Contract(0, ceiling_pps=1e9, burst_packets=1e12)
    )
    reports = (flood("a", CAPACITY), report_of("b", offered_pps=1e9), report_of("c"))
    for _ in range(5):
        for order in context.decide_round(*reports).orders.values():
            assert order.setpoint_pps is not None
            assert 1 <= order.setpoint_pps <= MAX_PPS


def test_a_flood_is_found_guilty_and_climbs_its_ladder() -> None:
    context = Context(a=GOLD, b=LADDER)
    heights = [
        context.decide_round(full(), flood()).state.routers["b"].punishment.height
        for _ in range(45)
    ]
    assert heights[:4] == [0, 0, 0, 1]
    assert heights[13] == 2
    assert heights[23] == 3
    assert heights[33] == 4
    assert heights[43] == 5
    assert context.height("a") == 0


def test_its_conviction_is_told_once() -> None:
    context = Context(a=GOLD, b=LADDER)
    told = [context.decide_round(full(), flood()).convicted for _ in range(45)]
    assert [vrs for vrs in told if vrs] == [("b",)]


@pytest.mark.parametrize(
    ("height", "setpoint", "limited"),
    [(2, 10e3, False), (3, 10e3, True), (4, PAUSED_PPS, True)],
)
def test_each_step_is_ordered(height: int, setpoint: float, limited: bool) -> None:
    context = Context(a=GOLD, b=ALWAYS)
    context.punish("b", height)
    order = context.decide_round(report_of("a"), held_report("b", setpoint)).orders["b"]
    assert (order.setpoint_pps, order.punishment) == (setpoint, True)
    assert order.limit_pps == (LEEWAY * setpoint if limited else None)


def test_a_stopped_router_is_taken_from_the_network() -> None:
    context = Context(a=GOLD, b=ALWAYS)
    context.punish("b", 5)
    order = context.decide_round(report_of("a"), held_report("b", 1.0)).orders["b"]
    assert order == Order(PAUSED_PPS, punishment=True, limit_pps=PAUSED_PPS)


def test_a_lowered_router_without_a_guarantee_keeps_a_little_within_its_ceiling() -> None:
    free = Contract(0, measures=(Step.LOWER,))
    context = Context(b=free)
    context.punish("b", 1)
    assert context.decide_round(flood("b")).orders["b"].setpoint_pps == LOWERED * CAPACITY
    context.contracts = {"b": Contract(0, ceiling_pps=500, measures=(Step.LOWER,))}
    assert context.decide_round(flood("b")).orders["b"].setpoint_pps == 500


BAD = [
    flood(throughput_pps=None, offered_pps=None, finding=Finding.BLIND, mode=Mode.HOLD),
    flood(finding=Finding.AT_CEILING),
    flood(finding=Finding.SETTLING),
    flood(finding=Finding.UNRESPONSIVE, mode=Mode.RELEASED),
    flood(finding=Finding.FOREIGN, mode=Mode.MANUAL),
    flood(mode=Mode.MANUAL),
    flood(finding=Finding.LEASE_ENDED, mode=Mode.RELEASED, lease_remaining_s=0.0),
    flood(sample_age_s=30.0),
    flood(problem="vif1.0: claimed by several routers"),
    report_of("b", throughput_pps=2e4, offered_pps=4e5),
]


@pytest.mark.parametrize("report", BAD)
def test_nobody_is_guilty_on_bad_evidence(report: Report) -> None:
    context = Context(a=GOLD, b=LADDER)
    assert context.decide_round(full(), report, rounds=200).state.routers["b"].evidence.rounds == ()
    assert context.height("b") == 0


@pytest.mark.parametrize("report", BAD)
def test_nobody_climbs_on_bad_evidence(report: Report) -> None:
    context = Context(a=GOLD, b=LADDER)
    context.decide_round(full(), flood(), rounds=5)
    assert context.height("b") == 1
    heights = {
        context.decide_round(full(), report).state.routers["b"].punishment.height
        for _ in range(1000)
    }
    assert heights == {1, 0}  # nothing bears the verdict out any more: it comes down, in time


def test_a_host_that_is_not_believed_changes_nothing() -> None:
    context = Context(a=GOLD, b=LADDER)
    before = context.decide_round(full(), flood(), rounds=3)
    after = context.decide_round(full(), flood(), rounds=300, distrust="it lies")
    assert after.state == before.state
    assert after.orders == before.orders


def test_the_same_tick_counts_once() -> None:
    """A round that comes without news is no evidence, and saves no burst."""
    context = Context(a=GOLD, b=LADDER)
    context.decide_round(full(), flood(), rounds=3)
    view = HostView(CAPACITY, context.contracts, telemetry(context.now, full(), flood()))
    for passed in (0.5, 1.0, 2.0, 4.0):
        again = decide_round(context.now + passed, view, context.state, context.policy)
        assert again.state == context.state


def test_a_host_that_is_gone_gets_no_orders_and_keeps_its_state() -> None:
    context = Context(a=GOLD, b=LADDER)
    context.decide_round(full(), flood(), rounds=5)
    view = HostView(CAPACITY, context.contracts, telemetry(context.now, full(), flood()))
    gone = decide_round(context.now + GONE_AFTER_S, view, context.state, context.policy)
    assert gone.orders == {}
    assert gone.state == context.state


def test_a_host_that_is_back_after_an_hour_is_in_step_and_no_harder_punished() -> None:
    context = Context(a=GOLD, b=LADDER)
    before = context.decide_round(full(), flood(), rounds=8)
    context.now += 3600
    after = context.decide_round(full(), flood())
    assert after.orders.keys() == before.orders.keys()
    assert context.height("b") <= 1


def test_a_punishment_ends_though_the_router_sends_more_than_it_leaves() -> None:
    """The flood is over; what it sends now would be no crime if it were not lowered to 10 kp/s."""
    context = Context(a=GOLD, b=LADDER)
    context.punish("b", 2)
    honest = held_report("b", 10e3, offered_pps=30e3)
    quiet = report_of("a", throughput_pps=2e4, offered_pps=2e4)
    heights = [
        context.decide_round(quiet, honest).state.routers["b"].punishment.height for _ in range(200)
    ]
    assert heights[-1] == 0
    assert heights == sorted(heights, reverse=True)


def test_a_flood_that_goes_on_behind_its_punishment_is_not_pardoned() -> None:
    context = Context(a=GOLD, b=LADDER)
    context.punish("b", 5)
    hidden = held_report("b", 1.0, throughput_pps=1.0, offered_pps=5e5, limit_pps=1.0)
    context.decide_round(full(), hidden, rounds=2000)
    assert context.height("b") == 5


def test_a_router_that_was_warned_and_let_go_is_found_decent() -> None:
    """Nothing holds it on a calm host; what it sends there harms nobody."""
    context = Context(a=GOLD, b=LADDER)
    context.decide_round(full(), flood(), rounds=5)
    calm = report_of("b", throughput_pps=2e4, offered_pps=2e4)
    context.decide_round(report_of("a"), calm, rounds=5)
    assert not context.state.routers["b"].evidence.guilty
    context.decide_round(report_of("a"), calm, rounds=60)
    assert context.height("b") == 0


def test_a_dry_run_only_reports() -> None:
    context = Context(a=GOLD, b=Contract(10e3, measures=tuple(Step), dry_run=True))
    said = [note.words for _ in range(45) for note in context.decide_round(full(), flood()).notes]
    order = context.decide_round(full(), flood()).orders["b"]
    assert "stop (dry run: only reported)" in said
    assert order.setpoint_pps is not None
    assert order.setpoint_pps > 10e3
    assert (order.punishment, order.limit_pps) == (False, None)


def test_the_end_of_a_dry_run_begins_the_ladder_at_its_first_step() -> None:
    """What was only reported must not fall on a router all at once."""
    context = Context(a=GOLD, b=Contract(10e3, measures=tuple(Step), dry_run=True))
    context.decide_round(full(), flood(), rounds=60)
    assert context.height("b") == 5
    context.contracts = {"a": GOLD, "b": LADDER}
    context.decide_round(full(), flood())
    assert context.height("b") == 1


CALM = report_of("a", throughput_pps=10e3, offered_pps=10e3)


@pytest.mark.parametrize(("punish", "climbs"), [("when_harming", False), ("always", True)])
def test_on_a_host_with_cpu_to_spare_a_flood_harms_nobody(punish: Punish, *, climbs: bool) -> None:
    """It is held at its ceiling, and what is sent to it may be another's doing."""
    contract = msgspec.structs.replace(LADDER, ceiling_pps=20e3, punish=punish)
    context = Context(a=GOLD, b=contract)
    sent = {"offered_pps": 60e3, "lease_remaining_s": None}
    held = msgspec.structs.replace(flood("b", 20e3), **sent)
    for _ in range(60):
        played = context.decide_round(CALM, held)
    assert not context.state.standing.engaged
    assert context.state.routers["b"].evidence.guilty
    assert (context.height("b") > 0) is climbs
    assert ("punished" in {note.kind for note in played.notes}) is False


@pytest.mark.parametrize("height", [4, 5])
def test_no_step_goes_below_the_guarantee_once_its_host_is_calm(height: int) -> None:
    context = Context(a=GOLD, b=LADDER)
    context.punish("b", height)
    order = context.decide_round(CALM, held_report("b", 1.0)).orders["b"]
    assert order.setpoint_pps == LADDER.guarantee_pps
    assert order.limit_pps is not None
    assert order.limit_pps > LADDER.guarantee_pps


def test_one_that_is_never_punished_has_no_ladder() -> None:
    never = msgspec.structs.replace(LADDER, punish="never")
    context = Context(a=GOLD, b=never)
    context.decide_round(full(), flood(), rounds=60)
    assert context.state.standing.engaged
    assert context.state.routers["b"].evidence.guilty
    assert context.height("b") == 0


def test_nothing_climbs_while_the_brake_is_on() -> None:
    context = Context(a=GOLD, b=LADDER)
    context.policy = Policy(may_climb=False)
    context.decide_round(full(), flood(), rounds=100)
    assert context.height("b") == 0
    context.policy = Policy()
    context.decide_round(full(), flood(), rounds=5)
    context.policy = Policy(may_climb=False)
    context.decide_round(full(), flood(), rounds=100)
    assert context.height("b") == 1


def test_a_router_that_vanished_is_no_other_when_it_is_back() -> None:
    context = Context(a=GOLD, b=LADDER)
    context.decide_round(full(), flood(), rounds=30)
    context.decide_round(full(), rounds=300)
    assert context.decide_round(full()).orders.keys() == {"a"}
    assert context.height("b") == 3
    context.decide_round(full(), rounds=int(KEPT_S))
    assert "b" not in context.state.routers


def test_what_was_inherited_waits_for_its_router() -> None:
    context = Context(a=GOLD, b=LADDER)
    context.punish("b", 3)
    context.decide_round(full(), rounds=10)
    assert context.height("b") == 3


def test_a_router_that_cannot_be_seen_keeps_its_share() -> None:
    context = Context(a=GOLD)
    busy = report_of("b", throughput_pps=6e4, offered_pps=6e4)
    context.decide_round(report_of("a", throughput_pps=5e4, offered_pps=5e4), busy)
    blind = held_report("a", 5e4, throughput_pps=None, offered_pps=None, mode=Mode.HOLD)
    assert context.decide_round(blind, busy, rounds=29).state.standing.engaged
    order = context.decide_round(blind, busy, rounds=2000).orders["a"]
    assert order.setpoint_pps == pytest.approx(80e3)


def test_a_router_that_its_configuration_would_hold_is_leased_what_it_was_promised() -> None:
    """To let it go would hold a router with a guarantee of 40 kp/s at 5."""
    context = Context(a=GOLD)
    configured = held_report("a", 5e3, lease_remaining_s=None)
    assert context.decide_round(configured).orders["a"].setpoint_pps == MAX_PPS
    leased = held_report("a", MAX_PPS, throughput_pps=2e4, offered_pps=2e4)
    assert context.decide_round(leased, rounds=50).orders["a"].setpoint_pps == MAX_PPS
    free = report_of("a", throughput_pps=2e4, offered_pps=2e4)
    assert context.decide_round(free).orders["a"] == Order()


def test_one_without_a_contract_is_left_to_its_configuration() -> None:
    assert (
        Context().decide_round(held_report("a", 5e3, lease_remaining_s=None)).orders["a"] == Order()
    )


def test_a_router_that_its_own_cap_holds_is_no_reason_to_hold_others_down() -> None:
    context = Context(a=GOLD)
    low = held_report("a", 40e3, throughput_pps=20e3, offered_pps=60e3, finding=Finding.SETTLING)
    assert context.decide_round(low, full("b", 55e3), rounds=20).state.standing.harmed == ()
    starved = replace_report(low, binding=False)
    assert context.decide_round(starved, full("b", 55e3), rounds=5).state.standing.harmed == ("a",)


def test_one_that_is_held_in_bits_is_no_reason_either() -> None:
    context = Context(a=GOLD)
    low = held_report("a", 40e3, throughput_pps=20e3, offered_pps=60e3)
    in_bits = replace_report(low, setpoint_pps=None, setpoint_bps=10e6)
    assert context.decide_round(in_bits, full("b", 55e3), rounds=20).state.standing.harmed == ()


def test_a_contract_overrides_bits_of_the_configuration() -> None:
    configured = held_report("a", lease_remaining_s=None, setpoint_pps=None, setpoint_bps=2e6)
    assert Context(a=GOLD).decide_round(configured).orders["a"].setpoint_pps == MAX_PPS
    assert Context().decide_round(configured).orders["a"] == Order()


def replace_report(report: Report, **changed: object) -> Report:
    fields = {name: getattr(report, name) for name in report.__struct_fields__}
    return Report(**(fields | changed))


def test_a_shield_rises_on_the_second_round_of_excess_and_takes_nothing() -> None:
    context = Context(a=GOLD, b=LADDER)
    first = context.decide_round(full(), flood(finding=Finding.SETTLING))
    assert first.orders["b"].limit_pps is None
    second = context.decide_round(full(), flood(finding=Finding.SETTLING))
    order = second.orders["b"]
    assert order.setpoint_pps is not None
    assert order.limit_pps == pytest.approx(LEEWAY * order.setpoint_pps)
    assert not order.punishment
    assert "shielded" in [note.kind for note in second.notes]


def test_it_falls_when_the_excess_is_over() -> None:
    context = Context(a=GOLD, b=LADDER)
    context.decide_round(full(), flood(), rounds=3)
    played = context.decide_round(full(), held_report("b", 20e3), rounds=5)
    assert played.orders["b"].limit_pps is None
    assert "unshielded" in [note.kind for note in played.notes]


def test_it_is_never_raised_where_the_contract_allows_no_limit() -> None:
    context = Context(a=GOLD, b=Contract(10e3, measures=(Step.WARN, Step.LOWER)))
    context.decide_round(full(), flood(), rounds=100)
    assert context.decide_round(full(), flood()).orders["b"].limit_pps is None


def test_a_burst_is_lent_above_the_ceiling_and_then_no_more() -> None:
    context = Context(b=Contract(0, ceiling_pps=10e3, burst_packets=30e3))
    context.decide_round(report_of("b"), rounds=10)
    setpoints = [
        context.decide_round(report_of("b", throughput_pps=22e3, offered_pps=22e3))
        .orders["b"]
        .setpoint_pps
        for _ in range(4)
    ]
    assert setpoints == [None, 16e3, 10e3, 10e3]


def test_4096_routers_get_their_orders() -> None:
    contracts = {f"r{i}": Contract(guarantee_pps=CAPACITY / 4096) for i in range(4096)}
    context = Context(**contracts)
    reports = [report_of(vr, throughput_pps=20.0, offered_pps=1000.0) for vr in contracts]
    orders = context.decide_round(*reports).orders
    assert len(orders) == 4096
    assert all((order.setpoint_pps or 0) >= CAPACITY / 4096 * 0.999 for order in orders.values())


# --- bursts


def test_a_contracts_burst_goes_with_its_order() -> None:
    context = Context(a=Contract(40e3, burst=8e3), b=Contract(10e3))
    orders = context.decide_round(full(), flood()).orders
    assert orders["a"].setpoint_pps is not None
    assert orders["a"].burst == 8e3
    assert orders["b"].burst is None


def test_a_paused_router_has_the_burst_of_its_pause() -> None:
    context = Context(a=GOLD, b=Contract(10e3, measures=tuple(Step), burst=60 * 10e3))
    context.punish("b", len(Step))
    order = context.decide_round(full(), flood()).orders["b"]
    assert (order.setpoint_pps, order.burst) == (PAUSED_PPS, 60.0)


def test_a_router_that_is_let_go_has_no_burst() -> None:
    context = Context(a=Contract(40e3, burst=8e3))
    assert context.decide_round(report_of("a")).orders["a"] == Order()
