"""History and reports for a limited token: nothing about what a router did for other tenants."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import NoReturn

import msgspec

from policer.contracts.promised import ANYWHERE
from policer.contracts.reach import Reach
from policer.errors import OutOfReach
from policer.store.database.engine import Database
from policer.store.history.chunks import History, Packed
from policer.store.history.sla import Change, ContractDays, SlaDays
from policer.store.inventory.hosts import no_host
from policer.store.limited.requester import Requester

PART = 500
"""Contracts read in one query."""


class ReachedHistory(History):
    """History of hosts that are visible as a whole: a router may have had another tenant."""

    def __init__(self, database: Database, requester: Requester) -> None:
        super().__init__(database)
        self._requester = requester

    def chunks(self, host: str, span: int, begin: int, end: int, most: int) -> list[Packed]:
        """Return chunks of a visible host, as `History.chunks`; raises Unknown."""
        if not self._requester.reach.may_see_host(host):
            raise no_host(host)
        return super().chunks(host, span, begin, end, most)

    def _refused(self, *_: object, **__: object) -> NoReturn:
        """Raise OutOfReach: the policer writes it."""
        raise OutOfReach

    put = prune = _refused


class ReachedSlaDays(SlaDays):
    """Days of contracts that were visible during a whole report."""

    def __init__(self, database: Database, requester: Requester) -> None:
        super().__init__(database)
        self._requester = requester

    def page(
        self,
        days: tuple[date, date],
        after: tuple[str, str] | None,
        limit: int,
        of_host: str | None = None,
    ) -> list[ContractDays]:
        """Return contracts that were visible on all of these days, as `SlaDays.page`."""
        found: list[ContractDays] = []
        while len(found) < limit:
            part = super().page(days, after, PART, of_host)
            found += (one for one in part if was_seen(one, days, self._requester.reach))
            if len(part) < PART:
                break
            after = part[-1].host, part[-1].vr
        return found[:limit]

    def _refused(self, *_: object, **__: object) -> NoReturn:
        """Raise OutOfReach: the policer writes them."""
        raise OutOfReach

    put = prune = _refused


def was_seen(kept: ContractDays, days: tuple[date, date], reach: Reach) -> bool:
    """Whether a reach includes all hosts and tenants of a contract on some days; pure.

    A token that is limited to routers does not reach a contract that follows: the names under which
    it was reached are not kept.
    """
    tenants = list(_tenants(kept.changes, *map(_midnight, days)))
    if reach.tenants and (not tenants or None in tenants):
        return False
    if kept.host != ANYWHERE:
        return all(reach.may_see(kept.host, kept.vr, one) for one in tenants)
    if reach.routers or (reach.hosts and not kept.hosts):
        return False
    places = kept.hosts or ("",)
    return all(reach.may_see(place, "", one) for place in places for one in tenants)


def _tenants(changes: Sequence[Change], begin: datetime, end: datetime) -> Iterator[str | None]:
    """Yield the tenants of a contract, by version; None is no tenant, or no longer known."""
    if not changes or (changes[0].version > 1 and changes[0].at > begin):
        yield None
    ends = [change.at for change in changes[1:]] + [end]
    for change, over in zip(changes, ends, strict=False):
        if change.contract is not None and change.at < end and over > begin:
            yield msgspec.json.decode(change.contract, type=_Tenanted).tenant


class _Tenanted(msgspec.Struct):
    tenant: str | None = None


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
