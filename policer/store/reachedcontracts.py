"""Contracts as a limited token sees and changes them: of its routers, which keep their tenant.

What it may not see is refused in the words of what does not exist, so that no answer tells the two
apart.
"""

from typing import NoReturn

import msgspec

from policer.actor import By
from policer.contract import Contract, contradictions
from policer.errors import Invalid, OutOfReach, Problem, Unknown
from policer.reach import UNLIMITED, Reach
from policer.store.asker import Asking
from policer.store.contracts import Contracts, Revision, no_contract
from policer.store.engine import Database
from policer.store.hosts import no_host
from policer.store.idempotency import Answering
from policer.store.records import Clock, Stored


class ReachedContracts(Contracts):
    """Contracts of routers that are seen; each keeps its tenant."""

    def __init__(self, database: Database, clock: Clock, asking: Asking) -> None:
        super().__init__(database, clock)
        self._asking, self._reach = asking, asking.reach

    def _refused(self) -> NoReturn:
        """Raise OutOfReach: `page` has them."""
        raise OutOfReach

    all = _refused

    def page(
        self,
        after: tuple[str, str] | None,
        limit: int,
        host: str | None = None,
        *,
        reach: Reach = UNLIMITED,
    ) -> list[tuple[str, str, Stored[Contract]]]:
        """Return the contracts that are seen, as `Contracts.page`."""
        del reach
        rows = super().page(after, limit, host, reach=self._reach)
        return [(where, vr, self._shown(stored)) for where, vr, stored in rows]

    def get(self, host: str, vr: str) -> Stored[Contract]:
        """Return a contract that is seen; raises Unknown."""
        stored = super().get(host, vr)
        if not self._reach.may_see(host, vr, stored.value.tenant):
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
    ) -> Stored[Contract]:
        """Promise a router something, as `Contracts.put`, where it is seen and keeps its tenant."""
        if if_version is None:
            before = self._tenant_before(host, vr)
        else:
            before = self.get(host, vr).value.tenant
        if contract.tenant != before:
            raise Invalid([_kept_tenant(contract.tenant, before)])
        try:
            return super().put(host, vr, contract, if_version, actor, answering=answering)
        except Invalid as error:
            raise self._without_sums(error, contract) from None

    def remove(self, host: str, vr: str, if_version: int, actor: By) -> None:
        """Promise a router that is seen nothing any more, as `Contracts.remove`."""
        self.get(host, vr)
        super().remove(host, vr, if_version, actor)

    def history(self, host: str, vr: str) -> list[Revision]:
        """Return the revisions that are seen, of a router that is seen now; raises Unknown."""
        revisions = super().history(host, vr)
        tenants = owners(revisions)
        seen = [self._reach.may_see(host, vr, tenant) for tenant in tenants]
        if not seen[-1]:
            raise no_contract(host, vr)
        return [
            msgspec.structs.replace(revision, by=self._asking.masked(revision.by))
            for revision, is_seen in zip(revisions, seen, strict=True)
            if is_seen
        ]

    def _shown(self, stored: Stored[Contract]) -> Stored[Contract]:
        return Stored(stored.value, self._asking.version(stored.version))

    def _tenant_before(self, host: str, vr: str) -> str | None:
        """Return whose router it was last, which a new contract keeps to.

        Raises:
            Unknown: it is not seen; nor is one, in part of a host, that was never heard of.
        """
        try:
            tenant, known = owners(super().history(host, vr))[-1], True
        except Unknown:
            tenant, known = None, self._asking.reported(host, vr)
        whole = self._reach.may_see_host(host)
        if not self._reach.may_see(host, vr, tenant) or not (whole or known):
            raise no_host(host)
        return tenant

    def _without_sums(self, error: Invalid, contract: Contract) -> Invalid:
        """Return a refusal that tells nothing of what others were promised."""
        if not self._reach.partial:
            return error
        own = set(contradictions(contract))
        return Invalid(one if one in own else _no_room(one) for one in error.problems)


def owners(revisions: list[Revision]) -> list[str | None]:
    """Return the tenant of each revision, of a removal that of the contract before; pure."""
    tenants: list[str | None] = []
    for revision in revisions:
        before = tenants[-1] if tenants else None
        tenants.append(before if revision.contract is None else revision.contract.tenant)
    return tenants


def _kept_tenant(given: str | None, before: str | None) -> Problem:
    is_of, was_of = (f"tenant {one}" if one else "no tenant" for one in (given, before))
    fix = f"give {before}" if before else "leave it out"
    return Problem("tenant", f"{is_of}, and the router is of {was_of}", f"{fix}, or ask for it")


def _no_room(problem: Problem) -> Problem:
    words = "its host cannot keep that, with what it has promised to others"
    return Problem(problem.field, words, "promise less, or ask the operator of the host")
