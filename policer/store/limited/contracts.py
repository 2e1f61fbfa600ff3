"""Contracts for a limited token, which reads and changes those of its routers within their tenant.

Anything invisible is refused with the same text as a missing entry, so no answer distinguishes the
two. Contracts that follow routers are visible by the routers' hosts; the token changes those, but
creates none.
"""

from collections.abc import Iterator, Sequence
from typing import NoReturn

import msgspec
from sqlalchemy import Connection

from policer.actor import By
from policer.contracts.contract import Contract, contradictions
from policer.contracts.in_force import classes_of
from policer.contracts.promised import ANYWHERE
from policer.contracts.reach import UNLIMITED, Reach
from policer.errors import Invalid, OutOfReach, Problem, Unknown
from policer.store.database.engine import Database
from policer.store.database.records import Clock, Stored
from policer.store.inventory.contracts import Checked, Contracts, Revision, no_contract, owner_in
from policer.store.inventory.homes import is_home
from policer.store.inventory.hosts import no_host
from policer.store.limited.requester import Requester
from policer.store.service.idempotency import Answering

PART = 500
"""Rows read in one query."""
Row = tuple[str, str, Stored[Contract]]


class ReachedContracts(Contracts):
    """Contracts of visible routers; each keeps its tenant."""

    def __init__(self, database: Database, clock: Clock, requester: Requester) -> None:
        super().__init__(database, clock)
        self._requester, self._reach = requester, requester.reach

    def _refused(self, *_: object, **__: object) -> NoReturn:
        """Raise OutOfReach: `page` has them."""
        raise OutOfReach

    all = prune = _refused

    def page(
        self,
        after: tuple[str, str] | None,
        limit: int,
        host: str | None = None,
        *,
        reach: Reach = UNLIMITED,
    ) -> list[Row]:
        """Return the visible contracts, as `Contracts.page`."""
        del reach
        before = after or (ANYWHERE, "")
        came = before[0] == ANYWHERE and host is None
        rows = self._came(before[1], limit) if came else []
        rows += super().page(after, limit - len(rows), host, reach=self._reach)
        return [(where, vr, self._shown(stored)) for where, vr, stored in rows]

    def get(self, host: str, vr: str) -> Stored[Contract]:
        """Return a visible contract; raises Unknown."""
        stored = super().get(host, vr)
        if not self._sees(host, vr, stored.value.tenant):
            raise no_contract(host, vr)
        return self._shown(stored)

    def put(
        self,
        host: str,
        vr: str,
        contract: Contract,
        if_version: int | None,
        actor: By,
        *,
        answering: Answering[Contract] | None = None,
        seen_on: str | None = None,
    ) -> Stored[Contract]:
        """Create or replace a contract, as `Contracts.put`, if it is visible and keeps its tenant.

        Raises:
            OutOfReach: it would make a contract that follows its router.
        """
        if if_version is not None:
            self.get(host, vr)  # what is hidden is not at another version, but missing
        elif host == ANYWHERE:
            raise OutOfReach
        if problems := self._hidden_classes(contract):
            raise Invalid(problems)
        seen_on = self._requester.seen_on(vr) if host == ANYWHERE else seen_on
        try:
            return super().put(
                host, vr, contract, if_version, actor, answering=answering, seen_on=seen_on
            )
        except Invalid as error:
            raise self._without_sums(error, contract, host) from None
        except Unknown:  # it may name another host
            is_new = if_version is None and host != ANYWHERE
            raise no_host(host) if is_new else no_contract(host, vr) from None

    def remove(self, host: str, vr: str, if_version: int, actor: By) -> None:
        """Remove the contract of a visible router, as `Contracts.remove`."""
        self.get(host, vr)
        try:
            super().remove(host, vr, if_version, actor)
        except Unknown:
            raise no_contract(host, vr) from None

    def history(
        self, host: str, vr: str, before: int | None = None, limit: int | None = None
    ) -> list[Revision]:
        """Return the visible revisions of a router that is visible now; raises Unknown."""
        if not self._sees(host, vr, super().owner(host, vr)):
            raise no_contract(host, vr)
        found: list[Revision] = []
        while limit is None or len(found) < limit:
            part = super().history(host, vr, before, PART)
            found += [self._revision(one) for one in part if self._sees_one(host, vr, one)]
            if len(part) < PART:
                break
            before = part[-1].version
        return found[:limit]

    def check(self, host: str, vr: str, contract: Contract, seen_on: str | None = None) -> Checked:
        """Return the problems of a contract on a visible host, as `Contracts.check`.

        Raises:
            Unknown: there is no such host, or it is not visible as a whole.
            OutOfReach: the contract would follow its router.
        """
        if host == ANYWHERE:
            raise OutOfReach
        if not self._reach.may_see_host(host):
            raise no_host(host)
        if problems := self._hidden_classes(contract):
            without = super().check(host, vr, Contract(), seen_on)
            return without._replace(problems=tuple(problems))
        return super().check(host, vr, contract, seen_on)

    def classes_named(self) -> set[str]:
        """Return the names of classes in visible contracts."""
        named: set[str] = set()
        after: tuple[str, str] | None = None
        while rows := self.page(after, PART):
            named |= set().union(*(classes_of(stored.value) for _, _, stored in rows))
            after = rows[-1][:2]
        return named

    def _came(self, after: str, limit: int) -> list[Row]:
        """Return visible contracts that follow routers, by name."""
        found: list[Row] = []
        for routers in self._where_they_are(after):
            left = limit - len(found)
            if left > 0:
                tenants = self._reach.tenants
                found += super().following(after, left, tenants=tenants, routers=routers)
        return found

    def _where_they_are(self, after: str) -> Iterator[Sequence[str] | None]:
        """Yield names in parts, in order; None for all, if their hosts do not matter."""
        reach = self._reach
        if not (reach.hosts or reach.routers):
            yield None
            return
        anybody = msgspec.structs.replace(reach, tenants=())
        places = self._requester.located().items()
        names = sorted(name for name, at in places if name > after and anybody.may_see(*at, None))
        for begin in range(0, len(names), PART):
            yield names[begin : begin + PART]

    def _sees(self, host: str, vr: str, tenant: str | None) -> bool:
        if host == ANYWHERE:
            return self._requester.may_follow(vr, tenant)
        return self._reach.may_see(host, vr, tenant)

    def _sees_one(self, host: str, vr: str, revision: Revision) -> bool:
        """Whether a revision is visible; a removal has the tenant of the previous contract."""
        contract = revision.contract
        if contract is None:
            return self._sees(host, vr, super().owner(host, vr, revision.version))
        return self._sees(host, vr, contract.tenant)

    def _revision(self, revision: Revision) -> Revision:
        return msgspec.structs.replace(revision, by=self._requester.masked(revision.by))

    def _shown(self, stored: Stored[Contract]) -> Stored[Contract]:
        return Stored(stored.value, self._requester.version(stored.version))

    def _require_right(
        self,
        connection: Connection,
        host: str,
        vr: str,
        before: Contract | None,
        after: Contract | None,
    ) -> None:
        """Check that a contract is visible and keeps its tenant, which may have just changed.

        Raises:
            Unknown: it is not visible.
            Invalid: the new one has another tenant.
        """
        if before is None:
            tenant = self._tenant_before(connection, host, vr)
        elif self._sees(host, vr, before.tenant):
            tenant = before.tenant
        else:
            raise no_contract(host, vr)
        if after is not None and after.tenant != tenant:
            raise Invalid([_kept_tenant(after.tenant, tenant)])

    def _tenant_before(self, connection: Connection, host: str, vr: str) -> str | None:
        """Return the last tenant of a router without a contract, which a new one must keep.

        A contract that follows the router gives the current tenant, and a new one would precede
        that.

        Raises:
            Unknown: it is not visible; on a partly visible host, neither is an unknown router. Nor
                is one that a contract may follow under a name that is not known yet.
        """
        if self._requester.unclear(host, vr) and is_home(connection, host):
            raise no_host(host)
        try:
            tenant, known = owner_in(connection, host, vr), True
        except Unknown:
            tenant, known = None, self._requester.reported(host, vr)
        now = self._requester.tenant_of(host, vr)
        follows = (host, vr) in self._requester.located().values()
        tenant = now if follows else now or tenant
        whole = self._reach.may_see_host(host)
        if not self._reach.may_see(host, vr, tenant) or not (whole or known):
            raise no_host(host)
        return tenant

    def _hidden_classes(self, contract: Contract) -> list[Problem]:
        """Return problems for invisible classes, as if these did not exist."""
        named = classes_of(contract)
        hidden = named - self.classes_named() if named else named
        return [_no_class(name) for name in sorted(hidden)]

    def _without_sums(self, error: Invalid, contract: Contract, host: str) -> Invalid:
        """Return a refusal that reveals nothing about others' promises."""
        if not self._reach.partial and host != ANYWHERE:
            return error
        own = set(contradictions(contract))
        return Invalid(
            one if one in own or one.field == "tenant" else _no_room(one) for one in error.problems
        )


def _kept_tenant(given: str | None, before: str | None) -> Problem:
    is_of, was_of = (f"tenant {one}" if one else "no tenant" for one in (given, before))
    fix = f"give {before}" if before else "leave it out"
    return Problem("tenant", f"{is_of}, and the router is of {was_of}", f"{fix}, or ask for it")


def _no_class(name: str) -> Problem:
    fix = "give one that a contract of yours has (`policer class list`), or ask for it"
    return Problem("class", f"there is no class {name!r}", fix)


def _no_room(problem: Problem) -> Problem:
    words = "its host cannot keep that, with what it has promised to others"
    return Problem(problem.field, words, "promise less, or ask the operator of the host")
