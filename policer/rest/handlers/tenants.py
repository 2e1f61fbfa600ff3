"""/v1/tenants: the parties for which routers are run; contracts refer to them."""

from litestar import Response, delete, get, put
from litestar.params import JSONBody

from policer.contracts.reach import TenantName
from policer.contracts.tenant import Tenant
from policer.rest.access.context import Context, GivenDesk
from policer.rest.answers.entities import TenantAnswer, TenantPage
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, page_of, unpack
from policer.rest.http.etag import create_or_replace, required, tag
from policer.rest.http.names import IfMatch, IfNoneMatch, TenantPath
from policer.store import Stored

TAGS = ["tenants"]
ONE = "/tenants/{name:str}"


@get("/tenants", operation_id="listTenants", tags=TAGS, scope="read", sync_to_thread=True)
def list_tenants(context: GivenDesk, limit: Limit = 100, after: After = None) -> TenantPage:
    """List the tenants, by name."""
    rows = context.store.tenants.all().items()
    page, following = page_of(rows, limit, unpack(after, TenantName), lambda row: row[0])
    return TenantPage([_answer(*row) for row in page], following)


@get(ONE, operation_id="readTenant", tags=TAGS, scope="read", sync_to_thread=True)
def read_tenant(name: TenantPath, context: GivenDesk) -> Response[TenantAnswer]:
    """Read one tenant."""
    return _tagged(name, context.store.tenants.get(name), 200)


@put(ONE, operation_id="putTenant", tags=TAGS, scope="operate", sync_to_thread=True)
def put_tenant(
    *,
    name: TenantPath,
    data: JSONBody[Tenant],
    context: GivenDesk,
    request: StrictRequest,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[TenantAnswer]:
    """Create a tenant (If-None-Match: *) or change its entry (If-Match)."""
    version = create_or_replace(if_match, if_none_match, lambda: _version(context, name))
    stored = context.store.tenants.put(name, data, version, request.actor)
    return _tagged(name, stored, 201 if version is None else 200)


@delete(ONE, operation_id="removeTenant", tags=TAGS, scope="operate", sync_to_thread=True)
def remove_tenant(
    name: TenantPath, context: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> None:
    """Remove a tenant that no contract names."""
    version = required(if_match, lambda: _version(context, name))
    context.store.tenants.remove(name, version, request.actor)


def _version(context: Context, name: str) -> int:
    return context.store.tenants.get(name).version.number


def _answer(name: str, stored: Stored[Tenant]) -> TenantAnswer:
    version = stored.version
    return TenantAnswer(name, stored.value, version.number, version.changed_at, version.changed_by)


def _tagged(name: str, stored: Stored[Tenant], status: int) -> Response[TenantAnswer]:
    headers = {"ETag": tag(stored.version.number)}
    if status == 201:
        headers["Location"] = f"/v1/tenants/{name}"
    return Response(_answer(name, stored), status_code=status, headers=headers)


HANDLERS = [list_tenants, read_tenant, put_tenant, remove_tenant]
