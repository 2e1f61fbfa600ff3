"""Whether a host can keep what it is to be promised: guarantees against its capacity; pure."""

from collections.abc import Iterator, Mapping
from decimal import ROUND_FLOOR, Context

from policer.contract import Contract, contradictions
from policer.errors import Problem
from policer.hosts import Host

EXACT = 1e-9
"""Sums that differ by no more than this share are the same: 0.1 + 0.2 is not over 0.3."""
_SIX_DIGITS_DOWN = Context(prec=6, rounding=ROUND_FLOOR)


def promised_pps(contracts: Mapping[str, Contract]) -> float:
    """Return what all guarantees take of a host's capacity, packets/s."""
    return sum(contract.cost * contract.guarantee_pps for contract in contracts.values())


def problems_with(
    vr: str, contract: Contract, host: Host, others: Mapping[str, Contract]
) -> Iterator[Problem]:
    """Say why a contract cannot be entered; nothing where it can.

    Args:
        vr: its router.
        contract: what is to be promised.
        host: where the router is.
        others: the host's contracts as they stand; the router's own is left out of account.
    """
    yield from contradictions(contract)
    rest = promised_pps({name: other for name, other in others.items() if name != vr})
    asked = contract.cost * contract.guarantee_pps
    if not host.overcommit and asked and _exceeds(rest + asked, host):
        room = max(0.0, host.capacity_pps - rest) / contract.cost
        yield Problem(
            "guarantee_pps",
            f"{contract.guarantee_pps:g} packets/s (at a cost of {contract.cost:g}) on {host.name},"
            f" which can forward {host.capacity_pps:g} and has promised {rest:g}",
            f"promise at most {_at_most(room)}, or let the host overcommit",
        )


def problems_of_host(host: Host, contracts: Mapping[str, Contract]) -> Iterator[Problem]:
    """Say why a host's capacity cannot be lowered so far."""
    promised = promised_pps(contracts)
    if not host.overcommit and _exceeds(promised, host):
        yield Problem(
            "capacity_pps",
            f"{host.capacity_pps:g} is less than the {promised:g} packets/s that were promised",
            "lower guarantees first, or let the host overcommit",
        )


def _exceeds(promised: float, host: Host) -> bool:
    return promised > host.capacity_pps * (1 + EXACT)


def _at_most(rate: float) -> str:
    """Write a rate in six digits, rounded down, so that who follows the advice is not refused."""
    return f"{_SIX_DIGITS_DOWN.create_decimal_from_float(rate):f}"
