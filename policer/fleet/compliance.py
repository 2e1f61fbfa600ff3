"""How well daemons followed their orders: their counters, summed over their restarts; pure.

A daemon counts from its start. What it counted before this policer first saw a router is not part
of the sums.
"""

from collections.abc import Container, Mapping

import msgspec

from xtc.wire import Report


class Counted(msgspec.Struct, frozen=True, gc=False):
    """Deviations of the forwarded traffic from the orders."""

    over_packets: float = 0.0
    """Forwarded beyond setpoint and burst."""
    under_packets: float = 0.0
    """Offered within the setpoint and not forwarded, beyond the burst."""
    breach_s: float = 0.0
    """Time in which less was forwarded than was offered within the setpoint, beyond the burst."""
    over_bits: float = 0.0
    """The first two in bits, while it was held in bits/s."""
    under_bits: float = 0.0


class Kept(msgspec.Struct, frozen=True, gc=False):
    """Counters of a router's daemon, and their sums."""

    since: float
    """When this policer first saw it, or saw its present tenant, in seconds of its clock."""
    last: Counted
    """The daemon's last report."""
    total: Counted = Counted()
    """Sum since then."""


def kept_after(
    now: float,
    before: Mapping[str, Kept],
    reports: Mapping[str, Report],
    contracts: Container[str],
    *,
    restarted: bool,
) -> dict[str, Kept]:
    """Return the sums after a tick; a router without a contract that vanished is forgotten.

    Args:
        now: seconds of the policer's clock.
        before: the sums before it, by router.
        reports: of all routers.
        contracts: the routers that have a contract.
        restarted: whether the daemon was restarted since the previous tick.
    """
    after = {vr: kept for vr, kept in before.items() if vr in contracts or vr in reports}
    for vr, report in reports.items():
        known, counted = before.get(vr), counted_by(report)
        # Most counters do not change, and most ticks have nothing to add up.
        if counted is not None and (restarted or known is None or counted != known.last):
            after[vr] = _after(now, known, counted, restarted=restarted)
    return after


def moved(before: Kept, here: Kept) -> Kept:
    """Return the sums of a router that came from another host.

    Args:
        before: its sums there.
        here: counters of its daemon here, for it or a copy; not part of the sums.
    """
    return Kept(before.since, here.last, before.total)


def counted_by(report: Report) -> Counted | None:
    """Return a daemon's counters; None for an older daemon without them.

    A counter in a unit in which the daemon never held the router is unknown, and counts as 0.
    """
    over, under = report.over_promise_packets, report.under_promise_packets
    over_bits, under_bits = report.over_promise_bits, report.under_promise_bits
    in_packets = over is not None and under is not None
    in_bits = over_bits is not None and under_bits is not None
    if report.breach_seconds is None or not (in_packets or in_bits):
        return None
    bits = over_bits or 0.0, under_bits or 0.0
    return Counted(over or 0.0, under or 0.0, report.breach_seconds, *bits)


def _after(now: float, before: Kept | None, counted: Counted, *, restarted: bool) -> Kept:
    if before is None:
        return Kept(now, counted)
    since = Counted() if restarted or _fell(before.last, counted) else before.last
    if since == counted:
        return before
    return Kept(before.since, counted, _sum(before.total, counted, since))


def _fell(last: Counted, counted: Counted) -> bool:
    """Whether a counter fell, as it does when its daemon restarts: then all began again."""
    now, before = msgspec.structs.astuple(counted), msgspec.structs.astuple(last)
    return any(count < was for count, was in zip(now, before, strict=True))


def _sum(total: Counted, counted: Counted, since: Counted) -> Counted:
    # Differences are added: so no sum falls because of rounding.
    sums = zip(*map(msgspec.structs.astuple, (total, counted, since)), strict=True)
    return Counted(*(so_far + (count - was) for so_far, count, was in sums))
