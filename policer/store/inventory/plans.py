"""Plans for the fleet: made by one policer, applied by any, and removed after a day."""

import secrets
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, delete, select, update

from policer.actor import By
from policer.contracts.replay import Replayed
from policer.errors import Forbidden, Invalid, PlanStale, Stale, StoreGone, Unknown
from policer.fleetfile.capacity import Homes
from policer.fleetfile.document import FleetFile, file_of, size_problems
from policer.fleetfile.edits import Scope
from policer.fleetfile.plan import Draft, Planned, draft, planned
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.pruning import prune
from policer.store.database.records import Clock, refuse
from policer.store.inventory.fleet import Done, entered, homes_in, lock_all, write

S = TypeVar("S", bound=msgspec.Struct)
Seen = Callable[[Collection[str]], Mapping[str, Sequence[str]]]
"""Returns the hosts that report routers."""
Replaying = Callable[[Draft], Replayed]
"""Returns the effect of contracts on recorded traffic."""

KEPT: Final = timedelta(days=1)
MOST, MOST_EACH, MOST_BYTES = 100, 10, 64 << 20
"""Limits of all plans, of those of one maker, and of the bytes of all; the oldest go first."""
OPEN, APPLIED = 1, 2
"""The versions of a plan."""


class PlanRow(msgspec.Struct, frozen=True):
    """Current state of a plan."""

    id: str
    planned: Planned
    made_at: datetime
    made_by: str
    applied_at: datetime | None
    """None if it was not applied."""
    applied_by: str | None

    @property
    def version(self) -> int:
        """The number in its ETag."""
        return OPEN if self.applied_at is None else APPLIED


class _Asked(msgspec.Struct, frozen=True):
    """Input of a plan."""

    fleet: FleetFile
    keep: bool
    seen: dict[str, str]
    """Places of routers that were missing in the store."""


class Plans:
    """The table of plans."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def fleet(self) -> FleetFile:
        """Return all operators' entries, as of one instant."""
        with self._database.read() as connection:
            return file_of(entered(connection))

    def make(
        self,
        fleet: FleetFile,
        *,
        keep: bool,
        actor: By,
        maker: str,
        seen: Seen,
        replaying: Replaying | None = None,
    ) -> PlanRow:
        """Compute the changes of a document, and keep them so that they can be applied.

        Args:
            fleet: the document.
            keep: whether to keep what it does not name.
            actor: actor of the request.
            maker: the id of the token, whose plans are bounded in number.
            seen: returns the places of followed routers that are missing in the store.
            replaying: returns the effect on recorded traffic, if requested.

        Raises:
            Invalid: the document is too large.
        """
        refuse(size_problems(fleet))
        with self._database.read() as connection:
            current, homes = entered(connection), homes_in(connection)
        having = seen(fleet.contracts.keys() - homes.keys())
        alone = {router: hosts[0] for router, hosts in having.items() if len(hosts) == 1}
        asked = _Asked(fleet, keep, alone)
        made = draft(fleet, current, {**asked.seen, **homes}, keep=keep)
        now = self._clock()
        plan = planned(fleet, made, having, now)
        if replaying is not None:
            plan = msgspec.structs.replace(plan, replay=replaying(made))
        row = PlanRow(secrets.token_hex(16), plan, now, str(actor), None, None)
        with self._database.write() as connection:
            _insert(connection, row, asked, made.basis, maker)
            _bound(connection, row.id, maker, now - KEPT)
        return row

    def get(self, plan: str) -> PlanRow:
        """Return a plan; raises Unknown."""
        with self._database.read() as connection:
            return _plan(self._row(connection, plan))

    def apply(self, plan: str, if_version: int, actor: By, scope: Scope) -> PlanRow:
        """Make all changes of a plan, or none; none if it was applied before.

        Args:
            plan: its id.
            if_version: version that the client read; the one before it was applied is valid, too.
            actor: actor of the change.
            scope: scope of the client.

        Raises:
            Unknown: there is no such plan, or it is older than a day.
            Stale: it never had that version, or something that it depends on was changed since it
                was made.
            Forbidden: it takes a larger scope.
            Invalid: it has problems.
        """
        with self._database.write() as connection:
            row = self._row(connection, plan, lock=True)
            found = _plan(row)
            if if_version not in {OPEN, found.version}:
                raise Stale("plan", plan, found.version)
            if found.applied_at is not None:
                return found
            if found.planned.needs == "admin" and scope != "admin":
                raise Forbidden("admin")
            lock_all(connection)
            seen, made = _again(connection, row)
            if made.basis != row.basis:
                raise PlanStale(plan, found.version)
            if found.planned.problems:
                raise Invalid(found.planned.problems)
            now = self._clock()
            write(self._database, connection, made.edits, seen, Done(actor, now, plan))
            done = {"applied_at": now, "applied_by": str(actor)}
            connection.execute(update(tables.plans).where(tables.plans.c.id == plan).values(done))
        return msgspec.structs.replace(found, **done)

    def prune(self) -> int:
        """Remove plans older than a day; return how many."""
        return prune(self._database, tables.plans, tables.plans.c.made_at < self._clock() - KEPT)

    def _row(self, connection: Connection, plan: str, *, lock: bool = False) -> Row[Any]:
        table = tables.plans
        query = select(table).where(table.c.id == plan, table.c.made_at >= self._clock() - KEPT)
        row = connection.execute(query.with_for_update() if lock else query).one_or_none()
        if row is None:
            raise Unknown("plan", plan, "plans are kept for a day: plan again")
        return row


