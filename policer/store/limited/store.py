"""The store as a limited token sees it: what is beyond its reach does not exist.

It has only the tables named here.
"""

from typing import Any, Final, NoReturn

import msgspec

from policer.contracts.host import Host
from policer.contracts.reach import UNLIMITED, Reach
from policer.errors import OutOfReach
from policer.store.database.engine import Database
from policer.store.database.records import Clock, Stored
from policer.store.database.within import ANY_TIME, Time
from policer.store.history.events import EventRow, Events
from policer.store.history.punishments import PunishmentRow, Punishments
from policer.store.inventory.hosts import Hosts, no_host
from policer.store.limited.classes import ReachedClasses
from policer.store.limited.contracts import PART, ReachedContracts
from policer.store.limited.history import ReachedHistory, ReachedSlaDays
from policer.store.limited.overrides import ReachedOverrides
from policer.store.limited.requester import Requester
from policer.store.store import Store

OWN_WORDS: Final = frozenset(
    {
        "behaves",
        "guarantee_missed",
        "misbehaves",
        "not_starved",
        "self_inflicted_loss",
        "pardoned",
        "punished",
        "shielded",
        "starved",
        "unshielded",
    }
)
"""Kinds of events with texts of the policer that contain no names."""
OF_OTHER_HOSTS: Final = frozenset({"epoch_raised", "moved", "overpromised", "overtaken", "twice"})
"""Kinds of events with texts that may name other hosts, or the leader."""


class ReachedStore(Store):
    """The tables that a limited token may use."""

    def __init__(self, store: Store, requester: Requester) -> None:
        database, clock = store.parts
        self.hosts = ReachedHosts(database, clock, requester)
        contracts = ReachedContracts(database, clock, requester)
        self.contracts = contracts
        self.classes = ReachedClasses(database, clock, requester, contracts)
        self.overrides = ReachedOverrides(database, clock, requester)
        self.events = ReachedEvents(database, clock, requester)
        self.punishments = ReachedPunishments(database, requester)
        self.history = ReachedHistory(database, requester)
        self.sla = ReachedSlaDays(database, requester)
        self.idempotency = store.idempotency

    def __getattr__(self, name: str) -> Any:
        """Refuse every other table; raises OutOfReach."""
        raise OutOfReach


class ReachedHosts(Hosts):
    """Hosts that are visible as a whole; read-only."""

    def __init__(self, database: Database, clock: Clock, requester: Requester) -> None:
        super().__init__(database, clock)
        self._requester = requester

    def all(self) -> list[Stored[Host]]:
        """Return the visible hosts."""
        seen = self._requester.reach.may_see_host
        return [self._shown(one) for one in super().all() if seen(one.value.name)]

    def page(self, after: str | None, limit: int) -> list[Stored[Host]]:
        """Return visible hosts, as `Hosts.page`."""
        if self._requester.reach.partial:
            return []
        found: list[Stored[Host]] = []
        while len(found) < limit:
            part = super().page(after, PART)
            seen = (one for one in part if self._requester.reach.may_see_host(one.value.name))
            found += map(self._shown, seen)
            if len(part) < PART:
                break
            after = part[-1].value.name
        return found[:limit]

    def get(self, name: str) -> Stored[Host]:
        """Return a visible host; raises Unknown."""
        if not self._requester.reach.may_see_host(name):
            raise no_host(name)
        return self._shown(super().get(name))

    def _shown(self, stored: Stored[Host]) -> Stored[Host]:
        return Stored(stored.value, self._requester.version(stored.version))

    def _refused(self, *_: object, **__: object) -> NoReturn:
        """Raise OutOfReach."""
        raise OutOfReach

    add = replace = remove = _refused


class ReachedEvents(Events):
    """Visible events."""

    def __init__(self, database: Database, clock: Clock, requester: Requester) -> None:
        super().__init__(database, clock)
        self._requester = requester

    def page(
        self,
        after: int | None,
        limit: int,
        host: str | None = None,
        vr: str | None = None,
        kind: str | None = None,
        *,
        time: Time = ANY_TIME,
        reach: Reach = UNLIMITED,
    ) -> list[EventRow]:
        """Return visible events, as `Events.page`."""
        del reach
        rows = super().page(after, limit, host, vr, kind, time=time, reach=self._requester.reach)
        return [told(row, self._requester) for row in rows]

    def since(
        self,
        last_id: int,
        limit: int,
        host: str | None = None,
        vr: str | None = None,
        kind: str | None = None,
        *,
        time: Time = ANY_TIME,
        reach: Reach = UNLIMITED,
    ) -> list[EventRow]:
        """Return visible events, as `Events.since`."""
        del reach
        rows = super().since(last_id, limit, host, vr, kind, time=time, reach=self._requester.reach)
        return [told(row, self._requester) for row in rows]

    def _refused(self, *_: object, **__: object) -> NoReturn:
        """Raise OutOfReach: the policer writes them."""
        raise OutOfReach

    add = prune = fresh = _refused


class ReachedPunishments(Punishments):
    """Punishments of visible routers."""

    def __init__(self, database: Database, requester: Requester) -> None:
        super().__init__(database)
        self._requester = requester

    def all(self) -> dict[tuple[str, str], PunishmentRow]:
        """Return the visible punishments."""
        reach, tenant_of = self._requester.reach, self._requester.tenant_of
        rows = super().all().items()
        return {key: row for key, row in rows if reach.may_see(*key, tenant_of(*key))}

    def set(self, *_: object, **__: object) -> NoReturn:
        """Raise OutOfReach: the policer writes them."""
        raise OutOfReach


def told(row: EventRow, requester: Requester) -> EventRow:
    """Return an event as a limited token reads it; pure."""
    actor = requester.masked(row.actor)
    if row.actor != "policer":
        words = f"by {actor}"
    elif row.kind in OF_OTHER_HOSTS or (requester.reach.partial and row.kind not in OWN_WORDS):
        words = ""
    else:
        words = row.words
    return msgspec.structs.replace(row, actor=actor, words=words)
