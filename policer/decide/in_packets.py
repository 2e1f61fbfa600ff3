"""One host in packets/s: contracts and reports in bits/s converted, ceilings back; pure.

On a contended host all orders are in packets/s, since its CPU is spent on packets. On any other
host a ceiling in bits/s is ordered in bits/s, so that it holds for any packet size.
"""

from collections.abc import Mapping
from dataclasses import replace

from msgspec.structs import replace as with_changed

from policer.contracts.contract import MAX_PPS, Contract
from policer.decide.packet_size import (
    burst_bits,
    ceiling_bps,
    fewer,
    in_packets,
    is_in_bits,
    report_in_packets,
    saved_as,
    size_after,
    spread,
)
from policer.decide.state import NEW_ROUTER, UNPROMISED, HostState, HostView, Order, RouterState
from xtc.wire import Report


def sized(now: float, view: HostView, before: HostState) -> HostState:
    """Return the state of a host with the packet sizes of this round."""
    found = {
        vr: _sized(now, view.contracts[vr], report, before.routers.get(vr, NEW_ROUTER))
        for vr, report in view.telemetry.routers.items()
        if vr in view.contracts and is_in_bits(view.contracts[vr])
    }
    return replace(before, routers={**before.routers, **found}) if found else before


def _sized(now: float, contract: Contract, report: Report, last: RouterState) -> RouterState:
    """Return the state of a router, in packets of their current size."""
    size = size_after(now, last.size, contract, report)
    if size == last.size:
        return last
    kept, saved = fewer(contract, last.size, size), saved_as(contract, last.size, size)
    return with_changed(
        last,
        size=size,
        needed=kept * last.needed,
        reserve=kept * last.reserve,
        saved=saved * last.saved,
    )


def terms_of(view: HostView, state: HostState) -> dict[str, Contract]:
    """Return the contracts of the routers that are present, all in packets/s."""
    return {
        vr: in_packets(view.contracts.get(vr, UNPROMISED), state.routers.get(vr, NEW_ROUTER).size)
        for vr in view.telemetry.routers
    }


def seen_in_packets(view: HostView, state: HostState) -> HostView:
    """Return a view with the setpoints of its reports in packets/s, as far as these are known."""
    reports = view.telemetry.routers
    found = {
        vr: report_in_packets(report, state.routers.get(vr, NEW_ROUTER).size)
        for vr, report in reports.items()
        if report.setpoint_bps is not None
    }
    if not found:
        return view
    routers: Mapping[str, Report] = {**reports, **found}
    return replace(view, telemetry=replace(view.telemetry, routers=routers))


def at_its_ceiling(order: Order, vr: str, view: HostView, state: RouterState) -> Order:
    """Return the order of a router that is held at its ceiling, in the contract's unit.

    Args:
        order: in packets/s.
        vr: the router.
        view: of its host, with the contract as sold.
        state: its state.
    """
    contract = view.contracts.get(vr, UNPROMISED)
    most = ceiling_bps(contract, state.size, state.saved)
    if most is None or vr in view.packets_only:
        return order
    limit = order.limit_pps
    if limit is not None:  # must not hold the router below its rate in bits/s
        limit = min(MAX_PPS, limit * spread(state.size))
    burst = burst_bits(contract, most)
    return Order(None, order.punishment, limit, burst, setpoint_bps=most)
