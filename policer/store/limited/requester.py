"""Client with a limited token, and what it may see of others; pure."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from policer.contracts.overrides import Override
from policer.contracts.reach import Reach
from policer.store.database.records import Version

OPERATOR: Final = "operator"
"""Replaces the names of all other actors."""


class Requester(msgspec.Struct, frozen=True):
    """The client, and the data for checking its reach."""

    id: str
    reach: Reach
    tenant_of: Callable[[str, str], str | None]
    """Tenant of a router, by host and name, as the policer last read it."""
    reported: Callable[[str, str], bool]
    """Whether a host's daemon reports a router."""
    unclear: Callable[[str, str], bool]
    """Whether it is not known yet if a router of a host, by its name, is one that a contract
    follows."""
    located: Callable[[], Mapping[str, tuple[str, str]]]
    """Host and name of each router that a contract follows, by the contract's name."""
    seen_on: Callable[[str], str | None]
    """The host that reports a router which a contract may follow."""

    def masked(self, by: str) -> str:
        """Return the actor of a change; other actors are masked."""
        own = by == "policer" or f"({self.id} from " in by or by.endswith(f"({self.id})")
        return by if own else OPERATOR

    def may_follow(self, router: str, tenant: str | None) -> bool:
        """Whether a contract of that name which follows its router is visible."""
        return self.reach.may_follow(self.located().get(router), tenant)

    def override(self, override: Override) -> Override:
        """Return an override; only its author sees the reason."""
        if self.masked(override.by) != OPERATOR:
            return override
        return msgspec.structs.replace(override, by=OPERATOR, reason="")

    def version(self, version: Version) -> Version:
        """Return a version; other actors are masked."""
        return msgspec.structs.replace(version, changed_by=self.masked(version.changed_by))
