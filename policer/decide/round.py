"""One round of one host: from its contracts and telemetry to orders; pure.

Each round, once a second, decides what each router could use, whether it misbehaves, which routers
to hold at which setpoint, and what the ladder adds. `policer.decide.dispatch` turns changed orders
into messages. A repeated tick, or a host that is not believed, changes nothing: the existing orders
stay in force. A host that is silent gets no orders, and its leases expire.
"""

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from policer.contracts.contract import MAX_PPS, Contract
from policer.contracts.ladder import Step
from policer.decide.allocation import Claim, allocate, promised
from policer.decide.burst import ceiling_now
from policer.decide.demand import DELIVERY, is_held, wasted_pps
from policer.decide.engagement import decide
from policer.decide.in_packets import at_its_ceiling, seen_in_packets, sized, terms_of
from policer.decide.judge import EXCESS, judged, looked_at, lost_pps, sent_or_due
from policer.decide.notes import notes
from policer.decide.state import (
    LET_GO,
    NEW_ROUTER,
    Demand,
    HostState,
    HostView,
    Order,
    Policy,
    Round,
    RouterState,
    steps_in_force,
)
from policer.decide.telemetry import MOST_ROUTERS
from xtc.wire import Finding, Report

LOWERED = 0.01
"""Setpoint of a punished router without a guarantee, as a share of the host's capacity."""
PAUSED_PPS = 1.0
"""Setpoint of a paused router, and the lowest of any: the router gets its smallest cap."""
LEEWAY = 1.1
"""A limited router is sent this many times its setpoint, so that it never waits for packets."""
KEPT_S = 3600.0
"""The state of a router that vanished is kept for this time, in case the router comes back."""
LOSS, CROWDED = 0.1, 0.1
"""A loss of this share of all work, with a rise that exceeds the loss by this share, is no
accident."""
FULL = 0.95
"""At this share of the work at which that was seen, the host counts as full again."""


def decide_round(now: float, view: HostView, before: HostState, policy: Policy) -> Round:
    """Decide for one host; routers that are missing from its telemetry get no orders."""
    if not view.telemetry.reachable(now):
        return Round(before, {}, ())
    if view.telemetry.distrust or view.telemetry.host_clock == before.host_clock:
        return Round(before, _orders(view, terms_of(view, before), before, policy), ())
    before = sized(now, view, before)
    view, terms = seen_in_packets(view, before), terms_of(view, before)
    state = _decided(now, view, terms, before, policy)
    convicted = tuple(
        vr
        for vr in terms
        if state.routers[vr].punishment.height
        and not before.routers.get(vr, NEW_ROUTER).punishment.height
    )
    said = tuple(notes(before, state, terms, policy))
    return Round(state, _orders(view, terms, state, policy), said, convicted)


def _decided(
    now: float,
    view: HostView,
    terms: Mapping[str, Contract],
    before: HostState,
    policy: Policy,
) -> HostState:
    """Judge each router by its fair share, and decide which to hold at which setpoint."""
    reports = view.telemetry.routers
    wasted = {vr: wasted_pps(report) for vr, report in reports.items()}
    forwarded = sum(c.cost * (reports[vr].throughput_pps or 0.0) for vr, c in terms.items())
    # Work of the routers, with what the host wastes on packets they drop.
    work = forwarded + sum(c.cost * wasted[vr] for vr, c in terms.items())
    full_at = _full_at(work, view, terms, before, policy)
    full = _full(work, full_at, view, before, policy)
    looked = {
        vr: looked_at(now, contract, reports[vr], before.routers.get(vr, NEW_ROUTER), full=full)
        for vr, contract in terms.items()
    }
    plain = {
        vr: _unpunished(vr, terms[vr], demand, sent_or_due(reports[vr], demand, full=full))
        for vr, demand in looked.items()
    }
    fair = _fair(list(plain.values()), view, policy)
    routers = {
        vr: judged(
            now,
            view,
            reports[vr],
            before.routers.get(vr, NEW_ROUTER),
            contract=terms[vr],
            demand=demand,
            fair_pps=fair[vr],
            policy=policy,
            contended=before.standing.engaged,
        )
        for vr, demand in looked.items()
    }
    claims = [
        _claim(
            claim,
            _lowered(terms[vr], routers[vr], view, policy, contended=before.standing.engaged),
        )
        for vr, claim in plain.items()
    ]
    standing = decide(
        claims,
        _forwarded(reports),
        view.capacity_pps,
        before.standing,
        policy.engagement,
        wasted=sum(c.cost * _accepted(wasted[vr], reports[vr]) for vr, c in terms.items()),
        carried=full_at / FULL if full else math.inf,
    )
    kept = _kept(now, before, routers)
    clock = view.telemetry.host_clock
    return HostState(now, standing, {**kept, **routers}, clock, work, full_at)


def _full_at(
    work: float, view: HostView, terms: Mapping[str, Contract], before: HostState, policy: Policy
) -> float:
    """Return the work at which the host seems full, regardless of its configured capacity.

    It is full if some routers rise by more than others with a guarantee lose at the same time.
    Packets that it drops before a router counts them, or cannot receive, look like less demand.
    """
    lost = sum(
        contract.cost
        * lost_pps(contract, view.telemetry.routers[vr], before.routers.get(vr, NEW_ROUTER))
        for vr, contract in terms.items()
    )
    busy = work >= policy.engagement.calm * view.capacity_pps or view.telemetry.exhausted
    if busy and lost >= LOSS * work and work - before.work >= CROWDED * lost:
        return FULL * work
    return before.full_at * policy.engagement.forget


