"""What a round makes of one router, number by number: demand, evidence, ladder and shield."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields
from policer_plant import held_report, report_of

from policer.contracts.contract import Contract
from policer.contracts.ladder import Escalation, Punishment, Step
from policer.decide.evidence import Evidence
from policer.decide.judge import judged, looked_at, lost_pps, sent_or_due
from policer.decide.state import UNPROMISED, Demand, HostView, Policy, RouterState, Shield
from policer.decide.telemetry import HostTelemetry
from xtc.modes import Finding, Mode
from xtc.wire import Report

GOLD = Contract(guarantee_pps=10e3, measures=tuple(Step))
BLIND = report_of("a", throughput_pps=None, offered_pps=None, interfaces=("vif",))


def sending(pps: float) -> Report:
    return report_of("a", throughput_pps=pps, offered_pps=pps)


def knew(**changed: float | bool | None) -> RouterState:
    """What was known at second 99 of a router."""
    fields = {"wanted": 3e3, "known_at": 99.0, "needed": 4e3, "reserve": 5e3, "seen_at": 99.0}
    return RouterState(**{**fields, **changed})  # type: ignore[arg-type]


def look(report: Report, last: RouterState, *, full: bool = False, now: float = 100.0) -> Demand:
    return looked_at(now, GOLD, report, last, full=full)


# ---- demand ----------------------------------------------------------------------------------


def test_a_burst_is_saved_for_the_time_since_the_router_was_seen() -> None:
    contract = Contract(0, ceiling_pps=10e3, burst_packets=50e3)
    for seen_at, saved in ((None, 1e3), (100.0, 1e3), (98.0, 13e3), (105.0, 1e3)):
        last = knew(saved=1e3, seen_at=seen_at)
        found = looked_at(100.0, contract, sending(4e3), last, full=False)
        assert (found.saved, found.seen_at) == (saved, 100.0)
    unseen = looked_at(100.0, contract, BLIND, knew(saved=1e3, seen_at=98.0), full=False)
    assert (unseen.saved, unseen.seen_at) == (1e3, 100.0)


def test_what_a_router_wants_is_known_while_it_is_seen() -> None:
    found = look(sending(7e3), knew())
    assert (found.wanted, found.known_at) == (7e3, 100.0)


@pytest.mark.parametrize(
    ("known_at", "wanted"), [(99.0, 3e3), (70.0, 3e3), (69.9, 10e3), (None, 10e3)]
)
def test_and_remembered_for_30_s_and_then_taken_to_be_the_guarantee(
    known_at: float | None, wanted: float
) -> None:
    found = look(BLIND, knew(known_at=known_at))
    assert (found.wanted, found.known_at) == (wanted, known_at)


@pytest.mark.parametrize("full", [False, True])
def test_a_router_that_is_not_seen_needs_and_reserves_what_it_did(full: bool) -> None:
    found = look(BLIND, knew(), full=full)
    assert (found.needed, found.reserve) == (4e3, 5e3)
    assert lost_pps(GOLD, BLIND, knew()) == 0.0


@pytest.mark.parametrize(
    ("pps", "before", "needed"),
    [
        (8e3, 4e3, 6e3),  # half of a rise
        (2e3, 4e3, 2e3),  # all of a fall
        (50e3, 4e3, 7e3),  # up to its guarantee
        (50e3, 40e3, 10e3),  # which was lower than what it had shown
        (4e3, 4e3, 4e3),
    ],
)
def test_on_a_host_with_room_a_need_falls_at_once_and_rises_by_halves(
    pps: float, before: float, needed: float
) -> None:
    assert look(sending(pps), knew(needed=before)).needed == needed


@pytest.mark.parametrize(
    ("pps", "before", "needed"),
    [(8e3, 4e3, 4.08e3), (2e3, 4e3, 3.996e3), (50e3, 4e3, 4.12e3), (2e3, 40e3, 9.984e3)],
)
def test_on_a_full_host_it_goes_up_by_2_percent_and_down_by_a_fifth_of_one(
    pps: float, before: float, needed: float
) -> None:
    found = look(sending(pps), knew(needed=before), full=True)
    assert found.needed == pytest.approx(needed, rel=1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_what_a_router_shows_first_it_is_taken_to_need(full: bool) -> None:
    assert look(sending(7e3), knew(known_at=None), full=full).needed == 7e3


def test_what_a_router_lost_is_what_it_needed_and_shows_no_more() -> None:
    assert lost_pps(GOLD, sending(1e3), knew()) == 3e3
    assert lost_pps(GOLD, sending(1e3), knew(needed=40e3)) == 9e3
    assert lost_pps(GOLD, sending(5e3), knew()) == 0.0


@pytest.mark.parametrize(
    ("pps", "before", "reserve"),
    [(1e3, 5e3, 4e3), (4.5e3, 5e3, 4.5e3), (50e3, 5e3, 10e3), (1e3, 50e3, 8e3)],
)
def test_on_a_host_with_room_four_fifths_of_an_unused_reserve_are_left(
    pps: float, before: float, reserve: float
) -> None:
    assert look(sending(pps), knew(reserve=before)).reserve == pytest.approx(reserve, rel=1e-12)


@pytest.mark.parametrize(
    ("pps", "last", "reserve"),
    [
        (1e3, knew(), 4.992e3),  # fades by a fifth of a percent
        (7e3, knew(), 7e3),
        (0.5e3, knew(known_at=None), 10e3),  # it may always have wanted all
        (1e3, knew(needed=0.9e3), 10e3),  # it wakes: from a tenth of its guarantee on
        (0.9e3, knew(needed=0.9e3), 4.9918e3),  # below that it does not
        (50e3, knew(needed=0.9e3), 10e3),
        (1e3, knew(needed=1e3), 4.992e3),  # it was awake
    ],
)
def test_on_a_full_host_a_router_that_wakes_has_all_of_its_guarantee_reserved(
    pps: float, last: RouterState, reserve: float
) -> None:
    found = look(sending(pps), last, full=True)
    assert found.reserve == pytest.approx(reserve, rel=1e-12)


@pytest.mark.parametrize(
    ("active", "remaining", "before", "configured"),
    [
        (True, None, False, True),
        (True, 5.0, False, False),
        (True, 5.0, True, True),
        (True, 0.0, True, False),
        (False, None, True, False),
        (False, 5.0, True, False),
        (False, None, False, False),
    ],
)
def test_a_lease_without_end_is_the_configurations(
    active: bool, remaining: float | None, before: bool, configured: bool
) -> None:
    report = held_report("a", active=active, lease_remaining_s=remaining)
    assert look(report, knew(configured=before)).configured is configured


def test_on_a_full_host_nine_tenths_of_a_need_count_as_sent() -> None:
    demand = look(sending(2e3), knew(needed=4e3), full=True)
    assert sent_or_due(sending(2e3), demand, full=True) == pytest.approx(0.9 * 3.996e3)
    assert sent_or_due(sending(2e3), demand, full=False) == 2e3
    assert sent_or_due(sending(3.9e3), demand, full=True) == 3.9e3
    assert sent_or_due(sending(0.0), demand, full=False) == 0.0


# ---- evidence --------------------------------------------------------------------------------

NOW = 100.0
FLOOD = held_report("a", 10e3, throughput_pps=10e3, offered_pps=100e3)


def judge(
    report: Report,
    last: RouterState | None = None,
    *,
    fair: float = 0.0,
    contract: Contract = GOLD,
    policy: Policy | None = None,
    distrust: str = "",
) -> RouterState:
    view = HostView(100e3, {"a": contract}, HostTelemetry(NOW, distrust=distrust))
    before = last or RouterState()
    return judged(
        NOW,
        view,
        report,
        before,
        contract=contract,
        demand=looked_at(NOW, contract, report, before, full=False),
        fair_pps=fair,
        policy=policy or Policy(),
        contended=True,
    )


def rounds(report: Report, fair: float = 0.0, distrust: str = "") -> tuple[bool | None, ...]:
    return judge(report, fair=fair, distrust=distrust).evidence.rounds


def test_a_flood_counts_against_a_router_by_its_setpoint_or_its_fair_share() -> None:
    assert rounds(FLOOD) == (True,)
    assert rounds(FLOOD, fair=49e3) == (True,)
    assert rounds(FLOOD, fair=51e3) == (None,)
    assert rounds(FLOOD, fair=70e3) == (False,)
    assert rounds(with_fields(FLOOD, setpoint_pps=51e3), fair=1e3) == (None,)


def test_a_released_router_is_judged_by_its_fair_share_alone() -> None:
    """It is not held, so that only what is acceptable counts."""
    free = report_of("a", throughput_pps=9e3, offered_pps=9e3)
    assert rounds(free, fair=10e3) == (False,)
    assert rounds(with_fields(free, offered_pps=90e3), fair=10e3) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"throughput_pps": None},
        {"offered_pps": None},
        {"problem": "vif1.0: claimed by several routers"},
        {"finding": Finding.AT_CEILING},
        {"finding": Finding.SETTLING},
        {"finding": Finding.BLIND},
        {"finding": Finding.FOREIGN},
        {"finding": Finding.GONE},
        {"finding": Finding.LEASE_ENDED},
        {"finding": Finding.UNRESPONSIVE},
        {"mode": Mode.HOLD},
        {"mode": Mode.MANUAL},
        {"mode": Mode.DEGRADED},
        {"mode": Mode.RELEASED},
        {"sample_age_s": None},
        {"sample_age_s": 2.6},
        {"active": False},
        {"lease_remaining_s": 0.0},
    ],
)
def test_a_flood_counts_only_of_a_router_that_is_seen_and_held(changed: dict[str, object]) -> None:
    assert rounds(with_fields(FLOOD, **changed)) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"finding": Finding.NOT_BINDING},
        {"finding": Finding.AT_FLOOR},
        {"sample_age_s": 2.5},
        {"lease_remaining_s": None},
    ],
)
def test_what_does_not_loosen_a_loop_makes_a_flood_no_better(changed: dict[str, object]) -> None:
    assert rounds(with_fields(FLOOD, **changed)) == (True,)


def test_a_host_that_is_not_believed_convicts_nobody() -> None:
    assert rounds(FLOOD, distrust="a router is reported twice") == ()


def test_a_limit_that_is_used_up_may_hide_a_flood() -> None:
    calm = held_report("a", 10e3, offered_pps=9.5e3)
    assert rounds(calm) == (False,)
    assert rounds(with_fields(calm, limit_pps=10e3)) == (None,)
    assert rounds(with_fields(calm, limit_pps=11e3)) == (False,)


def test_what_is_known_of_demand_is_remembered() -> None:
    contract = Contract(10e3, ceiling_pps=20e3, burst_packets=9e3)
    last = knew(saved=1e3, needed=4e3, reserve=9e3, configured=True)
    report = held_report("a", 10e3, throughput_pps=15e3, offered_pps=16e3)
    found = judge(report, last, contract=contract)
    assert (found.saved, found.wanted, found.known_at, found.seen_at) == (6e3, 16e3, NOW, NOW)
    assert (found.needed, found.reserve, found.configured) == (7e3, 10e3, True)


# ---- ladder ----------------------------------------------------------------------------------

NEARLY = Evidence(rounds=(True, True, True), at=NOW - 1, excess_at=NOW - 1)


def test_the_round_that_proves_it_takes_the_first_step() -> None:
    found = judge(FLOOD, RouterState(evidence=NEARLY))
    assert found.evidence.guilty
    assert found.punishment == Punishment(1, NOW, guilty=True, step=Step.WARN)


def test_no_step_is_taken_while_ladders_may_not_be_climbed() -> None:
    found = judge(FLOOD, RouterState(evidence=NEARLY), policy=Policy(may_climb=False))
    assert found.evidence.guilty
    assert found.punishment.height == 0


def test_nor_by_a_round_that_proves_nothing() -> None:
    guilty = Evidence(rounds=(True,) * 4, guilty=True, at=NOW - 1, excess_at=NOW - 1)
    between = with_fields(FLOOD, offered_pps=17e3)
    assert judge(between, RouterState(evidence=guilty)).punishment.height == 0


def test_a_router_without_a_contract_has_no_ladder() -> None:
    found = judge(FLOOD, RouterState(evidence=NEARLY), contract=UNPROMISED)
    assert found.evidence.guilty
    assert found.punishment.height == 0
    same_terms = Contract(guarantee_pps=0.0, measures=(Step.LIMIT,))
    assert judge(FLOOD, RouterState(evidence=NEARLY), contract=same_terms).punishment.height == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_dry_run_reports_steps_and_leaves_them_when_it_ends(whole: bool) -> None:
    contract = GOLD if whole else with_fields(GOLD, dry_run=True)
    policy = Policy(dry_run=whole)
    dry = judge(FLOOD, RouterState(evidence=NEARLY), contract=contract, policy=policy)
    assert dry.punishment == Punishment(1, NOW, guilty=True, step=Step.WARN, dry=True)
    for_real = judge(FLOOD, with_fields(dry, evidence=NEARLY))
    assert for_real.punishment == Punishment(1, NOW, guilty=True, step=Step.WARN)
    calm = held_report("a", 10e3)
    assert judge(calm, with_fields(dry, evidence=Evidence())).punishment.height == 0
    innocent = judge(calm, RouterState(), contract=contract, policy=policy).punishment
    assert not innocent.dry


def test_a_dry_run_climbs_its_ladder_on_paper() -> None:
    guilty = Evidence(rounds=(True,) * 4, guilty=True, at=NOW - 1, excess_at=NOW - 1)
    warned = Punishment(1, NOW - 10.0, guilty=True, step=Step.WARN, dry=True)
    last = RouterState(evidence=guilty, punishment=warned)
    found = judge(FLOOD, last, policy=Policy(dry_run=True)).punishment
    assert found == Punishment(2, NOW, guilty=True, step=Step.LOWER, dry=True)


def test_a_punishment_in_force_stays_in_force_when_a_dry_run_begins() -> None:
    last = Punishment(2, NOW - 1, guilty=True, step=Step.LOWER)
    guilty = Evidence(rounds=(True,) * 4, guilty=True, at=NOW - 1, excess_at=NOW - 1)
    found = judge(FLOOD, RouterState(evidence=guilty, punishment=last), policy=Policy(dry_run=True))
    assert found.punishment == replace(last, dry=True)


def test_the_patience_is_the_policys() -> None:
    guilty = Evidence(rounds=(True,) * 4, guilty=True, at=NOW - 1, excess_at=NOW - 1)
    last = RouterState(evidence=guilty, punishment=Punishment(1, NOW - 3, True, Step.WARN))
    assert judge(FLOOD, last).punishment.height == 1
    hasty = Policy(escalation=Escalation(climb_s=3.0))
    assert judge(FLOOD, last, policy=hasty).punishment.height == 2


def test_a_guilty_one_that_shows_no_excess_steps_down_by_when_it_last_did() -> None:
    calm = held_report("a", 10e3, offered_pps=17e3)
    for excess_at, height in ((NOW - 299.0, 2), (NOW - 300.0, 1)):
        guilty = Evidence(rounds=(None,) * 5, guilty=True, at=NOW - 1, excess_at=excess_at)
        last = Punishment(2, NOW - 400.0, guilty=True, step=Step.LOWER)
        found = judge(calm, RouterState(evidence=guilty, punishment=last))
        assert found.punishment.height == height


# ---- shield ----------------------------------------------------------------------------------


def shield(report: Report, last: Shield | None = None, **options: Contract | Policy) -> Shield:
    before = RouterState(shield=last or Shield())
    return judge(report, before, **options).shield  # type: ignore[arg-type]


UP = Shield(up=True)


def offers(times: float, **changed: object) -> Report:
    return held_report("a", 10e3, offered_pps=times * 10e3, **changed)


def test_two_rounds_of_excess_raise_a_shield_and_five_calm_ones_lower_it() -> None:
    assert shield(offers(1.31)) == Shield(up=False, rounds=1)
    assert shield(offers(1.31), Shield(rounds=1)) == UP
    for passed in range(4):
        assert shield(offers(1.0), Shield(up=True, rounds=passed)) == Shield(True, passed + 1)
    assert shield(offers(1.0), Shield(up=True, rounds=4)) == Shield()


@pytest.mark.parametrize(
    ("times", "up", "counts"),
    [
        (1.31, False, True),
        (1.3, False, False),
        (1.2, False, False),
        (1.15, True, False),
        (1.14, True, True),
        (1.31, True, False),
        (1.0, False, False),
    ],
)
def test_between_1_15_and_1_3_times_its_setpoint_nothing_changes(
    times: float, up: bool, counts: bool
) -> None:
    assert shield(offers(times), Shield(up, 1 if up else 0)).rounds == (
        (2 if up else 1) if counts else 0
    )


def test_a_limit_used_to_97_percent_may_hide_the_excess() -> None:
    calm = offers(0.97, limit_pps=10e3)
    assert shield(calm, Shield(up=True, rounds=3)) == UP
    assert shield(offers(0.969, limit_pps=10e3), Shield(True, 3)) == Shield(True, 4)
    assert shield(offers(1.0, limit_pps=11e3), Shield(True, 3)) == Shield(True, 4)


@pytest.mark.parametrize(
    "changed",
    [
        {"active": False},
        {"offered_pps": None},
        {"throughput_pps": None},
        {"finding": Finding.AT_CEILING},
        {"mode": Mode.MANUAL},
        {"sample_age_s": 3.0},
    ],
)
@pytest.mark.parametrize("up", [True, False])
def test_where_nothing_can_be_said_a_shield_stays(changed: dict[str, object], up: bool) -> None:
    flood = with_fields(offers(5.0), **changed)
    assert shield(flood, Shield(up, 1)) == Shield(up)


def test_a_settling_loop_may_be_shielded() -> None:
    """It is told what it is due, even if it has not reached it."""
    assert shield(offers(5.0, finding=Finding.SETTLING), Shield(rounds=1)) == UP


def test_only_a_contract_that_allows_limits_is_shielded() -> None:
    last = Shield(rounds=1)
    assert shield(offers(5.0), last, contract=UNPROMISED) == UP
    mild = Contract(10e3, measures=(Step.WARN,))
    assert shield(offers(5.0), UP, contract=mild) == Shield()
    assert shield(offers(5.0), UP, contract=with_fields(GOLD, dry_run=True)) == Shield()
    assert shield(offers(5.0), UP, policy=Policy(dry_run=True)) == Shield()
