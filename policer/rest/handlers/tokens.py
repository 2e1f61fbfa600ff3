"""/v1/tokens: tokens of the service; /v1/token: the client's own token."""

from litestar import Response, delete, get, post
from litestar.params import JSONBody

from policer.errors import Invalid, Problem, Unknown
from policer.rest.access.context import GivenDesk, GivenGate
from policer.rest.access.gate import FILTERED
from policer.rest.answers.entities import MadeToken, NewToken, TokenPage, WhoAnswer
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, cut, unpack
from policer.rest.http.names import TokenPath
from policer.store import TokenRow

TAGS = ["tokens"]


@get("/tokens", operation_id="listTokens", tags=TAGS, scope="admin", sync_to_thread=True)
def list_tokens(context: GivenDesk, limit: Limit = 100, after: After = None) -> TokenPage:
    """List all tokens, the oldest first; no secrets."""
    rows, last = context.store.tokens.all(), unpack(after, str)
    ids = [row.id for row in rows]
    if last is not None and last not in ids:
        fix = "begin with the first page"
        raise Invalid([Problem("after", "the token of this cursor is not there", fix)])
    begin = 0 if last is None else ids.index(last) + 1
    page, following = cut(rows[begin:], limit, lambda row: row.id)
    return TokenPage(page, following)


@get("/tokens/{token:str}", operation_id="readToken", tags=TAGS, scope="admin", sync_to_thread=True)
def read_token(token: TokenPath, context: GivenDesk) -> TokenRow:
    """Read one token; no secret."""
    for row in context.store.tokens.all():
        if row.id == token:
            return row
    raise Unknown("token", token, "GET /v1/tokens lists them")


@post("/tokens", operation_id="addToken", tags=TAGS, scope="admin", sync_to_thread=True)
def add_token(
    data: JSONBody[NewToken], context: GivenDesk, request: StrictRequest
) -> Response[MadeToken]:
    """Create a token; its secret is only in this answer."""
    tokens, actor = context.store.tokens, request.actor
    row, secret = tokens.add(data.name, [data.scope], data.expires_at, actor, data.reach)
    location = {"Location": f"/v1/tokens/{row.id}"}
    return Response(MadeToken(row, secret), status_code=201, headers=location)


@delete(
    "/tokens/{token:str}", operation_id="revokeToken", tags=TAGS, scope="admin", sync_to_thread=True
)
def revoke_token(
    token: TokenPath, context: GivenDesk, gate: GivenGate, request: StrictRequest
) -> None:
    """Revoke a token: immediately here, within five seconds in other policers."""
    context.store.tokens.revoke(token, request.actor)
    gate.forget_all()


@get(
    "/token",
    operation_id="whoAmI",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=False,
)
def who_am_i(request: StrictRequest) -> WhoAnswer:
    """Read the name, scope, limits and end of the client's own token."""
    row = request.requester
    return WhoAnswer(
        id=row.id,
        name=row.name,
        scopes=row.scopes,
        reach=row.reach,
        expires_at=row.expires_at,
        address=request.actor.address,
    )


HANDLERS = [list_tokens, read_token, add_token, revoke_token, who_am_i]