def _again(connection: Connection, row: Row[Any]) -> tuple[Homes, Draft]:
    """Return places of routers missing in the store, and the current changes of a plan."""
    asked, known = _read(row.fleet, _Asked, row.id), homes_in(connection)
    seen = {router: host for router, host in asked.seen.items() if router not in known}
    homes = {**seen, **known}
    return seen, draft(asked.fleet, entered(connection), homes, keep=asked.keep)


def _insert(connection: Connection, row: PlanRow, asked: _Asked, basis: str, maker: str) -> None:
    fleet, done = _packed(asked), _packed(row.planned)
    values = {
        "id": row.id,
        "made_at": row.made_at,
        "made_by": row.made_by,
        "maker": maker,
        "basis": basis,
        "fleet": fleet,
        "planned": done,
        "size": len(fleet) + len(done),
    }
    connection.execute(tables.plans.insert().values(values))


def _bound(connection: Connection, plan: str, maker: str, expired: datetime) -> None:
    """Remove the oldest plans: those before an instant, and those above the limit.

    The newest stays, whatever the clocks of other policers show.
    """
    table = tables.plans
    connection.execute(delete(table).where(table.c.made_at < expired))
    _keep_latest(connection, plan, MOST_EACH, table.c.maker == maker)
    _keep_latest(connection, plan, MOST)


def _keep_latest(connection: Connection, plan: str, most: int, *which: ColumnElement[bool]) -> None:
    """Keep a number of some plans, and one in any case."""
    table = tables.plans
    latest = (table.c.id == plan).desc(), table.c.made_at.desc(), table.c.id
    query = select(table.c.id, table.c.size).where(*which).order_by(*latest)
    room, old = MOST_BYTES, []
    for number, (one, size) in enumerate(connection.execute(query)):
        room -= size
        if number and (number >= most or room < 0):
            old.append(one)
    connection.execute(delete(table).where(table.c.id.in_(old)))


def _plan(row: Row[Any]) -> PlanRow:
    what = _read(row.planned, Planned, row.id)
    return PlanRow(row.id, what, row.made_at, row.made_by, row.applied_at, row.applied_by)


def _packed(value: msgspec.Struct) -> bytes:
    return zlib.compress(msgspec.json.encode(value))


def _read(raw: bytes, kind: type[S], plan: str) -> S:
    """Return what was stored; raises StoreGone if it was damaged."""
    try:
        return msgspec.json.decode(zlib.decompress(raw), type=kind)
    except (zlib.error, msgspec.DecodeError) as error:
        raise StoreGone(f"plan {plan} cannot be read from the database: {error}") from error
