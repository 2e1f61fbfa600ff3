"""Whether a host can keep what it is to be promised: guarantees against its capacity; pure."""

from collections.abc import Iterator, Mapping
from decimal import ROUND_FLOOR, Context

from policer.contract import Contract, contradictions
from policer.errors import Problem
from policer.hosts import Host
from policer.inforce import NO_CLASSES, Book, classes_of, peak_pps, taken_pps, unknown_classes
from xtc.units import MIN_BIT_RATE

EXACT = 1e-9
"""Sums that differ by no more than this share are the same: 0.1 + 0.2 is not over 0.3."""
_SIX_DIGITS_DOWN = Context(prec=6, rounding=ROUND_FLOOR)


def promised_pps(contracts: Mapping[str, Contract], book: Book = NO_CLASSES) -> float:
    """Return the most that all guarantees take of a host's capacity from now on, packets/s."""
    return peak_pps(list(contracts.values()), book)


def problems_with(
    vr: str,
    contract: Contract,
    host: Host | None,
    others: Mapping[str, Contract],
    book: Book = NO_CLASSES,
) -> Iterator[Problem]:
    """Say why a contract cannot be entered; nothing where it can.

    Args:
        vr: its router.
        contract: what is to be promised.
        host: where the router is; None where that is not known.
        others: the host's contracts as they stand; the router's own is left out of account.
        book: what contracts may name, and from when on.
    """
    wrong = list(contradictions(contract))
    unknown = list(unknown_classes(contract, book.classes))
    yield from (*wrong, *unknown)
    if unknown or host is None or any(problem.field == "zone" for problem in wrong):
        return
    rest = {name: other for name, other in others.items() if name != vr}
    if contract.class_name is None and not contract.hours and not taken_pps(contract):
        return
    if not host.overcommit and exceeds(promised_pps({**rest, vr: contract}, book), host):
        yield _too_much(contract, host, promised_pps(rest, book))


def _too_much(contract: Contract, host: Host, rest: float) -> Problem:
    has = f"{host.name}, which can forward {host.capacity_pps:g} and has promised {rest:g}"
    if classes_of(contract):
        problem = f"the guarantee of its class is too much for {has}"
        fix = "give a smaller class, or let the host overcommit"
        return Problem("class", problem, fix)
    room = max(0.0, host.capacity_pps - rest) / contract.cost
    if contract.guarantee_bps is not None:
        return _too_many_bits(contract, has, room)
    return Problem(
        "guarantee_pps",
        f"{contract.guarantee_pps:g} packets/s (at a cost of {contract.cost:g}) on {has}",
        f"promise at most {_at_most(room)}, or let the host overcommit",
    )


def _too_many_bits(contract: Contract, has: str, room: float) -> Problem:
    """Say what a guarantee in bits/s takes of a host in packets/s, and what bits/s are left."""
    size, most = contract.packet_bytes, 8 * contract.packet_bytes * room
    takes = f"{contract.reserve_pps:g} packets/s of {size} bytes (at a cost of {contract.cost:g})"
    less = f"promise at most {_at_most(most)} bits/s" if most >= MIN_BIT_RATE else "promise nothing"
    return Problem("guarantee_bps", f"{takes} on {has}", f"{less}, or let the host overcommit")


def problems_of_host(
    host: Host,
    contracts: Mapping[str, Contract],
    book: Book = NO_CLASSES,
) -> Iterator[Problem]:
    """Say why a host's capacity cannot be so low."""
    promised = promised_pps(contracts, book)
    if not host.overcommit and exceeds(promised, host):
        yield Problem(
            "capacity_pps",
            f"{host.capacity_pps:g} is less than the {promised:g} packets/s that were promised",
            "lower guarantees first, or let the host overcommit",
        )


def exceeds(promised: float, host: Host) -> bool:
    """Whether guarantees are more than a host can forward."""
    return promised > host.capacity_pps * (1 + EXACT)


def _at_most(rate: float) -> str:
    """Write a rate in six digits, rounded down, so that who follows the advice is not refused."""
    return f"{_SIX_DIGITS_DOWN.create_decimal_from_float(rate):f}"
