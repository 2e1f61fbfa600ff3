"""Contract classes for a limited token: readable if its contracts name them."""

from typing import NoReturn

from policer.contracts.contract import Contract
from policer.errors import OutOfReach
from policer.store.database.engine import Database
from policer.store.database.records import Clock, Stored
from policer.store.inventory.classes import Classes, no_class
from policer.store.limited.contracts import ReachedContracts
from policer.store.limited.requester import Requester


class ReachedClasses(Classes):
    """Classes named by visible contracts; read-only."""

    def __init__(
        self, database: Database, clock: Clock, requester: Requester, contracts: ReachedContracts
    ) -> None:
        super().__init__(database, clock)
        self._requester, self._contracts = requester, contracts

    def all(self) -> dict[str, Stored[Contract]]:
        """Return the visible classes."""
        named = self._contracts.classes_named()
        return {name: self._shown(one) for name, one in super().all().items() if name in named}

    def get(self, name: str) -> Stored[Contract]:
        """Return a visible class; raises Unknown."""
        if name not in self._contracts.classes_named():
            raise no_class(name)
        return self._shown(super().get(name))

    def _shown(self, stored: Stored[Contract]) -> Stored[Contract]:
        return Stored(stored.value, self._requester.version(stored.version))

    def _refused(self, *_: object, **__: object) -> NoReturn:
        """Raise OutOfReach."""
        raise OutOfReach

    put = remove = _refused
