"""Terms of each router at an instant: on its host, or on any host; pure but for time.

Contracts are kept as entered. Classes, dates and hours select the terms that hold, and
`policer.contracts.location` locates the routers that contracts follow.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from policer.contracts.contract import Contract
from policer.contracts.in_force import Classes, all_in_force, in_force, is_timed
from policer.contracts.location import Whereabouts

ANYWHERE = ""
"""The host of contracts that follow their routers from host to host."""
MOST_FOLLOWING = 100_000
"""Limit of the contracts that follow routers, in the whole fleet."""
_NONE: Mapping[str, Contract] = {}


def name_of(host: str, vr: str) -> str:
    """Return a contract's name among all of a host: no router's name begins with "/"."""
    return f"/{vr}" if host == ANYWHERE else vr


class Promised(NamedTuple):
    """Terms that hold on one host."""

    contracts: Mapping[str, Contract]
    """Terms by router."""
    follows: Mapping[str, str]
    """Names of the contracts that followed routers there, by router."""
    entered: tuple[Contract, ...]
    """All contracts of the host as entered, including those that do not hold now."""
    classes: Classes
    """Terms of the classes that they may name."""
    here: frozenset[str]
    """Names of all contracts that follow a router which is there."""
    tenants: Mapping[str, str]
    """Tenants of routers, including routers without terms in force."""
    unnamed: frozenset[str]
    """UUIDs of routers that contracts follow, whose names there are not known yet."""


class Promises:
    """All contracts of the fleet; used only by the service, in one thread."""

    def __init__(self, began: float) -> None:
        self.whereabouts = Whereabouts(began)
        self._entered: Mapping[str, Mapping[str, Contract]] = {}
        self._classes: Classes = {}

    def take(
        self,
        entered: Mapping[str, Mapping[str, Contract]],
        classes: Classes,
        homes: Mapping[str, str],
    ) -> bool:
        """Take over the store's contents; return whether they may affect every host.

        Args:
            entered: contracts by host and router.
            classes: the terms of each class.
            homes: last known hosts of the routers that contracts follow.
        """
        before = self._entered.get(ANYWHERE, _NONE), self._classes
        self._entered, self._classes = entered, classes
        self.whereabouts.follow(entered.get(ANYWHERE, _NONE).keys(), homes)
        return before != (entered.get(ANYWHERE, _NONE), classes)

    def on(self, host: str, at: datetime) -> Promised:
        """Return the terms on a host at an instant; contracts of this host alone come first."""
        entered = self._entered.get(host, _NONE)
        own = all_in_force(entered, self._classes, at)
        following = self._entered.get(ANYWHERE, _NONE)
        here = dict(self.whereabouts.at(host))
        came: dict[str, Contract] = {}
        follows: dict[str, str] = {}
        for vr, router in {vr: router for router, vr in here.items()}.items():
            terms = in_force(following[router], self._classes, at)
            if terms is not None and vr not in own:
                came[vr] = terms
            if vr not in own and (vr in came or vr not in entered):
                follows[vr] = router
        everything = (*entered.values(), *(following[router] for router in here))
        return Promised(
            {**came, **own},
            follows,
            everything,
            self._classes,
            frozenset(here),
            self._tenants(host),
            frozenset(self.whereabouts.unnamed(host)),
        )

    def _tenants(self, host: str) -> dict[str, str]:
        """Return the tenants of routers by all contracts, whether these hold now or not."""
        following = self._entered.get(ANYWHERE, _NONE)
        of = {vr: following[router].tenant for router, vr in self.whereabouts.at(host)}
        of |= {vr: one.tenant for vr, one in self._entered.get(host, _NONE).items()}
        return {vr: tenant for vr, tenant in of.items() if tenant is not None}

    def may_change(self, host: str) -> bool:
        """Whether time alone may change the terms on a host."""
        following = self._entered.get(ANYWHERE, _NONE)
        timed = map(is_timed, self._entered.get(host, _NONE).values())
        return any(timed) or any(is_timed(following[r]) for r, _ in self.whereabouts.at(host))
