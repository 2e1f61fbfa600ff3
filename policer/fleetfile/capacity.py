"""Whether hosts could keep all promises of a plan; pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from policer.contracts.admission import EXACT, at_least, counts, exceeds, promised_pps
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.in_force import Book, classes_of
from policer.contracts.peak import MOST_STEPS
from policer.contracts.promised import ANYWHERE, name_of
from policer.errors import Problem
from policer.fleetfile.document import Entered
from policer.fleetfile.edits import Edit

STEPS_OF_A_PLAN = 3_000_000
"""Steps of contracts that one plan looks at, which takes some seconds; beyond, the largest
guarantees of a host are added up, whenever they hold (`policer.contracts.peak`)."""
Homes = Mapping[str, str]
"""The host of each router whose contract follows it."""
OnHosts = Mapping[str, Mapping[str, Contract]]
"""Contracts by host and router."""


class Standing(NamedTuple):
    """A fleet, and the contracts on each host."""

    entered: Entered
    on: OnHosts
    """All contracts there, including those that follow routers."""


class PlannedHost(msgspec.Struct, frozen=True):
    """Promises of a host under a plan."""

    host: str
    capacity_pps: float
    promised_pps: float
    """The most that all guarantees take from now on."""
    before_pps: float
    """The same before the plan."""
    overcommit: bool


def standing(entered: Entered, homes: Homes) -> Standing:
    """Return a fleet by host.

    Of a router that has a contract there and one that follows it, both count: each may be removed,
    or end, before the other.
    """
    on: dict[str, dict[str, Contract]] = {}
    for (host, vr), contract in entered.contracts.items():
        home = homes.get(vr) if host == ANYWHERE else host
        if home is not None:
            on.setdefault(home, {})[name_of(host, vr)] = contract
    return Standing(entered, on)


def affected(edits: Iterable[Edit], goal: Standing, homes: Homes) -> list[str]:
    """Return the hosts with changes, as far as they would exist."""
    found, classes = set(), set()
    for edit in edits:
        if edit.kind == "host":
            found.add(edit.name)
        elif edit.kind == "contract":
            found.add(edit.host or homes.get(edit.name, ""))
        elif edit.kind == "class":
            classes.add(edit.name)
    if classes:
        found |= {host for host, here in goal.on.items() if _name_any(here, classes)}
    return sorted(found & goal.entered.hosts.keys())


def loads(hosts: list[str], before: Standing, goal: Standing, book: Book) -> list[PlannedHost]:
    """Return what hosts would have promised.

    Args:
        hosts: those on which something would change.
        before: the fleet as it stands.
        goal: the fleet as it would be.
        book: the classes as they stand, and from when on contracts are looked at.
    """
    most = min(MOST_STEPS, STEPS_OF_A_PLAN // max(1, len(hosts)))
    then = Book(goal.entered.classes, book.now)
    return [
        PlannedHost(
            name,
            goal.entered.hosts[name].capacity_pps,
            _promised(goal.on.get(name, {}), then, most),
            _promised(before.on.get(name, {}), book, most),
            goal.entered.hosts[name].overcommit,
        )
        for name in hosts
    ]


def problems_of_capacity(
    planned: Iterable[PlannedHost], before: Entered, goal: Entered
) -> Iterator[Problem]:
    """Yield the hosts that could not keep their guarantees, unless these do not grow."""
    for one in planned:
        host, was = goal.hosts[one.host], before.hosts.get(one.host)
        if host.overcommit or not exceeds(one.promised_pps, host) or _is_relief(one, host, was):
            continue
        over = one.promised_pps - host.capacity_pps
        problem = (
            f"{host.capacity_pps:g} is less than the {one.promised_pps:g} packets/s that would be"
            " promised"
        )
        fix = f"promise {at_least(over)} less, or let the host overcommit"
        yield Problem(f"hosts.{one.host}.capacity_pps", problem, fix)


def _is_relief(one: PlannedHost, host: Host, was: Host | None) -> bool:
    """Whether a plan does not add to a host whose routers brought too many promises."""
    if was is None or was.overcommit or host.capacity_pps < was.capacity_pps:
        return False
    return one.promised_pps <= one.before_pps * (1 + EXACT)


def _promised(contracts: Mapping[str, Contract], book: Book, most_steps: int) -> float:
    """Return the most that contracts take; those that contradict themselves take nothing."""
    sound = {name: one for name, one in contracts.items() if counts(one, book)}
    return promised_pps(sound, book, most_steps)


def _name_any(contracts: Mapping[str, Contract], classes: set[str]) -> bool:
    return any(classes & classes_of(contract) for contract in contracts.values())
