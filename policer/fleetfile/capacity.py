"""Whether hosts could keep all that they would have promised, however that comes about; pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from policer.admission import at_least, exceeds, promised_pps
from policer.contract import Contract
from policer.errors import Problem
from policer.fleetfile.document import Entered
from policer.fleetfile.edits import Edit
from policer.hosts import Host
from policer.inforce import MOST_LOOKED_AT, Book, classes_of
from policer.promises import ANYWHERE
from policer.schedule import knows_zone

LOOKED_AT = 1_500_000
"""Contracts at instants that one plan looks at, which takes some seconds; beyond, the largest
guarantees of a host are added up, whenever they hold."""
Homes = Mapping[str, str]
"""The host of each router whose contract follows it."""
OnHosts = Mapping[str, Mapping[str, Contract]]
"""Contracts by host and router."""


class Standing(NamedTuple):
    """A fleet, and what is promised on each host."""

    entered: Entered
    on: OnHosts
    """Wherever contracts follow their routers or not."""


class PlannedHost(msgspec.Struct, frozen=True):
    """What a host would have promised."""

    host: str
    capacity_pps: float
    promised_pps: float
    """The most that all guarantees take from now on."""
    before_pps: float
    """The same as things stand."""
    overcommit: bool


def standing(entered: Entered, homes: Homes) -> Standing:
    """Return a fleet by host; of a router that has two contracts, that of its host holds."""
    on: dict[str, dict[str, Contract]] = {}
    for (host, vr), contract in entered.contracts.items():
        home = homes.get(vr) if host == ANYWHERE else None
        if home is not None:
            on.setdefault(home, {})[vr] = contract
    for (host, vr), contract in entered.contracts.items():
        if host != ANYWHERE:
            on.setdefault(host, {})[vr] = contract
    return Standing(entered, on)


def affected(edits: Iterable[Edit], goal: Standing, homes: Homes) -> list[str]:
    """Return the hosts on which something would change, as far as they would be there."""
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
    most = min(MOST_LOOKED_AT, LOOKED_AT // max(1, len(hosts)))
    then = Book(goal.entered.classes, book.now)
    return [
        PlannedHost(
            name,
            goal.entered.hosts[name].capacity_pps,
            promised_pps(_of_known_zones(goal.on.get(name, {})), then, most),
            promised_pps(_of_known_zones(before.on.get(name, {})), book, most),
            goal.entered.hosts[name].overcommit,
        )
        for name in hosts
    ]


def problems_of_capacity(
    planned: Iterable[PlannedHost], before: Entered, goal: Entered
) -> Iterator[Problem]:
    """Say which hosts could not keep their guarantees, unless they have as many now, or more."""
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
    """Whether a host that has promised too much, as followed routers bring it about, has less."""
    if was is None or was.overcommit or host.capacity_pps < was.capacity_pps:
        return False
    return one.promised_pps <= one.before_pps


def _of_known_zones(contracts: Mapping[str, Contract]) -> dict[str, Contract]:
    """Return the contracts of which it can be said when they hold."""
    return {vr: one for vr, one in contracts.items() if knows_zone(one.zone)}


def _name_any(contracts: Mapping[str, Contract], classes: set[str]) -> bool:
    return any(classes & classes_of(contract) for contract in contracts.values())
