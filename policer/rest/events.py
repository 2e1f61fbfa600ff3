"""/v1/events: what happened, as pages; /v1/audit: who changed what."""

from typing import Annotated

import msgspec
from litestar import get

from policer.rest.answers import AuditPage, EventPage
from policer.rest.cursor import After, Limit, cut, unpack
from policer.rest.desk import GivenDesk
from policer.rest.gate import FILTERED
from policer.rest.names import HostFilter, KindFilter, VrFilter

RowId = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


@get(
    "/events",
    operation_id="listEvents",
    tags=["events"],
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_events(
    *,
    desk: GivenDesk,
    limit: Limit = 100,
    after: After = None,
    host: HostFilter = None,
    vr: VrFilter = None,
    kind: KindFilter = None,
) -> EventPage:
    """List events, the latest first."""
    rows = desk.store.events.page(unpack(after, RowId), limit + 1, host, vr, kind)
    page, following = cut(rows, limit, lambda row: row.id)
    return EventPage(page, following)


@get("/audit", operation_id="listAudit", tags=["audit"], scope="admin", sync_to_thread=True)
def list_audit(desk: GivenDesk, limit: Limit = 100, after: After = None) -> AuditPage:
    """List what was changed by whom, the latest first."""
    rows = desk.store.audit.page(unpack(after, RowId), limit + 1)
    page, following = cut(rows, limit, lambda row: row.id)
    return AuditPage(page, following)


HANDLERS = [list_events, list_audit]
