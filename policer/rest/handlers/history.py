"""/v1/hosts/{host}/routers/{vr}/history: a router's past, second by second or coarser."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Final

import msgspec
from litestar import get
from litestar.concurrency import sync_to_thread
from litestar.params import QueryParameter

from policer.errors import Invalid, Problem
from policer.history.point import Point
from policer.reports.history import ENOUGH, MOST_POINTS, plan, read
from policer.rest.access.context import GivenDesk
from policer.rest.access.gate import FILTERED
from policer.rest.handlers.hosts import found
from policer.rest.http.names import HostPath, VrPath
from policer.rest.http.times import From, To, between
from policer.store.database.within import Time

_READS: Final = ThreadPoolExecutor(1, "history")
"""A thread for history alone: unpacking a month takes a tenth of a second of CPU."""
DEFAULT_S: Final = 3600.0
"""Length of the history if the request gives neither begin nor step."""
Step = Annotated[
    int | None,
    QueryParameter(
        ge=1,
        le=86_400,
        description=f"Seconds of a point, whole minutes from 60 on; at most {MOST_POINTS} points.",
    ),
]


class HistoryPoint(msgspec.Struct, frozen=True):
    """A router's state from an instant on; rates are means over the known seconds."""

    at: datetime
    data_s: float
    """Known seconds of the point."""
    offered_pps: float
    throughput_pps: float
    setpoint_pps: float | None
    """None where it had none."""
    guarantee_pps: float
    """The guarantee in force, which a punishment may lower; 0 without one."""
    breach_s: float
    """Seconds in which it got less than the guarantee, beyond the burst, and wanted more."""
    punished_s: float
    """Seconds in which it was punished."""


class HistoryAnswer(msgspec.Struct, frozen=True):
    """History of a router; unknown times have no point."""

    host: str
    vr: str
    begin: datetime
    end: datetime
    step_s: int
    """Seconds of a point; points begin at whole multiples of it since 1970."""
    points: list[HistoryPoint]


@get(
    "/hosts/{host:str}/routers/{vr:str}/history",
    operation_id="readRouterHistory",
    tags=["routers"],
    scope="read",
    limited=FILTERED,
)
async def read_history(
    *,
    host: HostPath,
    vr: VrPath,
    context: GivenDesk,
    begin: From = None,
    end: To = None,
    step: Step = None,
) -> HistoryAnswer:
    """Read a router's history: the last hour, the last 720 steps, or the requested time."""
    await sync_to_thread(found, context, host)
    now = context.settings.wall()
    since, until = _within(between(begin, end), step, now)
    wanted = plan(since, until, step, now, context.settings.retention())
    reading = partial(read, context.store.history, host, vr, wanted)
    points = await asyncio.get_running_loop().run_in_executor(_READS, reading)
    shown = [_shown(at, point) for at, point in points.items()]
    return HistoryAnswer(
        host, vr, _instant(wanted.begin), _instant(wanted.end), wanted.step_s, shown
    )


def _within(given: Time, step: int | None, now: float) -> tuple[float, float]:
    """Return begin and end of the requested time, in seconds since 1970; it begins no earlier.

    Raises:
        Invalid: it ends before 1970.
    """
    until = now if given.end is None else given.end.timestamp()
    if until <= 0:
        raise Invalid([Problem("to", "nothing was recorded then", "give a later instant")])
    length = DEFAULT_S if step is None else float(ENOUGH * step)
    since = until - length if given.begin is None else given.begin.timestamp()
    return max(0.0, since), until


def _shown(at: int, point: Point) -> HistoryPoint:
    known, held = point.data_s, point.held_s
    return HistoryPoint(
        at=_instant(at),
        data_s=known,
        offered_pps=point.offered / known,
        throughput_pps=point.delivered / known,
        setpoint_pps=point.setpoint / held if held else None,
        guarantee_pps=point.guaranteed / known,
        breach_s=point.breach_s,
        punished_s=point.punished_s,
    )


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


HANDLERS = [read_history]
