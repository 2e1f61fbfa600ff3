"""Admission: whether a host's capacity covers its guarantees and a new one; pure."""

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from msgspec.structs import replace

from common.units import MIN_BIT_RATE
from policer.contracts.contract import MAX_PPS, Contract, contradictions
from policer.contracts.host import Host
from policer.contracts.in_force import NO_CLASSES, Book, classes_of, unknown_classes
from policer.contracts.peak import MOST_STEPS, peak_pps
from policer.contracts.schedule import problems_of_schedule
from policer.errors import Problem

EXACT = 1e-9
"""Sums that differ by no more than this share are equal: 0.1 + 0.2 does not exceed 0.3."""
_SIX_DIGITS_DOWN = Context(prec=6, rounding=ROUND_FLOOR)
_SIX_DIGITS_UP = Context(prec=6, rounding=ROUND_CEILING)


def promised_pps(
    contracts: Mapping[str, Contract], book: Book = NO_CLASSES, most_steps: int = MOST_STEPS
) -> float:
    """Return the most that all guarantees take of a host's capacity from now on, packets/s.

    Args:
        contracts: of one host.
        book: classes that they may name, and the time from which they count.
        most_steps: limit of the steps that are examined (`policer.contracts.peak.peak_pps`).
    """
    return peak_pps(contracts.values(), book, most_steps)


def counts(contract: Contract, book: Book) -> bool:
    """Whether a contract's promise can be computed: its classes and hours make sense."""
    dates = contract.valid_from, contract.valid_until
    odd = any(problems_of_schedule(*dates, contract.hours, contract.zone))
    return not odd and not any(unknown_classes(contract, book.classes))


def problems_with(
    vr: str,
    contract: Contract,
    host: Host | None,
    others: Mapping[str, Contract],
    book: Book = NO_CLASSES,
) -> Iterator[Problem]:
    """Return the reasons why a contract cannot be entered; none if it can.

    On a host that is overcommitted, for example since routers moved to it, a contract is still
    accepted if it adds nothing.

    Args:
        vr: the contract's router.
        contract: the new contract.
        host: of the router; None if unknown.
        others: the host's current contracts, with the one to replace.
        book: classes that contracts may name, and the time from which they count.
    """
    yield from contradictions(contract)
    yield from unknown_classes(contract, book.classes)
    if host is None or host.overcommit or not counts(contract, book):
        return
    whole = {**others, vr: contract}
    if exceeds(promised_pps(whole, book), host) and _is_beyond(whole, book, others, book):
        rest = {name: other for name, other in others.items() if name != vr}
        yield _too_much(contract, host, _beside(contract, rest, book))


def is_more(contracts: Mapping[str, Contract], before: Book, after: Book) -> bool:
    """Whether contracts promise more by one book than by another."""
    return _is_beyond(contracts, after, contracts, before)


def _is_beyond(
    after: Mapping[str, Contract],
    book_after: Book,
    before: Mapping[str, Contract],
    book_before: Book,
) -> bool:
    most = promised_pps(before, book_before)
    return promised_pps(after, book_after) > most * (1 + EXACT)


def _beside(contract: Contract, rest: Mapping[str, Contract], book: Book) -> float:
    """Return the most that others are promised while a contract holds."""
    plain = tuple(replace(window, class_name=None) for window in contract.hours)
    all_of_it = replace(
        contract, guarantee_pps=MAX_PPS, guarantee_bps=None, cost=1.0, class_name=None, hours=plain
    )
    return max(0.0, promised_pps({**rest, "": all_of_it}, book) - MAX_PPS)


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
    """Describe what a guarantee in bits/s takes of a host, and which bits/s are left."""
    size, most = contract.packet_bytes, 8 * contract.packet_bytes * room
    takes = f"{contract.reserve_pps:g} packets/s of {size} bytes (at a cost of {contract.cost:g})"
    less = f"promise at most {_at_most(most)} bits/s" if most >= MIN_BIT_RATE else "promise nothing"
    return Problem("guarantee_bps", f"{takes} on {has}", f"{less}, or let the host overcommit")


def problems_of_host(
    host: Host,
    contracts: Mapping[str, Contract],
    book: Book = NO_CLASSES,
) -> Iterator[Problem]:
    """Return the reasons why a host's capacity cannot be so low."""
    promised = promised_pps(contracts, book)
    if not host.overcommit and exceeds(promised, host):
        yield Problem(
            "capacity_pps",
            f"{host.capacity_pps:g} is less than the {promised:g} packets/s that were promised",
            "lower guarantees first, or let the host overcommit",
        )


def exceeds(promised: float, host: Host) -> bool:
    """Whether guarantees exceed what a host can forward."""
    return promised > host.capacity_pps * (1 + EXACT)


def at_least(rate: float) -> str:
    """Format a rate in six digits, rounded up: a user who enters it is not refused."""
    return f"{_SIX_DIGITS_UP.create_decimal_from_float(rate):f}"


def _at_most(rate: float) -> str:
    """Format a rate in six digits, rounded down, for the same reason."""
    return f"{_SIX_DIGITS_DOWN.create_decimal_from_float(rate):f}"
