"""/v1/reports: how well each contract was kept in a month, as JSON and as CSV."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, NamedTuple

import msgspec
from litestar import Response, get
from litestar.concurrency import sync_to_thread
from litestar.openapi.spec import Example
from litestar.params import PathParameter, QueryParameter

from policer.contracts.promised import ANYWHERE
from policer.reports.sla import Line, Month, csv_of, line_of, month_of, promised_in
from policer.rest.access.context import Context, GivenDesk, GivenGate
from policer.rest.access.gate import FILTERED
from policer.rest.handlers.contracts import ContractKey
from policer.rest.handlers.exports import AT_ONCE, CSV, JSON, export, refuse_pages, wanted
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, pack, unpack
from policer.rest.http.names import HostFilter

WRITTEN_S = 120.0
"""More recent data may not be written yet: it would look like time without data."""
MonthPath = Annotated[
    str,
    PathParameter(
        pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])$(?!\n)",
        description="The month, of UTC.",
        examples=[Example(value="2026-11")],
    ),
]
Format = Annotated[
    Literal["json", "csv"] | None,
    QueryParameter(name="format", description="Instead of the header Accept."),
]


class ReportAnswer(msgspec.Struct, frozen=True):
    """Monthly report of contracts: those that follow routers, then by host and router."""

    month: str
    begin: datetime
    end: datetime
    """End of the month, or two minutes before now."""
    items: list[Line]
    next: str | None = None


@get(
    "/reports/{month:str}",
    operation_id="readReport",
    tags=["reports"],
    scope="read",
    limited=FILTERED,
)
async def read_report(
    *,
    month: MonthPath,
    context: GivenDesk,
    gate: GivenGate,
    request: StrictRequest,
    limit: Limit = 100,
    after: After = None,
    host: HostFilter = None,
    form: Format = None,
) -> Response[ReportAnswer]:
    """Read what each contract promised, wanted and delivered in a month."""
    now = datetime.fromtimestamp(context.settings.wall(), UTC)
    asked = month_of(month, context.settings.retention().oldest(now.timestamp()).day, now)
    until = min(asked.end, now - timedelta(seconds=WRITTEN_S))
    source = _Source(context, asked, until, host)
    if form == "csv":
        refuse_pages(request)
    if form == "csv" or (form is None and wanted(request, CSV)):

        def later(key: ContractKey | None) -> tuple[bytes, ContractKey | None]:
            lines, following = source.some(key)
            return csv_of(asked, lines, headings=key is None).encode(), following

        name = f"sla-{asked.name}.csv"
        return await export(context, gate, request, later, media_type=CSV, name=name)
    lines, following = await sync_to_thread(source.page, unpack(after, ContractKey), limit)
    answer = ReportAnswer(asked.name, asked.begin, until, lines, following and pack(following))
    return Response(answer, media_type=JSON)


class _Source(NamedTuple):
    """Source of the lines of a report."""

    context: Context
    month: Month
    until: datetime
    host: str | None

    def page(self, after: ContractKey | None, limit: int) -> tuple[list[Line], ContractKey | None]:
        """Return a number of lines, and the key that the next page starts after."""
        found: list[Line] = []
        while True:
            lines, following = self.some(after)
            found += lines
            if len(found) > limit:
                last = found[limit - 1]
                return found[:limit], (last.host or ANYWHERE, last.vr)
            if following is None:
                return found, None
            after = following

    def some(self, after: ContractKey | None) -> tuple[list[Line], ContractKey | None]:
        """Return the lines of some contracts, and the last contract if there may be more."""
        days = self.month.first, self.month.following
        store = self.context.store
        rows = store.sla.page(days, after, AT_ONCE, self.host)
        classes = store.classes.named_by(one for row in rows for one in promised_in(row))
        made = (line_of(row, self.month, self.until, classes) for row in rows)
        lines = [line for line in made if line is not None]
        return lines, (rows[-1].host, rows[-1].vr) if len(rows) == AT_ONCE else None


HANDLERS = [read_report]
