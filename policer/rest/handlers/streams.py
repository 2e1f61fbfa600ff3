"""Streams of events and of telemetry (server-sent events): each client pulls at its own pace.

Clients have no queues: each has a position in the log of events, and reads what follows, a hundred
rows at a time. A slow client falls behind, but loses nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, NamedTuple

import msgspec
from litestar import get
from litestar.concurrency import sync_to_thread
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import ServerSentEvent, ServerSentEventMessage

from policer.errors import Invalid, Problem, StoreError
from policer.rest.access.context import Context, GivenDesk, GivenGate
from policer.rest.access.gate import FILTERED, Gate, authorization_of
from policer.rest.answers.telemetry import telemetry
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.exchange import exchange_of
from policer.rest.http.names import HOST, HostFilter, KindFilter, VrFilter
from policer.store import EventRow

AT_ONCE = 100
"""Rows held for one client."""
GAP = "gap"
"""The event which tells that the client's last event is not from this database."""
MOST_HOSTS = 50
LastEventId = Annotated[
    str | None,
    HeaderParameter(
        name="Last-Event-ID",
        max_length=32,
        description="The id of the last event that was seen; the stream goes on after it.",
    ),
]
HostsFilter = Annotated[
    list[Annotated[str, msgspec.Meta(pattern=HOST)]] | None,
    QueryParameter(name="host", max_items=MOST_HOSTS, description="Only these hosts."),
]


class _Begin(NamedTuple):
    """Begin of a stream of events."""

    after: int
    """The id of the event before the first one."""
    gap: str = ""
    """Why the stream begins elsewhere than the client wanted; "" if it does not."""


class Pace:
    """Times at which a stream checks for news, sends a heartbeat, and ends."""

    def __init__(self, context: Context, alive: Callable[[], Any]) -> None:
        self._settings, self._alive = context.settings, alive
        self._clock = context.settings.clock
        self._ends = self._clock() + context.settings.stream_life_s
        self._spoke = self._clock()

    def spoke(self) -> None:
        """Record that something was sent."""
        self._spoke = self._clock()

    @property
    def silent(self) -> bool:
        """Whether a heartbeat is due."""
        return self._clock() - self._spoke >= self._settings.stream_heartbeat_s

    async def tick(self) -> bool:
        """Wait for the next check; return False if the stream must end."""
        left = self._ends - self._clock()
        await asyncio.sleep(max(0.0, min(self._settings.stream_tick_s, left)))
        return self._clock() < self._ends and bool(await self._alive())


@get(
    "/events/stream",
    operation_id="streamEvents",
    tags=["events"],
    scope="read",
    limited=FILTERED,
    media_type="text/event-stream",
)
async def stream_events(
    *,
    context: GivenDesk,
    gate: GivenGate,
    request: StrictRequest,
    host: HostFilter = None,
    vr: VrFilter = None,
    kind: KindFilter = None,
    last_event_id: LastEventId = None,
) -> ServerSentEvent:
    """Stream events as they happen; with Last-Event-ID, missed events come first."""
    begin = await _begin(context, last_event_id)
    pace = _take_place(context, gate, request)
    events = context.store.events

    def later(last: int) -> tuple[list[EventRow], int]:
        newest = events.newest()  # first: the next query finds what arrives between the two
        rows = events.since(last, AT_ONCE, host, vr, kind)
        seen = rows[-1].id if rows else last
        return rows, seen if len(rows) == AT_ONCE else max(seen, newest)

    return ServerSentEvent(_events(pace, begin, later))


@get(
    "/stream",
    operation_id="streamTelemetry",
    tags=["routers"],
    scope="read",
    limited=FILTERED,
    media_type="text/event-stream",
)
async def stream_telemetry(
    context: GivenDesk, gate: GivenGate, request: StrictRequest, hosts: HostsFilter = None
) -> ServerSentEvent:
    """Stream throughput, offered load, setpoint and cap of routers, once a second."""
    return ServerSentEvent(_telemetry(context, _take_place(context, gate, request), hosts))


async def _telemetry(
    context: Context, pace: Pace, hosts: list[str] | None
) -> AsyncIterator[ServerSentEventMessage]:
    """Yield the current state repeatedly until the stream ends."""
    while True:
        tick = telemetry(context.fleet, hosts, context.now())
        yield ServerSentEventMessage(event="telemetry", data=msgspec.json.encode(tick).decode())
        if not await pace.tick():
            return


async def _events(
    pace: Pace, begin: _Begin, later: Callable[[int], tuple[list[EventRow], int]]
) -> AsyncIterator[ServerSentEventMessage]:
    """Yield the events after a given one, until the stream ends.

    Args:
        pace: when to check.
        begin: where the stream begins.
        later: reads events after an id from the store; returns some, and the id to continue after.
    """
    yield ServerSentEventMessage(data=None, comment="from here on", retry=2000)
    last = begin.after
    if begin.gap:
        yield ServerSentEventMessage(id=last, event=GAP, data=begin.gap)
    while True:
        try:
            rows, last = await sync_to_thread(later, last)
        except StoreError as error:
            yield ServerSentEventMessage(event="problem", data=str(error))
            return
        for row in rows:
            yield _message(row)
            pace.spoke()
        if pace.silent:
            yield ServerSentEventMessage(data=None, comment="alive")
            pace.spoke()
        if len(rows) < AT_ONCE and not await pace.tick():
            return


def _message(row: EventRow) -> ServerSentEventMessage:
    return ServerSentEventMessage(id=row.id, event="event", data=msgspec.json.encode(row).decode())


async def _begin(context: Context, given: str | None) -> _Begin:
    """Return the begin of a stream: after the client's last event, or after the latest.

    An id above the latest comes from another database, such as this one before it was restored from
    a backup. Waiting for that id would skip all events until then.
    """
    seen = None if given is None else _number(given)
    newest = await sync_to_thread(context.store.events.newest)
    if seen is None or seen <= newest:
        return _Begin(newest if seen is None else seen)
    words = f"event {seen} is later than the latest, {newest}: the database was restored or changed"
    return _Begin(newest, f"{words}; what happened meanwhile may be missing here")


def _number(given: str) -> int:
    """Return the id of an event; raises Invalid."""
    if not (given.isascii() and given.isdecimal() and int(given) < 2**63):
        fix = "give the id of an event, or leave it out"
        raise Invalid([Problem("Last-Event-ID", f"{given!r} is no id", fix)])
    return int(given)


def _take_place(context: Context, gate: Gate, request: StrictRequest) -> Pace:
    """Take one of the slots for streams for the duration of the exchange."""
    exchange_of(request.scope).ends.append(context.streams.take(request.requester.id))
    authorization = authorization_of(request)
    return Pace(context, lambda: gate.still(authorization))


HANDLERS = [stream_events, stream_telemetry]
