"""One round of one router: its demand, its evidence, its step on the ladder; pure."""

from dataclasses import replace

from policer.contracts.contract import Contract
from policer.contracts.ladder import Punishment, Step, next_punishment
from policer.decide.burst import saved_after
from policer.decide.demand import held_pps, sent_pps, wanted_pps
from policer.decide.evidence import Evidence, Observation, admissible, proven, weigh
from policer.decide.starvation import starving_after
from policer.decide.state import (
    NEW_ROUTER,
    Demand,
    HostView,
    Policy,
    RouterState,
    Shield,
    ladder_of,
    may_punish,
    only_reported,
)
from xtc.wire import Finding, Mode, Report

FRESH_S = 2.5
"""A sample older than this is ignored."""
REMEMBERED_S = 30.0
"""A router out of sight is assumed to want the same as before for this time, then its guarantee."""
RISE, FADE = 0.02, 0.002
"""Smoothing on a full host: a router's estimated need moves by these shares towards what it shows,
up and down. A starved flow sends less, or its traffic is dropped before it is counted."""
WAKES = 0.1
"""From this share of its guarantee on, an idle router may be about to use all of it."""
LENT = 0.8
"""On a host that is not full, each round keeps this share of an unused reserve."""
SURE = 0.9
"""On a full host, this share of a need that a router showed before remains due to it."""
EXCESS, ACCEPTABLE = 1.3, 1.15
"""Times the setpoint: above the first the host shields the router, below the second it stops."""
USED_UP = 0.97
"""A limit that is used to this share may hide an excess."""
SHIELD_UP, SHIELD_DOWN = 2, 5
"""Rounds in a row after which the host starts, and stops, dropping a router's excess."""
_NO_SHIELD, _SHIELDED = Shield(), Shield(up=True)
_UNPUNISHED = NEW_ROUTER.punishment
"""State of all routers that were never punished."""
_LOOSE = {
    Finding.BLIND,
    Finding.FOREIGN,
    Finding.GONE,
    Finding.LEASE_ENDED,
    Finding.UNRESPONSIVE,
}
"""Findings of a loop that does not hold its router."""


def looked_at(
    now: float, contract: Contract, report: Report, last: RouterState, *, full: bool
) -> Demand:
    """Return the known demand of a router, with what it saved of its burst.

    Args:
        now: seconds of the policer's clock.
        contract: of the router.
        report: of this round.
        last: the previous state.
        full: whether the host may be too full for it to show what it wants.
    """
    throughput = report.throughput_pps
    saved, seen_at = last.saved, now if last.seen_at is None else last.seen_at
    if throughput is not None:
        saved = saved_after(last.saved, contract, throughput, max(0.0, now - seen_at))
    wanted, known_at = _wanted(now, contract, report, last)
    return Demand(
        saved=saved,
        wanted=wanted,
        known_at=known_at,
        needed=_needed(contract, report, last, full=full),
        reserve=_reserve(contract, report, last, full=full),
        seen_at=now,
        configured=_configured(report, last),
    )


def _wanted(
    now: float, contract: Contract, report: Report, last: RouterState
) -> tuple[float, float | None]:
    """Return what a router could use and when that was known; as before if it is out of sight."""
    wanted = wanted_pps(report)
    if wanted is not None:
        return wanted, now
    if last.known_at is not None and now - last.known_at <= REMEMBERED_S:
        return last.wanted, last.known_at
    return contract.guarantee_pps, last.known_at


def _needed(contract: Contract, report: Report, last: RouterState, *, full: bool) -> float:
    """Return the part of its guarantee that a router has needed; on a full host it shows less."""
    if report.throughput_pps is None:
        return last.needed
    shown = min(contract.guarantee_pps, sent_pps(report))
    if last.known_at is None:
        return shown
    before = min(contract.guarantee_pps, last.needed)
    if not full:
        return min(shown, (before + shown) / 2)
    return before + (RISE if shown > before else FADE) * (shown - before)


def lost_pps(contract: Contract, report: Report, last: RouterState) -> float:
    """Return how far a router is below its known need, within its guarantee, in packets/s."""
    if report.throughput_pps is None:
        return 0.0
    return max(0.0, min(contract.guarantee_pps, last.needed) - sent_pps(report))


def _reserve(contract: Contract, report: Report, last: RouterState, *, full: bool) -> float:
    """Return the part of its guarantee that is not lent to others.

    On a full host this is all of it, once a router begins to use it or may always have wanted to.
    On a host that is not full, an unused reserve is soon lent again.
    """
    if report.throughput_pps is None:
        return last.reserve
    guarantee = contract.guarantee_pps
    shown, before = min(guarantee, sent_pps(report)), min(guarantee, last.reserve)
    if not full:
        return max(shown, LENT * before)
    if last.known_at is None or last.needed < WAKES * guarantee <= shown:
        return guarantee
    return max(shown, before + FADE * (shown - before))


