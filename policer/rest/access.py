"""/v1/access: who asks, so that a page shows what its token may do."""

from litestar import get

from policer.rest.answers import AccessAnswer
from policer.rest.bodies import StrictRequest
from policer.rest.gate import FILTERED


@get(
    "/access",
    operation_id="readAccess",
    tags=["tokens"],
    scope="read",
    limited=FILTERED,
    sync_to_thread=False,
)
def read_access(request: StrictRequest) -> AccessAnswer:
    """Read the name and the scope of the token that asks."""
    asker = request.asker
    return AccessAnswer(asker.name, asker.scopes[-1], asker.expires_at)


HANDLERS = [read_access]
