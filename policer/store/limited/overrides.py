"""Overrides for a limited token: suspensions of its hosts, exemptions of its routers.

It may suspend and resume hosts that it reaches as a whole, but not exempt routers. The brake and
the epoch concern the fleet.
"""

from typing import NoReturn

from sqlalchemy import Connection

from policer.actor import By
from policer.contracts.overrides import Override
from policer.errors import OutOfReach
from policer.store.database.engine import Database
from policer.store.database.records import Clock
from policer.store.inventory.hosts import no_host
from policer.store.inventory.override_rows import OverrideKey, key_of, required
from policer.store.inventory.overrides import OverrideTable
from policer.store.limited.requester import Requester


class ReachedOverrides(OverrideTable):
    """Visible overrides; only their authors see the reasons."""

    def __init__(self, database: Database, clock: Clock, requester: Requester) -> None:
        super().__init__(database, clock)
        self._requester = requester

    def all(self) -> list[Override]:
        """Return the visible overrides."""
        return [self._requester.override(one) for one in super().all() if self._sees(key_of(one))]

    def get(self, key: OverrideKey) -> Override:
        """Return a visible override; raises Unknown."""
        if not self._sees(key):
            return required(None, key)
        return self._requester.override(super().get(key))

    def put(self, wanted: Override, if_version: int | None, actor: By) -> Override:
        """Suspend a visible host, as `OverrideTable.put`; raises OutOfReach for all else."""
        if wanted.kind != "suspension":
            raise OutOfReach
        return super().put(wanted, if_version, actor)

    def clear(self, key: OverrideKey, if_version: int, actor: By) -> None:
        """Resume a visible host, as `OverrideTable.clear`; raises OutOfReach for all else."""
        if key.kind != "suspension":
            raise OutOfReach
        if not self._sees(key):
            required(None, key)
        super().clear(key, if_version, actor)

    def _refused(self, *_: object, **__: object) -> NoReturn:
        """Raise OutOfReach."""
        raise OutOfReach

    brake = ask_epoch = took_epoch = end_due = _refused

    def _sees(self, key: OverrideKey) -> bool:
        reach = self._requester.reach
        if key.kind == "suspension":
            return reach.may_see_host(key.host)
        if key.kind == "exemption":
            return reach.may_see(key.host, key.vr, self._requester.tenant_of(key.host, key.vr))
        return False

    def _require_target(self, connection: Connection, key: OverrideKey) -> None:
        """Check that a host exists and is visible; no answer distinguishes the two."""
        if not self._sees(key):
            raise no_host(key.host)
        super()._require_target(connection, key)
