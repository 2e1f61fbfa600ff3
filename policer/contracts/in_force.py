"""Which terms of a contract hold at an instant, by its class, dates and hours; pure."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec.structs import replace

from policer.contracts.contract import TERMS, Contract, contradictions
from policer.contracts.schedule import window_at
from policer.errors import Problem

Classes = Mapping[str, Contract]
"""The terms of each class."""


class Book(NamedTuple):
    """Classes that contracts may name, and the time from which contracts count."""

    classes: Classes
    now: datetime
    """With its zone."""


NO_CLASSES = Book({}, datetime(2000, 1, 1, tzinfo=UTC))


def in_force(contract: Contract, classes: Classes, at: datetime) -> Contract | None:
    """Return the terms in force at an instant; None if there are none.

    Args:
        contract: as entered.
        classes: terms by class; a missing class promises nothing.
        at: the instant, with its zone.
    """
    if not is_valid(contract, at):
        return None
    name = contract.class_name
    if contract.hours:
        window = window_at(contract.hours, contract.zone, at)
        if window is None:
            return None
        name = window.class_name or name
    return contract if name is None else _by_class(contract, name, classes)


def is_valid(contract: Contract, at: datetime) -> bool:
    """Whether an instant is within a contract's dates."""
    begun = contract.valid_from is None or at >= contract.valid_from
    return begun and (contract.valid_until is None or at < contract.valid_until)


def is_timed(contract: Contract) -> bool:
    """Whether the terms can change with time."""
    dated = contract.valid_from is not None or contract.valid_until is not None
    return dated or bool(contract.hours)


def all_in_force(
    contracts: Mapping[str, Contract], classes: Classes, at: datetime
) -> dict[str, Contract]:
    """Return the terms in force at an instant, by router."""
    held = ((vr, in_force(contract, classes, at)) for vr, contract in contracts.items())
    return {vr: terms for vr, terms in held if terms is not None}


def classes_of(contract: Contract) -> set[str]:
    """Return the names of all classes that a contract names."""
    named = {window.class_name for window in contract.hours} | {contract.class_name}
    return {name for name in named if name is not None}


def unknown_classes(contract: Contract, classes: Classes) -> Iterator[Problem]:
    """Yield the classes of a contract that do not exist."""
    for name in sorted(classes_of(contract) - classes.keys()):
        known = ", ".join(sorted(classes)[:5])
        fix = f"give one of {known}" if known else "make it first (`policer class set`)"
        yield Problem("class", f"there is no class {name!r}", fix)


def problems_of_class(terms: Contract) -> Iterator[Problem]:
    """Yield contradictions in the terms of a class, and fields that are not terms."""
    yield from contradictions(terms)
    plain = Contract()
    for name in Contract.__struct_fields__:
        if name not in TERMS and getattr(terms, name) != getattr(plain, name):
            field = "class" if name == "class_name" else name
            yield Problem(field, "a class has terms alone", f"give {field} in its contracts")


def taken_pps(contract: Contract) -> float:
    """Return how much of a host's capacity a guarantee takes, in packets/s."""
    return contract.cost * contract.reserve_pps


def _by_class(contract: Contract, name: str, classes: Classes) -> Contract | None:
    terms = classes.get(name)
    if terms is None:
        return None
    return replace(contract, class_name=name, **{term: getattr(terms, term) for term in TERMS})
