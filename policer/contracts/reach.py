"""What a token may reach of the fleet: hosts, routers and tenants; pure.

All kinds of limit apply together: a token with hosts and tenants reaches the routers of these
tenants on these hosts. An empty kind is no limit.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

MOST = 32
"""Limits of one kind."""
_HOST = r"[A-Za-z0-9*?][A-Za-z0-9.*?-]{0,63}"
_VR = r"[A-Za-z0-9*?][A-Za-z0-9._:*?-]{0,63}"

# Only * and ? of the shell's patterns: sets in brackets are error-prone.
HostPattern = Annotated[
    str,
    msgspec.Meta(pattern=rf"^{_HOST}$(?!\n)", description="host name; * and ? stand for others"),
]
RouterPattern = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^{_HOST}/{_VR}$(?!\n)", description="HOST/VR; * and ? stand for others, but /"
    ),
]
TenantName = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)", description="tenant name")
]
_BOUNDED = msgspec.Meta(max_length=MOST)


class Reach(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a token may see and change, within its scope."""

    hosts: Annotated[tuple[HostPattern, ...], _BOUNDED] = ()
    """Names or patterns of hosts; empty is all."""
    routers: Annotated[tuple[RouterPattern, ...], _BOUNDED] = ()
    """HOST/VR, each a name or a pattern; empty is all."""
    tenants: Annotated[tuple[TenantName, ...], _BOUNDED] = ()
    """Tenants by name, as contracts name them; empty is all."""

    @property
    def limited(self) -> bool:
        """Whether it has limits."""
        return bool(self.hosts or self.routers or self.tenants)

    @property
    def partial(self) -> bool:
        """Whether it reaches routers, but never a host as a whole."""
        return bool(self.routers or self.tenants)

    def may_see(self, host: str, vr: str, tenant: str | None) -> bool:
        """Whether it reaches a router.

        Args:
            host: where the router is.
            vr: the router.
            tenant: of its contract; None without a contract or a tenant in it.
        """
        if self.tenants and tenant not in self.tenants:
            return False
        return self._on_host(host) and (
            not self.routers or any(_fits_router(one, host, vr) for one in self.routers)
        )

    def may_follow(self, at: tuple[str, str] | None, tenant: str | None) -> bool:
        """Whether it reaches a contract that follows its router.

        Args:
            at: host and name of its router; None if unknown, or if the router has another contract
                there: then only the tenant counts.
            tenant: as of `may_see`.
        """
        if at is None:
            return not (self.hosts or self.routers) and self.may_see("", "", tenant)
        return self.may_see(*at, tenant)

    def may_see_host(self, host: str) -> bool:
        """Whether it reaches a host as a whole: its entry, its capacity, and all of its routers."""
        return not self.partial and self._on_host(host)

    def _on_host(self, host: str) -> bool:
        return not self.hosts or any(fnmatchcase(host, one) for one in self.hosts)


UNLIMITED = Reach()
"""The reach of a token that has no limits."""


def parts_of(router: str) -> tuple[str, str]:
    """Return the patterns of host and router in HOST/VR."""
    host, _, vr = router.partition("/")
    return host, vr


def _fits_router(pattern: str, host: str, vr: str) -> bool:
    of_host, of_vr = parts_of(pattern)
    return fnmatchcase(host, of_host) and fnmatchcase(vr, of_vr)


def in_words(reach: Reach) -> str:
    """Describe in one line what a token reaches."""
    kinds = (("hosts", reach.hosts), ("routers", reach.routers), ("tenants", reach.tenants))
    return "; ".join(f"{kind} {_listed(names)}" for kind, names in kinds if names) or "all"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
