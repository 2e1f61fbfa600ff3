"""Overrides as set by operators; each change is an event and an audit record.

The first transaction that finds an expired override clears it: the leader's, or a change.
Transactions lock rows first, then the count of changes, then the log of events, so that no two wait
for each other.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy import Connection, select

from policer.actor import By
from policer.contracts.overrides import Override, end_words, problems, words_of
from policer.errors import Invalid, Problem, Unknown
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.records import Clock, as_stored, refuse
from policer.store.history.audit import Change, count_change, record
from policer.store.history.events import Event, write_events
from policer.store.inventory.hosts import entered_host, lock_anywhere
from policer.store.inventory.override_rows import (
    BRAKE,
    EPOCH,
    Author,
    OverrideKey,
    end_due,
    expect,
    key_of,
    override_of,
    read_all,
    read_row,
    required,
    write,
)
from policer.store.inventory.promises import contracts_on

UNPROMISED: Final = (
    "a router without a contract is never punished: there is nothing to exempt it from"
)


class OverrideTable:
    """The table of overrides."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def all(self) -> list[Override]:
        """Return every override that was set and not cleared, by kind, host and router.

        Expired ones may be among them.
        """
        with self._database.read() as connection:
            return read_all(connection)

    def get(self, key: OverrideKey) -> Override:
        """Return a current override; raises Unknown."""
        with self._database.read() as connection:
            override = required(read_row(connection, key), key)
        return required(None, key) if override.ended(self._clock()) else override

    def brake(self) -> Override:
        """Return the mode of the brake; automatic without an override."""
        with self._database.read() as connection:
            brake = _brake(connection)
        return replace(brake, mode="automatic") if brake.ended(self._clock()) else brake

    def put(self, wanted: Override, if_version: int | None, actor: By) -> Override:
        """Set or replace an override; an automatic brake clears it.

        Args:
            wanted: the new override.
            if_version: the version to replace; None if there must be none yet.
            actor: actor of the change.

        Raises:
            Unknown: there is no such host, or the router has no contract.
            Taken: there is one already.
            Stale: it was changed, cleared or has expired since that version.
            Invalid: its end or its reason is out of bounds.
        """
        author, key = Author(self._clock(), actor), key_of(wanted)
        refuse(problems(as_stored(wanted), author.at))
        with self._database.write() as connection:
            self._require_target(connection, key)
            ended = end_due(connection, author.at)
            row = read_row(connection, key, lock=True)
            expect(row, key, if_version)
            _say_ended(connection, ended, author.at)
            before, after = override_of(row), None if wanted.mode == "automatic" else wanted
            if before is not None or after is not None:
                after = write(connection, key, row, after, author)
                _record(connection, author, _Changed(key, before, after, wanted.reason))
            return after or _brake(connection)

    def clear(self, key: OverrideKey, if_version: int, actor: By) -> None:
        """End an override.

        Raises:
            Unknown: there is none.
            Stale: it was changed since that version.
        """
        author = Author(self._clock(), actor)
        with self._database.write() as connection:
            ended = end_due(connection, author.at)
            row = read_row(connection, key, lock=True)
            before = required(row, key)
            expect(row, key, if_version)
            _say_ended(connection, ended, author.at)
            write(connection, key, row, None, author)
            _record(connection, author, _Changed(key, before, None))

    def ask_epoch(self, wanted: Override, actor: By) -> Override:
        """Request an epoch above another from the leader; the highest request counts.

        Raises:
            Invalid: the epoch is above it already, or daemons would refuse it.
        """
        author = Author(self._clock(), actor)
        refuse(problems(as_stored(wanted), author.at))
        with self._database.write() as connection:
            _check_above(connection, wanted.above or 0)
            row = read_row(connection, EPOCH, lock=True)
            before = override_of(row)
            above = max(wanted.above or 0, (before and before.above) or 0)
            after = write(connection, EPOCH, row, replace(wanted, above=above), author)
            assert after is not None
            _record(connection, author, _Changed(EPOCH, before, after))
        return after

    def took_epoch(self, epoch: int) -> None:
        """Record that a leader has taken an epoch, if one was requested below it."""
        now = self._clock()
        with self._database.write() as connection:
            row = read_row(connection, EPOCH, lock=True)
            asked = override_of(row)
            if asked is None or (asked.above or 0) >= epoch:
                return
            write(connection, EPOCH, row, None, Author(now, "policer"))
            count_change(connection)
            words = f"epoch {epoch} is taken, above {asked.above}"
            write_events(connection, [Event("", "epoch_raised", words, actor=asked.by)], now)

    def end_due(self) -> None:
        """Clear expired overrides, each with an event."""
        now = self._clock()
        with self._database.write() as connection:
            _say_ended(connection, end_due(connection, now), now)

    def _require_target(self, connection: Connection, key: OverrideKey) -> None:
        """Check that the target of an override exists, and lock it until the transaction ends."""
        if not key.host and not key.vr:
            return
        if key.host:
            entered_host(connection, key.host)
        else:
            lock_anywhere(connection)
        if key.vr and key.vr not in contracts_on(connection, key.host):
            raise Unknown("contract", key.name, UNPROMISED)


class _Changed(NamedTuple):
    """A change by an operator."""

    key: OverrideKey
    before: Override | None
    after: Override | None
    reason: str = ""
    """Reason of clearing; an override that is set has its own."""


def _say_ended(connection: Connection, ended: Sequence[Event], now: datetime) -> None:
    """Record expired overrides, and make all policers read again."""
    if ended:
        count_change(connection)
        write_events(connection, ended, now)


def _record(connection: Connection, author: Author, changed: _Changed) -> None:
    """Record a change."""
    key, after = changed.key, changed.after
    action = "remove" if after is None else "put"
    change = Change(action, key.target, changed.before, after)
    record(connection, author.at, author.by, change)
    if after is None:
        why = f": {changed.reason}" if changed.reason else ""
        kind, words = "override_cleared", end_words(key.kind) + why
    else:
        kind, words = "override_set", words_of(after)
    event = Event(key.host, kind, words, key.vr or None, str(author.by))
    write_events(connection, [event], author.at)


def _brake(connection: Connection) -> Override:
    """Return the brake's override; without one, automatic with the time of that change."""
    row = read_row(connection, BRAKE)
    assert row is not None  # created with the table
    by, at, version = row.changed_by, row.changed_at, row.version
    return override_of(row) or Override("brake", "automatic", by=by, at=at, version=version)


def _check_above(connection: Connection, above: int) -> None:
    """Prevent others from taking an epoch until the transaction ends; raises Invalid."""
    query = select(tables.leadership.c.epoch).with_for_update()
    epoch = int(connection.execute(query).scalar_one())
    if above < epoch:
        fix = "give the epoch in the daemon's refusal"
        raise Invalid([Problem("above", f"the epoch is {epoch}, which is above {above}", fix)])