def _configured(report: Report, last: RouterState) -> bool:
    """Whether a daemon limits its router by itself: only the configuration's lease has no end."""
    if report.active and report.lease_remaining_s is None:
        return True
    ended = not report.active or report.lease_remaining_s == 0
    return last.configured and not ended


def sent_or_due(report: Report, demand: Demand, *, full: bool) -> float:
    """Return what was sent to a router, or certainly would have been on a host with room."""
    return max(sent_pps(report), SURE * demand.needed if full else 0.0)


def judged(
    now: float,
    view: HostView,
    report: Report,
    last: RouterState,
    *,
    contract: Contract,
    demand: Demand,
    fair_pps: float,
    policy: Policy,
    contended: bool,
) -> RouterState:
    """Weigh one more round of evidence, and take at most one step on the ladder."""
    held = held_pps(report)
    closed = held is not None and _loop_closed(report)
    seen = _observation(now, view, report, max(held or 0.0, fair_pps), closed=closed)
    evidence = weigh(last.evidence, seen, policy.rules)
    may_limit = Step.LIMIT in contract.measures and not only_reported(contract, policy)
    punishment = last.punishment
    if punishment is not _UNPUNISHED or evidence.guilty:
        punishment = _punishment(
            now,
            contract,
            punishment,
            evidence,
            policy,
            may_climb=policy.may_climb and may_punish(contract, contended=contended),
            refused=view.refuses(report.vr, punishment.step),
        )
    return RouterState(
        evidence=evidence,
        punishment=punishment,
        saved=demand.saved,
        shield=_shield(last.shield, seen, held if closed else None) if may_limit else _NO_SHIELD,
        wanted=demand.wanted,
        known_at=demand.known_at,
        needed=demand.needed,
        reserve=demand.reserve,
        seen_at=demand.seen_at,
        configured=demand.configured,
        starving=starving_after(last.starving, contract, report),
        size=last.size,
    )


def _punishment(
    now: float,
    contract: Contract,
    last: Punishment,
    evidence: Evidence,
    policy: Policy,
    *,
    may_climb: bool,
    refused: bool,
) -> Punishment:
    """Return a router's step on its ladder; the ladder of a dry run is reset when the run ends."""
    dry = only_reported(contract, policy)
    after = next_punishment(
        now,
        Punishment() if last.dry and not dry else last,
        evidence.guilty,
        ladder_of(contract),
        policy.escalation,
        proven=may_climb and proven(evidence, now, policy.rules),
        proven_at=evidence.excess_at,
        refused=refused,
    )
    only_said = dry and after.height > 0
    return after if after.dry is only_said else replace(after, dry=only_said)


def _observation(
    now: float, view: HostView, report: Report, due_pps: float, *, closed: bool
) -> Observation:
    """Return the observation of a router in this round.

    Its due rate is its fair share, even if a punishment holds it lower. Otherwise no punishment
    could end that holds a router below its rightful load.
    """
    sighted = report.throughput_pps is not None and not report.problem
    return Observation(
        offered_pps=report.offered_pps,
        due_pps=due_pps,
        healthy=sighted and not view.telemetry.distrust,
        saturated=report.finding is Finding.AT_CEILING,
        held=closed and report.finding is not Finding.SETTLING,
        limited_pps=report.limit_pps,
        at=now,
    )


def _loop_closed(report: Report) -> bool:
    """Whether the loop of a router that is held is really closed."""
    fresh = report.sample_age_s is not None and report.sample_age_s <= FRESH_S
    return fresh and report.mode is Mode.CLOSED_LOOP and report.finding not in _LOOSE


def _shield(shield: Shield, seen: Observation, held: float | None) -> Shield:
    """Raise or lower the shield after enough consistent rounds in a row."""
    said = _worth_a_shield(seen, held)
    if said is None or said is shield.up:
        return _SHIELDED if shield.up else _NO_SHIELD
    rounds = shield.rounds + 1
    if rounds >= (SHIELD_DOWN if shield.up else SHIELD_UP):
        return Shield(not shield.up)
    return Shield(shield.up, rounds)


def _worth_a_shield(seen: Observation, held: float | None) -> bool | None:
    """Whether the host would carry much traffic that the router drops; None if unknown.

    Args:
        seen: of this round.
        held: the setpoint that its closed loop enforces; None if there is none.
    """
    offered, limit = seen.offered_pps, seen.limited_pps
    if held is None or offered is None or not admissible(seen):
        return None
    if offered > EXCESS * held:
        return True
    hidden = limit is not None and offered >= USED_UP * limit
    return False if offered < ACCEPTABLE * held and not hidden else None
