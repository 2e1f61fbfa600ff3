"""/v1/events and /v1/audit: past events and changes, in pages or completely as JSON lines."""

from litestar import Response, get
from litestar.concurrency import sync_to_thread

from policer.rest.access.context import GivenDesk, GivenGate
from policer.rest.access.gate import FILTERED
from policer.rest.answers.entities import AuditPage, EventPage
from policer.rest.handlers.exports import AT_ONCE, LINES, export, lines, wanted
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, RowId, cut, unpack
from policer.rest.http.names import HostFilter, KindFilter, VrFilter
from policer.rest.http.times import From, To, between


@get("/events", operation_id="listEvents", tags=["events"], scope="read", limited=FILTERED)
async def list_events(
    *,
    context: GivenDesk,
    gate: GivenGate,
    request: StrictRequest,
    limit: Limit = 100,
    after: After = None,
    host: HostFilter = None,
    vr: VrFilter = None,
    kind: KindFilter = None,
    begin: From = None,
    end: To = None,
) -> Response[EventPage]:
    """List events, the latest first; as application/jsonl all matching ones, the oldest first."""
    events, which, time = context.store.events, (host, vr, kind), between(begin, end)
    if wanted(request, LINES):

        def later(last: int | None) -> tuple[bytes, int | None]:
            rows = events.since(last or 0, AT_ONCE, *which, time=time)
            return lines(rows), rows[-1].id if len(rows) == AT_ONCE else None

        return await export(
            context, gate, request, later, media_type=LINES, name="policer-events.jsonl"
        )
    last = unpack(after, RowId)
    rows = await sync_to_thread(events.page, last, limit + 1, *which, time=time)
    page, following = cut(rows, limit, lambda row: row.id)
    return Response(EventPage(page, following))


@get("/audit", operation_id="listAudit", tags=["audit"], scope="admin")
async def list_audit(
    *,
    context: GivenDesk,
    gate: GivenGate,
    request: StrictRequest,
    limit: Limit = 100,
    after: After = None,
    begin: From = None,
    end: To = None,
) -> Response[AuditPage]:
    """List changes and their actors, the latest first; as application/jsonl the oldest first."""
    audit, time = context.store.audit, between(begin, end)
    if wanted(request, LINES):

        def later(last: int | None) -> tuple[bytes, int | None]:
            rows = audit.since(last or 0, AT_ONCE, time=time)
            return lines(rows), rows[-1].id if len(rows) == AT_ONCE else None

        return await export(
            context, gate, request, later, media_type=LINES, name="policer-audit.jsonl"
        )
    rows = await sync_to_thread(audit.page, unpack(after, RowId), limit + 1, time=time)
    page, following = cut(rows, limit, lambda row: row.id)
    return Response(AuditPage(page, following))


HANDLERS = [list_events, list_audit]
