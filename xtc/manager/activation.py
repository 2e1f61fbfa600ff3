"""Routers whose control begins, and work that waits for the journal: shield first, then cap.

A tick never waits for the disk. Changes that must be durable first go to the journal, and are
carried out once it is written: when the loop wakes up, or in the next tick.
"""

from collections.abc import Collection, Mapping

from common.units import Seconds
from xtc.control.instance import Command
from xtc.manager.router import ManagedRouter
from xtc.manager.shields import Shields
from xtc.state.journal import Ledger


class Beginnings:
    """The work on each router that waits for the journal."""

    def __init__(self, shields: Shields) -> None:
        self._shields = shields
        self._starting: set[str] = set()
        """Routers for which it is not known yet whether a shield holds them."""
        self._claiming: set[str] = set()
        """Routers with a shield that the journal does not contain yet."""
        self._commands: dict[str, Command] = {}
        """Caps by router, waiting until the original is durable."""
        self._first: set[str] = set()
        """Those of them that get their first cap before any sample."""
        self.capping: frozenset[str] = frozenset()
        """Routers to be capped: the journal must contain their originals."""

    def start(self, name: str) -> None:
        """Note that control of a router begins."""
        self._starting.add(name)

    def first_cap(self, managed: ManagedRouter, period: Seconds) -> None:
        """Cap a router before its first sample, unless a shield holds it."""
        name = managed.plan.name
        holds = self._shields.holds(managed) if name in self._starting else True
        if holds is None:
            return
        self._starting.discard(name)
        command = None if holds else managed.first(period)
        if command is not None:
            self._commands[name] = command
            self._first.add(name)
            self.capping |= {name}

    def claim(self, managed: ManagedRouter, now: Seconds) -> bool:
        """Note which interfaces will get a shield; return whether the journal does not know yet."""
        if self._shields.claim(managed, now):
            self._claiming.add(managed.plan.name)
        return managed.plan.name in self._claiming

    def tend(self, managed: ManagedRouter, now: Seconds, certain: Ledger) -> None:
        """Maintain a router's shield, which is set once the durable journal contains it."""
        self._shields.tend(managed, now, may_set=knows_shield(certain, managed))
        self._note_claimed(managed, certain)

    def follow(self, managed: ManagedRouter, now: Seconds, certain: Ledger) -> None:
        """Set or change a router's shield between two ticks, once the journal contains it."""
        self._shields.follow(managed, now, may_set=knows_shield(certain, managed))
        self._note_claimed(managed, certain)

    def _note_claimed(self, managed: ManagedRouter, certain: Ledger) -> None:
        """Note that a router's shield was maintained."""
        if knows_shield(certain, managed):
            self._claiming.discard(managed.plan.name)

    def cap_later(self, commands: Mapping[str, Command]) -> None:
        """Carry out these caps as soon as their originals are durable, and no earlier ones.

        A waiting first cap is among them, unless a sample has led to another.
        """
        waiting = {name: self._commands[name] for name in self._first & self._commands.keys()}
        self._first.intersection_update(waiting.keys() - commands.keys())
        self._starting.difference_update(commands)
        self._commands = waiting | dict(commands)
        self.capping = frozenset(self._commands)

    def due(self, name: str) -> Command | None:
        """Return once the cap that waited for a router's original, which is now durable."""
        self._first.discard(name)
        return self._commands.pop(name, None)

    def carried_out(self, names: Collection[str]) -> None:
        """Forget caps that waited for these routers' originals: newer ones replaced them."""
        self._first.difference_update(names)
        for name in self._commands.keys() & names:
            del self._commands[name]

    def waits(self, name: str) -> bool:
        """Whether a router waits for the journal or for its interfaces."""
        return name in self._claiming or name in self._commands or name in self._starting

    def overrule(self, name: str) -> None:
        """Cancel caps that were decided on a sample: a request overrules them."""
        if name not in self._first:
            self._commands.pop(name, None)

    def end(self, name: str) -> None:
        """Cancel everything: the router is no longer under control, or is left as it is."""
        self._starting.discard(name)
        self._first.discard(name)
        self._commands.pop(name, None)


def knows_shield(certain: Ledger, managed: ManagedRouter) -> bool:
    """Whether the durable journal has every interface that may have a router's shield."""
    return {*managed.shielded.claimed} <= {*certain.shields.get(managed.plan.name, ())}