def _full(work: float, full_at: float, view: HostView, before: HostState, policy: Policy) -> bool:
    """Whether the host may be too full for its routers to show what they need.

    If all others are held at the least, a router shows all that it needs.
    """
    at_least = before.standing.shared <= policy.engagement.least
    return work >= min(full_at, policy.engagement.engage * view.capacity_pps) and not at_least


def _accepted(wasted: float, report: Report) -> float:
    """Return what is wasted on a router, up to the amount that a shield would save."""
    return min(wasted, DELIVERY * (EXCESS - 1) * (report.throughput_pps or 0.0))


def _fair(claims: Sequence[Claim], view: HostView, policy: Policy) -> dict[str, float]:
    """Return each router's setpoint if none were punished and no guarantee suffered."""
    shared = max(policy.engagement.target * view.capacity_pps, promised(claims))
    return allocate(claims, min(shared, view.capacity_pps))


def _unpunished(vr: str, contract: Contract, demand: Demand, sent: float) -> Claim:
    """Return a router's claim by its contract."""
    ceiling = ceiling_now(contract, demand.saved)
    return Claim(
        vr,
        demand.wanted,
        min(contract.guarantee_pps, ceiling),
        ceiling,
        contract.weight,
        contract.cost,
        demand.reserve,
        sent,
    )


def _claim(claim: Claim, lowered: float) -> Claim:
    """Return a router's claim within the limit of its ladder."""
    if lowered == float("inf"):
        return claim
    guarantee, ceiling = min(claim.guarantee, lowered), min(claim.ceiling, lowered)
    return replace(claim, guarantee=guarantee, ceiling=ceiling)


def _lowered(
    contract: Contract, state: RouterState, view: HostView, policy: Policy, *, contended: bool
) -> float:
    """Return the limit of the ladder on a router's throughput; infinite if there is none."""
    if not state.punishment.height:
        return float("inf")
    steps = steps_in_force(contract, state, policy, contended=contended)
    if Step.PAUSE in steps or Step.STOP in steps:
        return PAUSED_PPS
    lowest = max(contract.guarantee_pps, LOWERED * view.capacity_pps)
    return lowest if Step.LOWER in steps else float("inf")


def _forwarded(reports: Mapping[str, Report]) -> dict[str, float]:
    """Return the throughput of the routers that only the host can slow down.

    If its cap or shield limits a router, the daemon brings it to its setpoint by itself.
    """
    return {
        vr: report.throughput_pps
        for vr, report in reports.items()
        if report.throughput_pps is not None
        and not (is_held(report) and report.binding and report.finding is not Finding.AT_CEILING)
    }


def _kept(
    now: float, before: HostState, present: Mapping[str, RouterState]
) -> dict[str, RouterState]:
    """Keep the state of routers that are missing from the telemetry, for a limited time."""
    absent = {
        vr: state if state.seen_at is not None else replace(state, seen_at=now)
        for vr, state in before.routers.items()
        if vr not in present and (state.seen_at is None or now - state.seen_at < KEPT_S)
    }
    latest = sorted(absent, key=lambda vr: absent[vr].seen_at or 0.0)[-MOST_ROUTERS:]
    return absent if len(absent) == len(latest) else {vr: absent[vr] for vr in latest}


def _orders(
    view: HostView, terms: Mapping[str, Contract], state: HostState, policy: Policy
) -> dict[str, Order]:
    return {vr: _order(vr, contract, state, view, policy) for vr, contract in terms.items()}


def _order(vr: str, contract: Contract, state: HostState, view: HostView, policy: Policy) -> Order:
    router = state.routers.get(vr, NEW_ROUTER)
    contended = state.standing.engaged
    lowered = _lowered(contract, router, view, policy, contended=contended)
    punished = lowered < float("inf")
    setpoint = state.standing.setpoints.get(vr)
    if punished:
        most = min(ceiling_now(contract, router.saved), lowered)
        setpoint = most if setpoint is None else min(setpoint, most)
    elif setpoint is None and router.configured and vr in view.contracts:
        # A release would leave it to the daemon's configuration, which has no contracts.
        setpoint = ceiling_now(contract, router.saved)
    if setpoint is None:
        return LET_GO
    setpoint = min(MAX_PPS, max(PAUSED_PPS, setpoint))
    limit = _limit(contract, router, setpoint, policy, contended=contended)
    order = Order(setpoint, punished, limit, contract.burst_at(setpoint))
    if contended or lowered < ceiling_now(contract, router.saved):
        return order
    return at_its_ceiling(order, vr, view, router)


def _limit(
    contract: Contract, router: RouterState, setpoint: float, policy: Policy, *, contended: bool
) -> float | None:
    """Return the most that the host may send into a router that is held at a setpoint."""
    steps = steps_in_force(contract, router, policy, contended=contended)
    if Step.STOP in steps:
        return PAUSED_PPS
    limited = Step.LIMIT in steps or router.shield.up
    return min(MAX_PPS, LEEWAY * setpoint) if limited else None
