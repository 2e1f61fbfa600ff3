"""How a router stands against its guarantee in one period; pure.

The daemon's own account judges by setpoints, which may be far above a guarantee, or below it. This
one judges by the guarantee, and in the way of `docs/reference/promise.md`: what was wanted and not
delivered adds up to a deficit, which drains as more is delivered, and what exceeds the burst is
missing.
"""

import msgspec

from policer.contracts.contract import Contract
from policer.decide.packet_size import Size, in_packets, is_in_bits, mean_bytes
from policer.decide.state import Order, RouterState
from xtc.wire import Report

BURST_S = 0.2
"""The burst of a contract that does not say, in seconds of its guarantee."""
ROUNDING = 1e-9
"""The share of a period's packets that sums of floating point may be off."""


class Due(msgspec.Struct, frozen=True):
    """What a router is to get; nothing without a contract."""

    rate_pps: float = 0.0
    """The guarantee in force."""
    burst: float = 0.0
    """Packets that may be missing in any window."""


class Owed(msgspec.Struct, frozen=True):
    """What came of a period."""

    deficit: float = 0.0
    """The most that was wanted and not delivered in any window that ends now."""
    wanted: float = 0.0
    """Packets that were offered, up to the guarantee in force."""
    missing: float = 0.0
    """Packets of them that were not delivered, beyond the burst."""


NOTHING_DUE = Due()


def told_in_packets(contract: Contract, report: Report) -> Contract:
    """Return a contract in packets/s, by the mean size of the packets in a report.

    Of packets larger than those sold, fewer are due: the guarantee is kept in bits/s. Of smaller
    ones, as many are due as were sold.
    """
    if not is_in_bits(contract):
        return contract
    mean = mean_bytes(report)
    return in_packets(contract, Size(low=mean, likely=mean, high=mean))


def due(contract: Contract | None, order: Order | None) -> Due:
    """Return the guarantee in force: a punishment leaves a router no more than its setpoint."""
    if contract is None or contract.guarantee_pps <= 0:
        return NOTHING_DUE
    rate = contract.guarantee_pps
    if order is not None and order.punishment and order.setpoint_pps is not None:
        rate = min(rate, order.setpoint_pps)
    burst = contract.burst_at(rate)
    return Due(rate, max(1.0, BURST_S * rate) if burst is None else burst)


def owed_after(
    deficit: float, due: Due, seconds: float, offered_pps: float, delivered_pps: float
) -> Owed:
    """Return how a router stands after a period.

    Args:
        deficit: what it lacked before it.
        due: what it was to get.
        seconds: length of the period.
        offered_pps: what it was sent.
        delivered_pps: what it forwarded.
    """
    wanted = min(offered_pps, due.rate_pps) * seconds
    lacks = max(0.0, min(deficit, due.burst) + wanted - delivered_pps * seconds)
    beyond = lacks - due.burst
    if beyond <= ROUNDING * (wanted + due.burst):
        return Owed(min(lacks, due.burst), wanted)
    return Owed(due.burst, wanted, beyond)


def part_of(owed: Owed, share: float) -> Owed:
    """Return what came of a share of a period."""
    if share == 1.0:
        return owed
    return Owed(owed.deficit, owed.wanted * share, owed.missing * share)


def is_punished(state: RouterState | None) -> bool:
    """Whether a router stands on its ladder, and not only in a dry run."""
    return state is not None and state.punishment.height > 0 and not state.punishment.dry
