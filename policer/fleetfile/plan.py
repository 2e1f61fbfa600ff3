"""A plan: the changes of a document, its problems, and what it depends on; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from policer.contracts.contract import Contract
from policer.contracts.host import way_to
from policer.contracts.in_force import Book, classes_of
from policer.contracts.replay import Replayed
from policer.errors import Problem
from policer.fleetfile.capacity import (
    Homes,
    PlannedHost,
    Standing,
    affected,
    loads,
    problems_of_capacity,
    standing,
)
from policer.fleetfile.checks import ambiguous, problems_of
from policer.fleetfile.document import Entered, FleetFile, incomplete, wanted
from policer.fleetfile.edits import Edit, PlannedChange, Scope, edits, is_moved, needed, shown

MOST_PROBLEMS = 200
"""Limit of the reported problems."""


class Planned(msgspec.Struct, frozen=True):
    """Effect of a plan, computed when it was made."""

    keep: bool
    """Whether to keep what the document does not name."""
    needs: Scope
    """The scope required to apply it."""
    changes: tuple[PlannedChange, ...]
    problems: tuple[Problem, ...]
    """Why it cannot be applied; only the first ones, where there are very many."""
    hosts: tuple[PlannedHost, ...]
    """Hosts with changes."""
    replay: Replayed | None = None
    """Effect on recorded traffic; None if not requested."""


class Draft(NamedTuple):
    """Changes of a document to a fleet, not yet checked."""

    keep: bool
    """Whether to keep what the document does not name."""
    edits: tuple[Edit, ...]
    before: Standing
    goal: Standing
    hosts: list[str]
    """Hosts with changes."""

    @property
    def basis(self) -> str:
        """Digest of everything that the plan depends on: as long as it is equal, so is the plan."""
        content = [
            [[edit.kind, edit.host, edit.name, edit.before, edit.after] for edit in self.edits],
            [[name, self.before.entered.hosts.get(name)] for name in self.hosts],
            [[name, self.before.on.get(name)] for name in self.hosts],
            *self._named(),
            self._ways() if any(map(is_moved, self.edits)) else [],
        ]
        return sha256(msgspec.json.encode(content, order="sorted")).hexdigest()

    def _ways(self) -> list[object]:
        """Return how each daemon is reached, of which no two hosts may have one."""
        return [[name, way_to(host)] for name, host in sorted(self.before.entered.hosts.items())]

    def _named(self) -> Iterator[Sequence[object]]:
        """Yield what contracts that matter here name: classes with their terms, and tenants."""
        entered, contracts = self.before.entered, list(self._contracts())
        classes = set(chain.from_iterable(map(classes_of, contracts)))
        yield [[name, entered.classes.get(name)] for name in sorted(classes)]
        tenants = {one.tenant for one in contracts if one.tenant is not None}
        yield sorted(tenants & entered.tenants.keys())

    def _contracts(self) -> Iterator[Contract]:
        for edit in self.edits:
            if edit.kind == "contract" and isinstance(edit.after, Contract):
                yield edit.after
        for name in self.hosts:
            for side in (self.before, self.goal):
                yield from side.on.get(name, {}).values()


def draft(file: FleetFile, current: Entered, homes: Homes, *, keep: bool) -> Draft:
    """Return what a document would do.

    Args:
        file: the document.
        current: what is entered.
        homes: where routers are whose contracts follow them.
        keep: whether what the document does not name stays.
    """
    goal = wanted(file, current, keep=keep)
    done = edits(current, goal)
    after = standing(goal, homes)
    return Draft(keep, done, standing(current, homes), after, affected(done, after, homes))


def planned(
    file: FleetFile, made: Draft, having: Mapping[str, Sequence[str]], now: datetime
) -> Planned:
    """Return what a draft would do, and all that is wrong with it.

    Later it is no worse: what was promised for a time that is over counts no more.

    Args:
        file: the document.
        made: what it would do.
        having: the hosts that report routers whose contracts follow them.
        now: with its zone.
    """
    before, goal = made.before.entered, made.goal.entered
    hosts = loads(made.hosts, made.before, made.goal, Book(before.classes, now))
    problems: Iterable[Problem] = chain(
        incomplete(file, before),
        problems_of(made.edits, goal),
        ambiguous(made.edits, having),
        problems_of_capacity(hosts, before, goal),
    )
    return Planned(
        keep=made.keep,
        needs=needed(made.edits),
        changes=tuple(map(shown, made.edits)),
        problems=tuple(islice(problems, MOST_PROBLEMS)),
        hosts=tuple(hosts),
    )
