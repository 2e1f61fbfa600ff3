"""The journal's record of a host: no cap, limit, shield or epoch takes effect before its entry."""

from collections.abc import Callable
from itertools import chain

from msgspec.structs import replace

from xtc.errors import JournalError, Refused
from xtc.isolation import Unforeseen
from xtc.manager.host import Host
from xtc.manager.ifindex import Numbers
from xtc.manager.router import ManagedRouter
from xtc.state.journal import UNWRITTEN, Entry, Journal, Ledger


class Records:
    """Keeps the journal up to date."""

    def __init__(self, host: Host, journal: Journal) -> None:
        """Record a host's routers in a journal that is open, and this daemon's alone."""
        self._host, self.journal = host, journal
        self._numbers = Numbers(journal.ledger.numbers)
        self.epoch = journal.ledger.highest_epoch
        """The highest epoch accepted: a lower one is refused."""
        self.reserved = 0
        """The epoch up to which a batch needs no further write."""
        self.problem = ""
        """Why the journal cannot be written; empty while it can."""

    def store(self) -> None:
        """Bring the journal up to date, and wait for the disk."""
        self._store(self.journal.store)

    def store_lazily(self) -> None:
        """Bring the journal up to date without waiting for the disk."""
        self._store(self.journal.store_later)

    def _store(self, store: Callable[[Ledger], None]) -> None:
        """Bring the journal up to date; while that fails, no new router is capped."""
        try:
            store(self._ledger())
        except JournalError as error:
            self.problem = str(error)
        else:
            self.problem = ""

    def raise_epoch(self, epoch: int) -> None:
        """Accept a higher epoch, once it is durable; raises Refused where it cannot be."""
        self.remember(epoch)
        self.epoch = epoch

    def remember(self, epoch: int) -> None:
        """Make durable that an epoch may have been accepted.

        Raises:
            Refused: the journal cannot be written.
        """
        if self.journal.certain.highest_epoch >= epoch:
            return
        try:
            self.journal.store_later(replace(self._ledger(), highest_epoch=epoch))
        except JournalError as error:
            raise Refused("journal", "epoch", str(error)) from error
        if self.journal.certain.highest_epoch < epoch:
            raise Refused("journal", "epoch", UNWRITTEN)

    def durable(self) -> set[str]:
        """Return the routers whose originals survive a crash, so that they may be capped."""
        known = self.journal.secured
        return {name for name, entry in self._entries().items() if known.get(name) == entry}

    def knows_limit(self, managed: ManagedRouter) -> bool:
        """Whether the journal has every interface that may have a router's limit."""
        return {*managed.limited} <= {*self.journal.certain.limits.get(managed.plan.name, ())}

    def _ledger(self) -> Ledger:
        host, routers = self._host, self._host.routers
        leases = {n: m.instance.lease for n, m in routers.items() if m.instance is not None}
        limits = {name: managed.limited for name, managed in routers.items() if managed.limited}
        limits |= host.limits.lifts.left()
        shields = host.shields.interfaces(routers.values())
        return Ledger(
            self.journal.ledger.boot_id,
            host.orphans.entries(self._entries()),
            leases,
            limits,
            max(self.epoch, self.reserved),
            shields,
            self._numbers.of(chain(*limits.values(), *shields.values())),
        )

    def _entries(self) -> dict[str, Entry]:
        """Return what must be restored; the previous entry of a router that fails."""
        host, last = self._host, self.journal.ledger.entries
        entries: dict[str, Entry] = {}
        for name, result in host.guard.each("journal", host.routers, _entry).items():
            if isinstance(result, Unforeseen):
                host.routers[name].fault = result.words
                entries |= {name: last[name]} if name in last else {}
                continue
            entry, untouched = result
            if entry is not None and (name in host.beginnings.capping or not untouched):
                entries[name] = entry
        return entries


def _entry(managed: ManagedRouter) -> tuple[Entry | None, bool]:
    """Return what must be restored of a router, and whether nothing was changed yet."""
    return managed.controller.entry, managed.controller.untouched
