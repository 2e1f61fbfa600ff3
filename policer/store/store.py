"""Opens a database, and holds its tables together."""

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final

from policer.history.retention import Oldest
from policer.store.database import records
from policer.store.database.backup import back_up
from policer.store.database.engine import Database
from policer.store.database.schema import Schema
from policer.store.history import audit
from policer.store.history.chunks import History
from policer.store.history.events import Events
from policer.store.history.punishments import Punishments
from policer.store.history.sla import SlaDays
from policer.store.inventory.changes import Changes
from policer.store.inventory.classes import Classes
from policer.store.inventory.contracts import Contracts
from policer.store.inventory.homes import Homes
from policer.store.inventory.hosts import Hosts
from policer.store.inventory.overrides import OverrideTable
from policer.store.inventory.plans import Plans
from policer.store.inventory.tenants import Tenants
from policer.store.service import leadership
from policer.store.service.deliveries import Letters
from policer.store.service.idempotency import Idempotency
from policer.store.service.tokens import Tokens
from policer.store.service.webhooks import Webhooks

BUSY_S: Final = 5.0


class Store:
    """All tables of one database; threads may share it.

    Every call is one transaction. It may raise StoreBusy, StoreGone or StoreOutdated besides its
    own errors; then nothing is changed. The one exception is a connection lost at the very end of a
    change: read again to see whether the change was made.
    """

    def __init__(self, database: Database, schema: Schema, clock: records.Clock) -> None:
        self._database, self._schema, self._clock = database, schema, clock
        self.hosts = Hosts(database, clock)
        self.contracts = Contracts(database, clock)
        self.classes = Classes(database, clock)
        self.tenants = Tenants(database, clock)
        self.plans = Plans(database, clock)
        self.homes = Homes(database, clock)
        self.changes = Changes(database)
        self.events = Events(database, clock)
        self.punishments = Punishments(database)
        self.overrides = OverrideTable(database, clock)
        self.tokens = Tokens(database, clock)
        self.audit = audit.Audit(database)
        self.idempotency = Idempotency(database, clock)
        self.history = History(database)
        self.sla = SlaDays(database)
        self.webhooks = Webhooks(database, clock)
        self.letters = Letters(database, clock)

    @property
    def parts(self) -> tuple[Database, records.Clock]:
        """The database and clock of its tables."""
        return self._database, self._clock

    @property
    def version(self) -> str:
        """The database's version."""
        with self._database.read() as connection:
            return self._schema.version_of(connection)

    def generation(self) -> int:
        """Return a count that rises with every change but those of the leader."""
        with self._database.read() as connection:
            return audit.generation(connection)

    def check(self) -> None:
        """Check that the database is readable and of this program's version; raises StoreError."""
        with self._database.read() as connection:
            self._schema.require_newest(connection)

    def prune(
        self, keep_days: float, keep_audit_days: float, reported: date = date.max
    ) -> dict[str, int]:
        """Remove older events and dead letters, and older tokens, audit rows and revisions.

        Plans are removed after a day.

        Args:
            keep_days: of events and dead letters.
            keep_audit_days: of tokens, audit rows and superseded revisions.
            reported: the oldest day of which there are reports; revisions in force then are kept.

        Returns:
            How many rows of each.
        """
        now = self._clock()
        audited = now - timedelta(days=keep_audit_days)
        return {
            "events": self.events.prune(keep_days),
            "dead_letters": self.letters.prune(now - timedelta(days=keep_days)),
            "tokens": self.tokens.prune(audited),
            "plans": self.plans.prune(),
            "audit": self.audit.prune(audited),
            "revisions": self.contracts.prune(
                min(audited, datetime.combine(reported, time.min, UTC))
            ),
        }

    def prune_history(self, oldest: Oldest) -> dict[str, int]:
        """Remove older history; return how many rows of each kind."""
        return {
            "second_chunks": self.history.prune(1, oldest.second),
            "minute_chunks": self.history.prune(60, oldest.minute),
            "contract_days": self.sla.prune(oldest.day),
        }

    def leadership(self, holder: str) -> leadership.Leadership:
        """Return this policer's leadership.

        Args:
            holder: name of this policer, shown to others.
        """
        path = self._database.path
        if path is None:
            return leadership.PostgresLeadership(self._database, holder, self._clock)
        return leadership.FileLeadership(self._database, path, holder, self._clock)

    def backup(self, target: Path) -> None:
        """Copy the database, as of one instant, into a new file.

        Raises:
            Invalid: the file already exists, or the database is not SQLite's.
            StoreGone: the file cannot be written.
        """
        back_up(self._database, target)

    def bring_down(self, version: str) -> None:
        """Bring the database down to an older version; this store is unusable afterwards.

        Raises:
            Unknown: this program knows no such older version.
        """
        self._schema.bring_down(self._database, version)

    def close(self) -> None:
        """Close the database's connections."""
        self._database.close()


def open_store(
    url: str,
    *,
    create: bool = True,
    upgrade: bool = False,
    busy_s: float = BUSY_S,
    clock: records.Clock = records.now,
    schema: Schema | None = None,
) -> Store:
    """Open a database.

    Args:
        url: sqlite:////path/to/file or postgresql://user:password@host/name.
        create: whether to make the missing parts: the file, and the tables of an empty database.
        upgrade: whether to bring an older database up to this program's version.
        busy_s: how long to wait for locks and connections, seconds.
        clock: time of day.
        schema: the versions that this program supports.

    Raises:
        SettingsError: the URL is of neither kind, or its driver is not installed.
        StoreBusy: another program kept it locked for too long.
        StoreGone: it cannot be reached or read, or is not there and may not be made.
        StoreOutdated: it is of another version, older or newer.
    """
    schema = schema or Schema()
    database = Database(url, busy_s, create=create)
    try:
        schema.prepare(database, create=create, upgrade=upgrade)
    except BaseException:
        database.close()
        raise
    return Store(database, schema, clock)
