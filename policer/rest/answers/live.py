"""Converts the current state of the fleet into answers; pure, time is a parameter."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from policer.contracts.overrides import Override
from policer.decide.state import Order, RouterState
from policer.fleet.live import Fleet, HostLive
from policer.rest.answers.entities import (
    HostCapacity,
    HostLiveAnswer,
    KeptAnswer,
    PunishmentAnswer,
    RouterAnswer,
    SetpointAnswer,
)
from policer.rest.answers.overrides import override_answer
from xtc.wire import Report


def host_live(
    live: HostLive | None,
    now: float,
    *,
    braked: bool = False,
    suspension: Override | None = None,
) -> HostLiveAnswer:
    """Return the state of a host.

    Args:
        live: the known state of the host.
        now: seconds of the policer's clock.
        braked: whether its ladders are stopped.
        suspension: of its control; None if it is controlled.
    """
    suspended = None if suspension is None else override_answer(suspension)
    if live is None:
        return HostLiveAnswer(suspension=suspended)
    telemetry, reachable = live.telemetry, live.telemetry.reachable(now)
    reports = telemetry.routers.values() if reachable else ()
    drops = telemetry.drops if reachable else None
    return HostLiveAnswer(
        reachable=reachable,
        heard_s_ago=None if telemetry.heard_at is None else max(0.0, now - telemetry.heard_at),
        distrust=telemetry.distrust,
        link_problem=live.link_problem,
        refused=len(live.refusals),
        refusal=next((f"{vr}: {words}" for vr, words in sorted(live.refusals.items())), ""),
        braked=braked,
        overpromised=live.overpromised,
        suspension=suspended,
        highest_epoch=telemetry.highest_epoch,
        engaged=live.state.standing.engaged,
        simulated=telemetry.simulated,
        harmed=live.state.standing.harmed,
        promised_pps=live.promised_pps(datetime.now(UTC)),
        guaranteed_pps=live.guaranteed_pps,
        forwarded_pps=_total(report.throughput_pps for report in reports),
        offered_pps=_total(report.offered_pps for report in reports),
        routers=len(telemetry.routers),
        contracts=len(live.contracts),
        punished=sum(s.punishment.height > 0 for s in live.state.routers.values()),
        dropped=telemetry.dropped + live.unread,
        card_drops_pps=None if drops is None else sum(drops.cards.values()),
        backlog_drops_pps=None if drops is None else drops.backlog,
    )


def _total(rates: Iterable[float | None]) -> float:
    return sum(rate or 0.0 for rate in rates)


def report_of(live: HostLive, vr: str, now: float) -> Report | None:
    """Return a daemon's report on a router; None if the daemon is silent."""
    return live.telemetry.routers.get(vr) if live.telemetry.reachable(now) else None


def router(live: HostLive, vr: str, now: float, exemption: Override | None = None) -> RouterAnswer:
    """Return the state of a router; an exemption is from its ladder."""
    state = live.state.routers.get(vr, RouterState())
    return RouterAnswer(
        host=live.host.name,
        vr=vr,
        contract=live.contracts.get(vr),
        follows=live.follows.get(vr),
        report=report_of(live, vr, now),
        order=live.orders.get(vr),
        punishment=punishment(live, vr, now) if state.punishment.height else None,
        misbehaving=state.evidence.guilty,
        saved_burst_packets=state.saved,
        refusal=live.refusals.get(vr, ""),
        exemption=None if exemption is None else override_answer(exemption),
        kept=kept(live, vr, now),
    )


def kept(live: HostLive, vr: str, now: float) -> KeptAnswer | None:
    """Return how well a router was held at its setpoints."""
    found = live.kept.get(vr)
    if found is None:
        return None
    total = found.total
    return KeptAnswer(
        over_promise_packets=total.over_packets,
        under_promise_packets=total.under_packets,
        breach_seconds=total.breach_s,
        over_promise_bits=total.over_bits,
        under_promise_bits=total.under_bits,
        since=_instant(found.since, now),
    )


def _instant(at: float, now: float) -> datetime:
    """Convert an instant of the policer's clock to the time of day."""
    return datetime.now(UTC) - timedelta(seconds=max(0.0, now - at))


def punishment(live: HostLive, vr: str, now: float) -> PunishmentAnswer:
    """Return a router's position on its ladder."""
    state = live.state.routers.get(vr, RouterState())
    standing = state.punishment
    return PunishmentAnswer(
        host=live.host.name,
        vr=vr,
        step=standing.step,
        height=standing.height,
        guilty=standing.guilty,
        since=_instant(standing.since, now),
        only_reported=standing.dry,
        evidence=state.evidence.rounds,
    )


def setpoint(live: HostLive, vr: str, now: float) -> SetpointAnswer:
    """Return a router's current orders."""
    order, report = live.orders.get(vr, Order()), report_of(live, vr, now)
    held = report if report is not None and report.active else None
    return SetpointAnswer(
        host=live.host.name,
        vr=vr,
        setpoint_pps=order.setpoint_pps,
        limit_pps=order.limit_pps,
        punishment=order.punishment,
        confirmed_pps=None if held is None else held.setpoint_pps,
        lease_remaining_s=None if held is None else held.lease_remaining_s,
        burst=order.burst,
        setpoint_bps=order.setpoint_bps,
        confirmed_bps=None if held is None else held.setpoint_bps,
    )


def capacity(live: HostLive, now: float) -> HostCapacity:
    """Return a host's capacity, and how much of it is promised."""
    host, promised = live.host, live.promised_pps(datetime.now(UTC))
    reports = live.telemetry.routers.values() if live.telemetry.reachable(now) else ()
    return HostCapacity(
        host=host.name,
        capacity_pps=host.capacity_pps,
        promised_pps=promised,
        free_pps=max(0.0, host.capacity_pps - promised),
        forwarded_pps=_total(report.throughput_pps for report in reports),
        overcommit=host.overcommit,
        source=host.capacity_source,
    )


def routers_of(fleet: Fleet, host: str | None) -> Iterable[tuple[HostLive, str]]:
    """Return the routers of the fleet, or of one host of it, in order."""
    if host is None:
        return fleet.routers()
    live = fleet.get(host)
    if live is None:
        return ()
    return ((live, vr) for vr in sorted({*live.contracts, *live.telemetry.routers}))
