"""Parameters shared by handlers: names in paths and filters, preconditions, keys."""

from typing import Annotated

from litestar.openapi.spec import Example
from litestar.params import HeaderParameter, PathParameter, QueryParameter

HOST = r"^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$(?!\n)"
VR = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$(?!\n)"
KIND = r"^[a-z_]{1,64}$(?!\n)"

HostPath = Annotated[
    str,
    PathParameter(pattern=HOST, description="The host's name.", examples=[Example(value="gold")]),
]
VrPath = Annotated[
    str,
    PathParameter(
        pattern=VR, description="The router's name or UUID.", examples=[Example(value="customer-7")]
    ),
]
FollowedPath = Annotated[
    str,
    PathParameter(
        pattern=VR,
        description="The router's UUID, or a name that no other router of the fleet has.",
        examples=[Example(value="4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11")],
    ),
]
ClassPath = Annotated[
    str,
    PathParameter(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)",
        description="Name of the class.",
        examples=[Example(value="silver")],
    ),
]
TenantPath = Annotated[
    str,
    PathParameter(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)",
        description="Name of the tenant.",
        examples=[Example(value="acme")],
    ),
]
PlanPath = Annotated[
    str, PathParameter(pattern=r"^[0-9a-f]{32}$(?!\n)", description="The plan's id.")
]
TokenPath = Annotated[
    str, PathParameter(pattern=r"^[A-Za-z0-9_-]{1,64}$(?!\n)", description="The token's id.")
]
HostFilter = Annotated[str | None, QueryParameter(pattern=HOST, description="Only this host.")]
VrFilter = Annotated[str | None, QueryParameter(pattern=VR, description="Only this router.")]
KindFilter = Annotated[str | None, QueryParameter(pattern=KIND, description="Only this kind.")]
IfMatch = Annotated[
    str | None,
    HeaderParameter(name="If-Match", max_length=256, description="The ETag that was read."),
]
IfNoneMatch = Annotated[
    str | None,
    HeaderParameter(name="If-None-Match", max_length=256, description="* makes a new one."),
]
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        pattern=r"^[!-~]{1,128}$(?!\n)",
        description="Chosen by the client; the same request with the same key is carried out "
        "once within a day, and answered alike.",
    ),
]
