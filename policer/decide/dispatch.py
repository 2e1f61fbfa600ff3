"""Selects the messages that a host needs: changed, due for renewal, or not arrived; pure.

Every setpoint is a lease and every limit expires, so a policer that dies releases all routers.
Releasing a router sends nothing: its lease expires, and the daemon falls back to its own
configuration. Only a last, short punishment lease ends a punishment, since no ordinary lease may
replace one (`xtc.lease`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from policer.contracts.contract import MAX_PPS
from policer.decide.demand import leased_bps, leased_pps
from policer.decide.state import LET_GO, Order
from xtc.wire import Activate, Kind, Limit, Report

RENEWALS = 3
"""Renewals of a lease within its length: two may be lost."""
NOTICE_S = 3.0
"""If telemetry does not show a sent order after this time, it is sent again."""
SAME = 1e-3
"""Rates that differ by no more than this share are the same."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Properties of the leases of this policer."""

    epoch: int
    ttl_s: float = 15.0
    last_s: float = 4.0
    """Length of the lease that ends a punishment: two of a slow daemon's periods
    (docs/reference/timing.md)."""


class Sent(msgspec.Struct, frozen=True, gc=False):
    """The last order sent to a router."""

    order: Order = LET_GO
    at: float = float("-inf")
    again_at: float = float("-inf")
    """When it is sent again if nothing changes."""
    barred_until: float = float("-inf")
    """Until then the daemon refuses all but punishments: a last punishment lease still runs."""


_UNTOLD = Sent()


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Messages for one host, and the orders that they carry."""

    requests: tuple[Activate | Limit, ...]
    sent: Mapping[str, Sent]


def due(  # noqa: PLR0917  every one is a fact of the round, and there is no seventh
    now: float,
    orders: Mapping[str, Order],
    sent: Mapping[str, Sent],
    reports: Mapping[str, Report],
    terms: Terms,
    next_sequence: Callable[[], int],
) -> Dispatch:
    """Return the messages that a host needs now.

    Args:
        now: seconds of the policer's clock.
        orders: of the round.
        sent: the last order that this policer sent to each router in this epoch.
        reports: what telemetry shows.
        terms: epoch and lengths of leases.
        next_sequence: a number above all before it in this epoch.
    """
    requests: list[Activate | Limit] = []
    after: dict[str, Sent] = {}
    for vr, order in orders.items():
        last = sent.get(vr, _UNTOLD)
        if _stands(now, order, last, reports.get(vr)):
            after[vr] = last
            continue
        requests += _messages(vr, order, last, terms, next_sequence)
        after[vr] = _sent(now, order, last, terms)
    return Dispatch(tuple(requests), after)


def _stands(now: float, order: Order, last: Sent, report: Report | None) -> bool:
    """Whether a router needs no message."""
    if order == last.order == LET_GO:
        return True
    if now < last.barred_until and not order.punishment:
        return True
    if order != last.order or now >= last.again_at:
        return False
    return now < last.at + NOTICE_S or report is None or _shows(report, order)


def _shows(report: Report, order: Order) -> bool:
    """Whether telemetry shows that a router follows its order."""
    if order.setpoint_pps is not None and not _same(leased_pps(report), order.setpoint_pps):
        return False
    if order.setpoint_bps is not None and not _same(leased_bps(report), order.setpoint_bps):
        return False
    return order.limit_pps is None or _same(report.limit_pps, order.limit_pps)


def _same(seen: float | None, told: float) -> bool:
    return seen is not None and abs(seen - told) <= SAME * told


def _messages(
    vr: str, order: Order, last: Sent, terms: Terms, next_sequence: Callable[[], int]
) -> Iterator[Activate | Limit]:
    if _ends_punishment(order, last):
        yield _lease(vr, order, Kind.PUNISHMENT, terms.epoch, next_sequence(), terms.last_s)
    elif order.holds:
        kind = Kind.PUNISHMENT if order.punishment else Kind.NORMAL
        yield _lease(vr, order, kind, terms.epoch, next_sequence(), terms.ttl_s)
    if order.limit_pps is not None:
        yield Limit(vr, order.limit_pps, terms.ttl_s, terms.epoch)
    elif last.order.limit_pps is not None:
        yield Limit(vr, None, epoch=terms.epoch)


def _lease(  # noqa: PLR0917  every one is a field of the lease
    vr: str, order: Order, kind: Kind, epoch: int, sequence: int, ttl_s: float
) -> Activate:
    """Return the lease of an order; a lease without a setpoint if it releases the router."""
    pps, bps = order.setpoint_pps if order.holds else MAX_PPS, order.setpoint_bps
    return Activate(vr, pps, epoch, sequence, ttl_s, kind, setpoint_bps=bps, burst=order.burst)


def _sent(now: float, order: Order, last: Sent, terms: Terms) -> Sent:
    """Return what is sent to a router; the ordinary lease soon follows the end of a punishment."""
    if _ends_punishment(order, last):
        ended = now + 1.1 * terms.last_s
        return Sent(order, now, ended, barred_until=ended)
    return Sent(order, now, now + terms.ttl_s / RENEWALS)


def _ends_punishment(order: Order, last: Sent) -> bool:
    return last.order.punishment and not order.punishment
