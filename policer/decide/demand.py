"""Estimates what a router would forward without a limit, from its behaviour while limited; pure.

The offered load shows the demand of a flood, which goes on despite drops. A TCP flow adapts to what
is forwarded, so its offered load never exceeds its setpoint. The estimate of a router that fills
its setpoint is therefore raised round by round, until it leaves room.
"""

from xtc.wire import Mode, Report

FILLS = 0.95
"""A throughput of this share of the setpoint fills it."""
LEAVES = 0.8
"""Below this share of the setpoint, a router does not need the rest."""
MORE = 1.15
"""Factor by which the estimate for a router that fills its setpoint is raised."""

DELIVERY = 0.5
"""Cost of a packet that is carried into a router and dropped there, relative to one forwarded: the
paper's host falls from 100 to 68 kp/s with it (section 7.3)."""


def leased_pps(report: Report) -> float | None:
    """Return the setpoint of the lease in force; None if there is none or it has expired.

    A daemon still shows an expired lease, with no time left. One in bits/s has no rate in
    packets/s, unless the report was converted (`policer.decide.packet_size`).
    """
    return report.setpoint_pps if _is_leased(report) else None


def leased_bps(report: Report) -> float | None:
    """Return the setpoint of the lease in force, in bits/s; None if it is in packets/s."""
    return report.setpoint_bps if _is_leased(report) else None


def held_pps(report: Report) -> float | None:
    """Return the setpoint that the daemon really enforces; None if nothing limits the router."""
    return None if report.mode is Mode.RELEASED else leased_pps(report)


def is_held(report: Report) -> bool:
    """Whether the daemon really limits a router, in packets/s or in bits/s."""
    setpoints = (report.setpoint_pps, report.setpoint_bps)
    return report.mode is not Mode.RELEASED and _is_leased(report) and setpoints != (None, None)


def _is_leased(report: Report) -> bool:
    ended = report.lease_remaining_s is not None and report.lease_remaining_s <= 0
    return report.active and not ended


def sent_pps(report: Report) -> float:
    """Return the traffic certainly sent to a router, in packets/s."""
    return max(report.offered_pps or 0.0, report.throughput_pps or 0.0)


def wasted_pps(report: Report) -> float:
    """Return what the host spends on packets that a router drops, in packets/s forwarded.

    A packet that the router drops costs the host the delivery. A packet that the limiter drops
    costs almost nothing.
    """
    delivered = report.offered_pps or 0.0
    if report.limit_pps is not None:
        delivered = min(delivered, report.limit_pps * max(1, len(report.interfaces)))
    return DELIVERY * max(0.0, delivered - (report.throughput_pps or 0.0))


def wanted_pps(report: Report) -> float | None:
    """Return the throughput that a router could use now, in packets/s; None if unknown."""
    if report.throughput_pps is None:
        return None if report.interfaces else 0.0
    throughput, now = report.throughput_pps, sent_pps(report)
    setpoint = held_pps(report)
    if setpoint is None:
        return now
    if throughput >= FILLS * setpoint:
        return max(now, MORE * setpoint)
    return max(now, setpoint) if throughput >= LEAVES * setpoint else now
