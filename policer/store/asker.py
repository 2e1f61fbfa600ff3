"""Who asks the store with a limited token, and what that may know of others; pure."""

from collections.abc import Callable
from typing import Final

import msgspec

from policer.reach import Reach
from policer.store.records import Version

SOMEBODY: Final = "operator"
"""Stands for everybody else who changed something."""


class Asking(msgspec.Struct, frozen=True):
    """Who asks, and what may be known for that."""

    id: str
    reach: Reach
    tenant_of: Callable[[str, str], str | None]
    """Whose router it is, by host and name, as the policer last read it."""
    reported: Callable[[str, str], bool]
    """Whether a host's daemon reports a router."""

    def masked(self, by: str) -> str:
        """Return who did it; others go without a name."""
        own = by == "policer" or f"({self.id} from " in by or by.endswith(f"({self.id})")
        return by if own else SOMEBODY

    def version(self, version: Version) -> Version:
        """Return a version that names nobody else."""
        return msgspec.structs.replace(version, changed_by=self.masked(version.changed_by))
