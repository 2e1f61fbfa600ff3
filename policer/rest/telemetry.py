"""One message of the telemetry stream: how the routers asked for stand; pure."""

from collections.abc import Sequence

import msgspec

from policer.fleet import Fleet, HostLive
from policer.rest.live import host_live, report_of
from xtc.wire import Finding, Mode

MOST_ROUTERS = 2000
"""In one message; the hosts beyond are named in `left_out`."""


class RouterTick(msgspec.Struct, frozen=True):
    """One router; null is not known, and for the cap uncapped."""

    throughput_pps: float | None
    offered_pps: float | None
    setpoint_pps: float | None
    cap: float | None
    mode: Mode
    finding: Finding
    throughput_bps: float | None = None
    offered_bps: float | None = None
    setpoint_bps: float | None = None
    """Instead of the one in packets/s."""


class HostTick(msgspec.Struct, frozen=True):
    """One host."""

    reachable: bool
    engaged: bool
    forwarded_pps: float
    offered_pps: float
    routers: dict[str, RouterTick]
    orders: dict[str, float | None]
    """The setpoints that its routers are told, in packets/s."""
    orders_bps: dict[str, float]
    """Those that are in bits/s instead."""


class Tick(msgspec.Struct, frozen=True):
    """How things stand."""

    at: float
    """Seconds of the policer's clock."""
    hosts: dict[str, HostTick]
    left_out: list[str]
    """Hosts that were asked for and would make the message too long; ask for fewer."""


def telemetry(fleet: Fleet, wanted: Sequence[str] | None, now: float) -> Tick:
    """Return how the hosts asked for stand, or all; a host that is not known is not there."""
    hosts, left_out, room = {}, [], MOST_ROUTERS
    known = fleet.hosts
    for name in sorted(known if wanted is None else set(wanted)):
        live = known.get(name)
        if live is None:
            continue
        room -= len(live.sight.routers)
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
        routers={vr: _router(live, vr, now) for vr in live.sight.routers if stand.reachable},
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
