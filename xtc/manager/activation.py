"""Routers that begin to be held, and what only the journal holds up: shield first, then cap.

A tick never waits for the disk. What must be durable is given to the journal, and carried out as
soon as it is: when the loop is woken, or in the next tick.
"""

from collections.abc import Collection, Mapping

from common.units import Seconds
from xtc.control.instance import Command
from xtc.manager.router import Managed
from xtc.manager.shields import Shields
from xtc.state.journal import Ledger


class Beginnings:
    """What is to be done to each router once the journal knows of it."""

    def __init__(self, shields: Shields) -> None:
        self._shields = shields
        self._starting: set[str] = set()
        """Routers of which it is not known yet whether a shield holds them."""
        self._claiming: set[str] = set()
        """Routers whose shield the journal does not know yet."""
        self._commands: dict[str, Command] = {}
        """Caps by router whose original is not durable yet."""
        self._first: set[str] = set()
        """Those of them that get their first cap before any sample."""
        self.capping: frozenset[str] = frozenset()
        """Routers that are to be capped, so that the journal must hold their originals."""

    def start(self, name: str) -> None:
        """Note that a router is held from now on."""
        self._starting.add(name)

    def first_cap(self, managed: Managed, period: Seconds) -> None:
        """Have a router capped before its first sample, where no shield holds it."""
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

    def claim(self, managed: Managed, now: Seconds) -> bool:
        """Note which interfaces are to bear a shield; whether the journal does not know yet."""
        if self._shields.claim(managed, now):
            self._claiming.add(managed.plan.name)
        return managed.plan.name in self._claiming

    def tend(self, managed: Managed, now: Seconds, certain: Ledger) -> None:
        """Look after a router's shield, which is set if what is durable knows of it."""
        self._shields.tend(managed, now, may_set=knows_shield(certain, managed))
        self._note_claimed(managed, certain)

    def follow(self, managed: Managed, now: Seconds, certain: Ledger) -> None:
        """Set or change a router's shield between two ticks, if what is durable knows of it."""
        self._shields.follow(managed, now, may_set=knows_shield(certain, managed))
        self._note_claimed(managed, certain)

    def _note_claimed(self, managed: Managed, certain: Ledger) -> None:
        """Note that a router's shield was looked after."""
        if knows_shield(certain, managed):
            self._claiming.discard(managed.plan.name)

    def cap_later(self, commands: Mapping[str, Command]) -> None:
        """Carry out these caps as soon as their originals are durable, and no earlier ones.

        A first cap that still waits is one of them, where no sample has led to another.
        """
        waiting = {name: self._commands[name] for name in self._first & self._commands.keys()}
        self._first.intersection_update(waiting.keys() - commands.keys())
        self._starting.difference_update(commands)
        self._commands = waiting | dict(commands)
        self.capping = frozenset(self._commands)

    def due(self, name: str) -> Command | None:
        """Return the cap that waited for a router's original, which is durable by now; once."""
        self._first.discard(name)
        return self._commands.pop(name, None)

    def carried_out(self, names: Collection[str]) -> None:
        """Forget the caps that waited for these routers' originals: newer ones are carried out."""
        self._first.difference_update(names)
        for name in self._commands.keys() & names:
            del self._commands[name]

    def waits(self, name: str) -> bool:
        """Whether something of a router waits, for the journal or for its interfaces."""
        return name in self._claiming or name in self._commands or name in self._starting

    def overrule(self, name: str) -> None:
        """Carry out no cap that was decided on a sample: something else is asked of the router."""
        if name not in self._first:
            self._commands.pop(name, None)

    def end(self, name: str) -> None:
        """Carry out nothing: the router is not held any longer, or is left as it is."""
        self._starting.discard(name)
        self._first.discard(name)
        self._commands.pop(name, None)


def knows_shield(certain: Ledger, managed: Managed) -> bool:
    """Whether what is durable has every interface that may bear a router's shield."""
    return {*managed.shielded.claimed} <= {*certain.shields.get(managed.plan.name, ())}
