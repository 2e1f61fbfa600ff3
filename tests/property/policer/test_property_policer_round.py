"""A round, whatever is seen: every order can be obeyed, promises stand, doubt punishes nobody."""

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from policer_plant import held_report, report_of

from policer.contracts.contract import MAX_PPS, Contract
from policer.contracts.ladder import Step
from policer.decide.round import decide_round
from policer.decide.state import HostState, HostView, Policy, Round
from policer.decide.telemetry import HostTelemetry, seen
from xtc.modes import Finding, Mode
from xtc.wire import Report, Telemetry

CAPACITY = 1e5
NAMES = "abc"
SCENES: dict[str, dict[str, object]] = {
    "free": {"throughput_pps": 3e4, "offered_pps": 3e4},
    "busy": {"throughput_pps": 6e4, "offered_pps": 9e4},
    "held": {"offered_pps": 1e4},
    "flood": {"offered_pps": 9e5},
    "limited": {"offered_pps": 1.1e4, "limit_pps": 1.1e4},
    "settling": {"offered_pps": 9e5, "finding": Finding.SETTLING},
    "starved": {"throughput_pps": 1e3, "offered_pps": 9e4, "binding": False},
    "saturated": {"offered_pps": 9e5, "finding": Finding.AT_CEILING},
    "blind": {"throughput_pps": None, "offered_pps": None, "mode": Mode.HOLD},
    "over": {"offered_pps": 9e5, "mode": Mode.RELEASED, "lease_remaining_s": 0.0},
    "configured": {"offered_pps": 9e5, "lease_remaining_s": None},
    "troubled": {"offered_pps": 9e5, "problem": "no interface matches"},
    "stale": {"offered_pps": 9e5, "sample_age_s": 9.0},
    "forged": {"offered_pps": 1e12},
}
FREE = {"free", "busy"}


def scene(vr: str, name: str) -> Report:
    if name in FREE:
        return report_of(vr, **SCENES[name])
    return held_report(vr, 1e4, **SCENES[name])


names = st.sampled_from(["flood", "flood", *SCENES])
telemetry = st.dictionaries(st.sampled_from(NAMES), names).map(
    lambda scenes: tuple(scene(vr, name) for vr, name in sorted(scenes.items()))
)
ladders = st.sets(st.sampled_from(Step)).map(lambda some: tuple(s for s in Step if s in some))
any_contract = st.builds(
    Contract,
    guarantee_pps=st.sampled_from([0.0, 5e3, CAPACITY / 3]),
    ceiling_pps=st.sampled_from([None, CAPACITY / 3, 1e6]),
    weight=st.sampled_from([0.001, 1.0, 1000.0]),
    measures=st.one_of(st.just(tuple(Step)), ladders),
    dry_run=st.sampled_from([False, False, True]),
)
contracts = st.dictionaries(st.sampled_from(NAMES), any_contract)
spans = st.sampled_from([1.0, 1.0, 1.0, 0.5, 4.0, 7.0, 400.0])
steps = st.lists(
    st.tuples(
        spans, st.integers(1, 12), telemetry, contracts, st.sampled_from([True, True, False])
    ),
    min_size=1,
    max_size=8,
)
_POLICY = Policy()
LADDER = Contract(guarantee_pps=5e3, measures=tuple(Step))
CLIMB = (1.0, 60, (scene("a", "flood"), scene("b", "busy")), {"a": LADDER}, True)
"""A flood for long enough that the ladder is climbed to its end."""
History = list[tuple[float, int, tuple[Report, ...], dict[str, Contract], bool]]


def played(
    history: History, policy: Policy = _POLICY
) -> Iterator[tuple[HostView, HostState, Round]]:
    """Play some rounds on each scene; yield what was given, what was before, and what came."""
    now, telemetry, state = 0.0, HostTelemetry(), HostState()
    scenes = ((p, r, c, m) for p, times, r, c, m in history for _ in range(times))
    for passed, routers, terms, may_climb in scenes:
        now += passed
        telemetry = seen(telemetry, Telemetry(now, int(now), routers), now, CAPACITY)
        view = HostView(CAPACITY, terms, telemetry)
        decided = decide_round(now, view, state, replace(policy, may_climb=may_climb))
        yield view, state, decided
        state = decided.state


@given(steps)
def test_every_order_can_be_obeyed(history: History) -> None:
    for view, _, decided in played(history):
        assert decided.orders.keys() == view.telemetry.routers.keys()
        for order in decided.orders.values():
            for rate in (order.setpoint_pps, order.limit_pps):
                assert rate is None or 1.0 <= rate <= MAX_PPS
            assert order.setpoint_pps is not None or order.limit_pps is None


@given(st.one_of(steps, steps.map(lambda history: [CLIMB, *history])))
def test_nobody_is_held_below_its_guarantee_but_by_its_own_ladder(history: History) -> None:
    for view, _, decided in played(history):
        for vr, order in decided.orders.items():
            terms = view.contracts.get(vr)
            if terms is None or order.setpoint_pps is None or view.telemetry.distrust:
                continue
            steps_taken = terms.measures[: decided.state.routers[vr].punishment.height]
            if {Step.PAUSE, Step.STOP} & set(steps_taken) and not terms.dry_run:
                assert order.punishment
                continue
            assert order.setpoint_pps >= terms.guarantee_pps * (1 - 1e-6)
            if order.limit_pps is not None:
                assert order.limit_pps > order.setpoint_pps or order.setpoint_pps == MAX_PPS
                assert Step.LIMIT in terms.measures
                assert not terms.dry_run


@given(steps)
def test_a_ladder_is_climbed_one_step_on_proof_alone(history: History) -> None:
    for view, before, decided in played(history):
        for vr, after in decided.state.routers.items():
            was = before.routers[vr].punishment.height if vr in before.routers else 0
            assert after.punishment.height <= was + 1
            if after.punishment.height <= was:
                continue
            report = view.telemetry.routers[vr]
            assert report.mode is Mode.CLOSED_LOOP
            assert report.active
            assert not report.problem
            assert report.offered_pps is not None
            assert report.setpoint_pps is not None
            assert report.offered_pps > 2 * report.setpoint_pps
            assert after.evidence.rounds.count(True) >= 4


@given(steps)
def test_a_dry_run_touches_nobody(history: History) -> None:
    for _, _, decided in played(history, Policy(dry_run=True)):
        assert not any(order.punishment or order.limit_pps for order in decided.orders.values())


def test_these_histories_do_climb_ladders() -> None:
    """Or the properties above would say nothing."""
    heights = {d.state.routers["a"].punishment.height for _, _, d in played([CLIMB])}
    assert heights == set(range(6))
