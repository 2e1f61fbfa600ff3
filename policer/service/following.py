"""Moves contracts with their routers between hosts, begins and ends them, and reports it.

A leader moves the state of a router with it, so that no router leaves its ladder by moving.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

import msgspec
import structlog

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.in_force import Classes
from policer.contracts.location import Move
from policer.contracts.promised import Promises
from policer.contracts.zones import is_known
from policer.decide.telemetry import HostTelemetry
from policer.fleet.limited import tenant_of
from policer.fleet.live import Fleet
from policer.service.host_loop import HostLoop, Remembered
from policer.service.writer import Writer
from policer.store import Event, PunishmentRow
from policer.token_bucket import Buckets

TWICE_AFTER_S = 30.0
"""A router may be on two hosts for this time without an event, as during a migration."""
MANY, SOME_PER_S = 1000.0, 1 / 60
"""Events of one kind that a host may cause: in a burst, when all its routers move, and in the long
run."""
LoopOf = Callable[[str], HostLoop | None]
Punished = Mapping[tuple[str, str], PunishmentRow]
"""By host and router."""


class Following:
    """Places of routers, and terms there; used only by the service, in one thread."""

    def __init__(
        self,
        fleet: Fleet,
        writer: Writer,
        *,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
        loop_of: LoopOf,
        ruled: Callable[[], int],
    ) -> None:
        """Start with empty state.

        Args:
            fleet: shared view of the hosts.
            writer: writes events, punishments and homes.
            clock: monotonic seconds.
            wall: time of day.
            loop_of: returns a host's loop; None if it has none.
            ruled: returns the epoch in which this policer took over the punishments.
        """
        self._fleet, self._writer, self._clock, self._wall = fleet, writer, clock, wall
        self._loop_of, self._ruled = loop_of, ruled
        self._log = structlog.get_logger("policer.following")
        self._promises = Promises(clock())
        self._whereabouts = self._promises.whereabouts
        self._events = Buckets(SOME_PER_S, MANY)
        self._twice: set[tuple[str, str]] = set()
        """Routers, and hosts that claim them, for which that was noted."""
        self._overpromised: set[str] = set()
        """Hosts for which that was noted."""
        self._odd: set[tuple[str, str, str]] = set()
        """Host and router of contracts, and their time zone, which this machine does not have."""
        self._noted_odd: set[tuple[str, str, str]] = set()

    def take(
        self,
        entered: Mapping[str, Mapping[str, Contract]],
        classes: Classes,
        homes: Mapping[str, str],
    ) -> bool:
        """Take over the store's contracts by host and router, classes, and homes.

        Returns:
            Whether they may affect every host.
        """
        self._odd = set(_in_unknown_zones(entered))
        return self._promises.take(entered, classes, homes)

    def forget(self, host: str) -> None:
        """Forget a removed host."""
        self._whereabouts.forget(host)
        self._overpromised.discard(host)

    def enter(self, name: str, host: Host | None = None) -> None:
        """Update a host's loop if the terms in force there changed.

        Args:
            name: of the host.
            host: its entry, if that may have changed.
        """
        loop, live = self._loop_of(name), self._fleet.get(name)
        if loop is None or live is None:  # it is being removed
            return
        promised = self._promises.on(name, self._wall())
        known = [getattr(live, name) for name in promised._fields]
        if list(promised) != known or host not in {None, live.host}:
            loop.enter(host or live.host, promised.contracts, promised)

    def heard(self, host: str, telemetry: HostTelemetry) -> None:
        """Move contracts with the routers that came to a host."""
        loop = self._loop_of(host)
        if loop is None:
            return
        moves = self._whereabouts.heard(host, telemetry.routers, self._clock())
        if not moves:
            return
        homes = sorted({move.from_host for move in moves if move.from_host is not None})
        came = [self._take_from(home, moves) for home in homes]
        self.enter(host)
        for routers in came:
            loop.adopt(routers)
        for home in homes:
            self.enter(home)
        if self._leads():
            self._keep(moves)

    def look(self, hosts: Iterable[str]) -> None:
        """Begin and end contracts on time; report the hosts that now promise too much."""
        for name in hosts:
            if self._promises.may_change(name):
                self.enter(name)
        if self._leads():
            self._note_twice()
            self._note_too_much()
            self._note_zones()

    def take_over(self, homes: Mapping[str, str], punished: Punished, epoch: int) -> Punished:
        """Continue from the previous leader; return the punished routers by host.

        This policer saw the moves that the previous leader could not write.

        Args:
            homes: homes of routers in the store.
            punished: punishments in the store.
            epoch: of this policer.
        """
        self._whereabouts.correct(homes)
        found = dict(punished)
        for router, home in self._whereabouts.homes.items():
            before = homes.get(router)
            if before != home:
                self._writer.settle(router, home, epoch)
            if before is not None and before != home:
                vr = self._whereabouts.name_on(home, router) or router
                known = self._whereabouts.name_on(before, router)
                old, new = (before, self._name_before(before, known, vr)), (home, vr)
                if row := found.pop(old, None):
                    found[new] = msgspec.structs.replace(row, host=new[0], vr=new[1])
                    self._writer.punish(*old, None, epoch)
                    self._writer.punish(*new, found[new], epoch)
        for name in self._fleet.hosts:
            self.enter(name)
        return found

    def now_at(self, host: str, vr: str) -> tuple[str, str]:
        """Return the current place of a router that was punished on a host just now."""
        live = self._fleet.get(host)
        if live is not None and vr in live.state.routers:
            return host, vr
        return self._whereabouts.now_at(host, vr) or (host, vr)

    def _keep(self, moves: Iterable[Move]) -> None:
        """Queue moves for the store."""
        for move in moves:
            if move.came:
                self._writer.settle(move.router, move.host, self._ruled())
            if move.came or move.from_vr is not None:
                self._note("moved", move.host, move.vr, _words_of(move))

    def _take_from(self, home: str, moves: Iterable[Move]) -> dict[str, Remembered]:
        """Take routers that moved, or were renamed, from the loop of one host, by their new names.

        This comes before its contracts change: the routers are still those of their tenants.
        """
        loop = self._loop_of(home)
        if loop is None:
            return {}
        gone = [move for move in moves if move.from_host == home]
        names = {self._name_before(home, move.from_vr, move.vr): move.vr for move in gone}
        released = loop.release(names.keys() - {""})
        return {names[vr]: one for vr, one in released.items()}

    def _name_before(self, host: str, known: str | None, vr: str) -> str:
        """Return a router's name on a host that it left; "" if unknown.

        After a start of the policer the name is unknown for a UUID; but most routers keep theirs.
        """
        live = self._fleet.get(host)
        taken = live is None or vr in live.telemetry.routers
        return known or ("" if taken else vr)

    def _leads(self) -> bool:
        """Whether this policer leads and has taken over the punishments."""
        leadership = self._fleet.leadership
        return leadership.leading and leadership.epoch == self._ruled()

    def _note_twice(self) -> None:
        """Report the routers that are on two hosts, once per occurrence."""
        twice = set(self._whereabouts.claims(self._clock() - TWICE_AFTER_S))
        for router, host in sorted(twice - self._twice):
            vr = self._whereabouts.name_on(host, router) or router
            self._note("twice", host, vr, self._why(router))
        self._twice = twice

    def _why(self, router: str) -> str:
        home = self._whereabouts.homes[router]
        if self._whereabouts.shows(home, router):
            fix = "stop the copy, or give the contract the router's UUID"
            return f"{home} has it too: its contract stays there ({fix})"
        return f"{home} may still have it, or it moved too often lately: its contract stays there"

    def _note_too_much(self) -> None:
        """Report the hosts that promise more than they can forward, once per occurrence."""
        lives = self._fleet.hosts
        too_much = {name for name, live in lives.items() if live.overpromised}
        for name in sorted(too_much - self._overpromised):
            live = lives[name]
            words = (
                f"{live.guaranteed_pps:g} packets/s are guaranteed to its routers, and it can"
                f" forward {live.host.capacity_pps:g}: move a router, or lower a guarantee"
            )
            self._note("overpromised", name, None, words)
        self._overpromised = too_much

    def _note_zones(self) -> None:
        """Report contracts with hours in a zone that this machine does not have."""
        for host, vr, zone in sorted(self._odd - self._noted_odd):
            words = (
                f"this machine knows no time zone {zone!r}, and reads the contract's hours in UTC"
            )
            self._note("unknown_zone", host, vr, f"{words} (install tzdata)")
        self._noted_odd = self._odd

    def _note(self, kind: str, host: str, vr: str | None, words: str) -> None:
        """Note an event that hosts can cause, limited to protect the table of events."""
        self._log.info(kind, host=host, vr=vr, words=words)
        if not self._events.wait(self._clock(), f"{kind} {host}"):
            tenant = None if vr is None else tenant_of(self._fleet.get(host), vr)
            self._writer.note(Event(host, kind, words, vr, at=self._wall(), tenant=tenant))


def _in_unknown_zones(
    entered: Mapping[str, Mapping[str, Contract]],
) -> Iterator[tuple[str, str, str]]:
    for host, contracts in entered.items():
        for vr, contract in contracts.items():
            if contract.hours and not is_known(contract.zone):
                yield host, vr, contract.zone


def _words_of(move: Move) -> str:
    if not move.came:
        return f"it was called {move.from_vr} before"
    came = f"came from {move.from_host}" if move.from_host else "was found"
    its = "its contract" if move.router == move.vr else f"the contract of {move.router}"
    return f"it {came}, and {its} with it"
