"""One message of the telemetry stream: state of the requested routers; pure."""

from collections.abc import Sequence

import msgspec

from policer.fleet.live import Fleet, HostLive
from policer.rest.answers.live import host_live, report_of
from xtc.wire import Finding, Mode

MOST_ROUTERS = 2000
"""Limit of one message; `left_out` names the hosts beyond."""


class RouterTick(msgspec.Struct, frozen=True):
    """One router; null is unknown, and for the cap uncapped."""

    throughput_pps: float | None
    offered_pps: float | None
    setpoint_pps: float | None
    cap: float | None
    mode: Mode
    finding: Finding
    throughput_bps: float | None = None
    offered_bps: float | None = None
    setpoint_bps: float | None = None
    """Replaces the setpoint in packets/s."""


class HostTick(msgspec.Struct, frozen=True):
    """One host."""

    reachable: bool
    engaged: bool
    forwarded_pps: float
    offered_pps: float
    routers: dict[str, RouterTick]
    orders: dict[str, float | None]
    """Setpoints of its routers, in packets/s."""
    orders_bps: dict[str, float]
    """Setpoints in bits/s, for the other routers."""


class Tick(msgspec.Struct, frozen=True):
    """Current state."""

    at: float
    """Seconds of the policer's clock."""
    hosts: dict[str, HostTick]
    left_out: list[str]
    """Requested hosts that would make the message too long; request fewer."""


def telemetry(fleet: Fleet, wanted: Sequence[str] | None, now: float) -> Tick:
    """Return the state of the requested hosts, or of all; unknown hosts are left out."""
    hosts, left_out, room = {}, [], MOST_ROUTERS
    known = fleet.hosts
    for name in sorted(known if wanted is None else set(wanted)):
        live = known.get(name)
        if live is None:
            continue
        room -= len(live.telemetry.routers)
        if room < 0:
            left_out.append(name)
            continue
        hosts[name] = _host(live, now)
    return Tick(now, hosts, left_out)


def _host(live: HostLive, now: float) -> HostTick:
    stand = host_live(live, now)
    return HostTick(
        reachable=stand.reachable,
        engaged=stand.engaged,
        forwarded_pps=stand.forwarded_pps,
        offered_pps=stand.offered_pps,
        routers={vr: _router(live, vr, now) for vr in live.telemetry.routers if stand.reachable},
        orders={vr: order.setpoint_pps for vr, order in live.orders.items()},
        orders_bps={
            vr: order.setpoint_bps
            for vr, order in live.orders.items()
            if order.setpoint_bps is not None
        },
    )


def _router(live: HostLive, vr: str, now: float) -> RouterTick:
    report = report_of(live, vr, now)
    assert report is not None  # the host is reachable
    return RouterTick(
        throughput_pps=report.throughput_pps,
        offered_pps=report.offered_pps,
        setpoint_pps=report.setpoint_pps,
        cap=report.cap if report.cap_known else None,
        mode=report.mode,
        finding=report.finding,
        throughput_bps=report.throughput_bps,
        offered_bps=report.offered_bps,
        setpoint_bps=report.setpoint_bps,
    )
