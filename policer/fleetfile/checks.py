"""Problems of a planned fleet, entry by entry: terms, names, daemons; pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from common.suggest import nearest
from policer.contracts import contract as contracts
from policer.contracts import host as hosts
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.in_force import classes_of, problems_of_class
from policer.contracts.location import UUID
from policer.contracts.promised import ANYWHERE, MOST_FOLLOWING
from policer.decide.telemetry import MOST_ROUTERS
from policer.errors import Problem
from policer.fleetfile.document import Entered, Key
from policer.fleetfile.edits import Edit, is_moved

_TABLES = {"tenant": "tenants", "class": "classes", "host": "hosts"}
SOME = 3
"""Hosts of the same daemon that are compared: thousands would give millions of pairs."""

MOST_KNOWN = 500
"""Names among which a similar one is searched, which takes long."""


def problems_of(edits: Iterable[Edit], goal: Entered) -> Iterator[Problem]:
    """Say what is wrong, by the path of the field in the document.

    Args:
        edits: what is to be done.
        goal: the fleet as it would be.
    """
    done = tuple(edits)
    for edit in done:
        yield from _at(path_of(edit), _own_problems(edit))
    yield from _too_many(done, goal)
    yield from _dangling(done, goal)
    yield from _same_daemons(done, goal.hosts)


def ambiguous(edits: Iterable[Edit], having: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Say which new contracts would follow one of several routers of a name.

    A UUID is on two hosts while its domain migrates.

    Args:
        edits: what is to be done.
        having: the hosts that report routers, by name or UUID.
    """
    for edit in edits:
        hosts = having.get(edit.name, ()) if edit.kind == "contract" and not edit.host else ()
        if len(hosts) > 1 and edit.before is None and not UUID.fullmatch(edit.name):
            some = ", ".join(hosts[:5]) + (", ..." if len(hosts) > 5 else "")
            fix = "give the router's UUID, or make the contract on one host"
            problem = f"several hosts have a router of this name: {some}"
            yield Problem(path_of(edit), problem, fix)


def path_of(edit: Edit) -> str:
    """Return the path of an entry in the document."""
    if edit.kind == "contract":
        return _path(edit.key)
    return f"{_TABLES[edit.kind]}.{edit.name}"


def _path(key: Key) -> str:
    host, vr = key
    return f"contracts.{vr}" if host == ANYWHERE else f"hosts.{host}.contracts.{vr}"


def _own_problems(edit: Edit) -> Iterator[Problem]:
    """Yield the contradictions in an entry."""
    if isinstance(edit.after, Host):
        yield from hosts.contradictions(edit.after)
    elif isinstance(edit.after, Contract) and edit.kind == "class":
        yield from problems_of_class(edit.after)
    elif isinstance(edit.after, Contract):
        yield from contracts.contradictions(edit.after)
        if not edit.host and UUID.fullmatch(edit.name) and edit.name != edit.name.lower():
            fix = f"write {edit.name.lower()}"
            yield Problem("", "a UUID is written in small letters", fix)


def _too_many(edits: tuple[Edit, ...], goal: Entered) -> Iterator[Problem]:
    """Yield the problem of more contracts than the limit."""
    counts = Counter(host for host, _ in goal.contracts)
    added = {edit.key[0] for edit in edits if edit.kind == "contract" and edit.before is None}
    for host in sorted(added):
        most = MOST_FOLLOWING if host == ANYWHERE else MOST_ROUTERS
        if counts[host] > most:
            path = "contracts" if host == ANYWHERE else f"hosts.{host}.contracts"
            yield Problem(path, f"there would be {counts[host]}", f"there may be {most}")


def _dangling(edits: tuple[Edit, ...], goal: Entered) -> Iterator[Problem]:
    """Say which contracts name what would not be there, of those that this could be true of."""
    changed = {edit.key for edit in edits if edit.kind == "contract"}
    classes, tenants = _removed(edits, "class"), _removed(edits, "tenant")
    for key, one in goal.contracts.items():
        if key in changed or classes & classes_of(one) or one.tenant in tenants:
            yield from _at(_path(key), _unknown_names(one, goal))


def _removed(edits: Iterable[Edit], kind: str) -> set[str]:
    return {edit.name for edit in edits if edit.kind == kind and edit.after is None}


def _unknown_names(one: Contract, goal: Entered) -> Iterator[Problem]:
    for name in sorted(classes_of(one) - goal.classes.keys()):
        yield _unknown("class", name, goal.classes, f"add [classes.{name}]")
    if one.tenant is not None and one.tenant not in goal.tenants:
        yield _unknown("tenant", one.tenant, goal.tenants, f"add [tenants.{one.tenant}]")


def _unknown(kind: str, name: str, known: Collection[str], fix: str) -> Problem:
    near = nearest(name, known if len(known) <= MOST_KNOWN else ())
    meant = f"did you mean {near}? Else {fix}" if near else fix
    return Problem(kind, f"there is no {kind} {name!r}", meant)


def _same_daemons(edits: tuple[Edit, ...], goal: Mapping[str, Host]) -> Iterator[Problem]:
    """Yield changed hosts that would have the same daemon as others."""
    moved = [edit.after for edit in edits if isinstance(edit.after, Host) and is_moved(edit)]
    sharing: dict[tuple[str, str], list[Host]] = {}
    for host in goal.values() if moved else ():
        for way in _ways(host):
            sharing.setdefault(way, []).append(host)
    for host in moved:
        others = {other.name: other for way in _ways(host) for other in sharing[way][:SOME]}
        yield from _at(f"hosts.{host.name}", hosts.clashes(host, others.values()))


def _ways(host: Host) -> Iterator[tuple[str, str]]:
    """Yield fields and values that must be unique to a host."""
    fields = ("requests", "telemetry", "server_key")
    for field, value in zip(fields, hosts.way_to(host), strict=True):
        if value is not None:
            yield field, value


def _at(path: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    for field, problem, fix in problems:
        yield Problem(f"{path}.{field}" if field else path, problem, fix)
