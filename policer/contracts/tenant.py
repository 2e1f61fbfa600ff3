"""A tenant: the party for which routers are run."""

from typing import Annotated

import msgspec

Description = Annotated[str, msgspec.Meta(max_length=256, description="who it is, in a line")]


class Tenant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry of a tenant; contracts refer to it by name."""

    description: Description = ""
