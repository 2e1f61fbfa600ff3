"""/v1/fleet and /v1/plans: the fleet as one document; planning and applying changes to it."""

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from threading import BoundedSemaphore
from typing import Any

from litestar import Response, get, post
from litestar.connection import ASGIConnection
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler
from litestar.params import JSONBody

from policer.contracts.location import present
from policer.fleetfile.document import FleetFile
from policer.fleetfile.edits import Scope
from policer.rest.access.context import Context, GivenDesk
from policer.rest.answers.entities import NewPlan, PlanAnswer
from policer.rest.handlers.replays import replaying_of
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.etag import required, tag
from policer.rest.http.names import IfMatch, PlanPath
from policer.rest.http.problems import plain
from policer.store import PlanRow

TAGS = ["plans"]
MAX_BODY = 4 << 20
"""Bytes; 500 hosts with 20 contracts each are 2 MiB."""
RETRY_S = 2
_working = BoundedSemaphore(2)
"""Limits plans in computation: a large one takes a CPU for seconds."""


async def may_plan(
    connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler
) -> None:
    """Admit a client within its limit of plans, before reading a large body."""
    state = connection.app.state
    wait = state.plans.wait(state.context.now(), connection.scope["user"].id)
    if wait > 0:
        headers = {"Retry-After": str(math.ceil(wait))}
        problem = f"this token has too many plans made; wait {wait:.2g} s"
        raise HTTPException(problem, status_code=429, headers=headers)


@get("/fleet", operation_id="readFleet", tags=TAGS, scope="read", sync_to_thread=True)
def read_fleet(context: GivenDesk) -> FleetFile:
    """Read all operators' entries as one document of one instant; no tokens."""
    with _turn():
        return context.store.plans.fleet()


@post(
    "/plans",
    operation_id="makePlan",
    tags=TAGS,
    scope="operate",
    sync_to_thread=True,
    guards=[may_plan],
    request_max_body_size=MAX_BODY,
)
def make_plan(
    data: JSONBody[NewPlan], context: GivenDesk, request: StrictRequest
) -> Response[PlanAnswer]:
    """Plan the changes of a document, and check them against capacity; changes nothing.

    The plan is kept for a day, so that this policer or another can apply it.
    """
    replaying = None if data.replay_s is None else replaying_of(context, data.replay_s)
    with _turn():
        row = context.store.plans.make(
            data.fleet,
            keep=data.keep,
            actor=request.actor,
            maker=request.requester.id,
            seen=partial(_seen, context),
            replaying=replaying,
        )
    return _tagged(row, 201)


@get("/plans/{plan:str}", operation_id="readPlan", tags=TAGS, scope="read", sync_to_thread=True)
def read_plan(plan: PlanPath, context: GivenDesk) -> Response[PlanAnswer]:
    """Read a plan as it was made, and whether it was applied."""
    return _tagged(context.store.plans.get(plan), 200)


@post(
    "/plans/{plan:str}/apply",
    operation_id="applyPlan",
    tags=TAGS,
    scope="operate",
    status_code=200,
    sync_to_thread=True,
)
def apply_plan(
    plan: PlanPath, context: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> Response[PlanAnswer]:
    """Make all changes of a plan, or none; a second time changes nothing.

    Adding and removing hosts, and changing addresses of daemons, takes `admin`. If anything that
    the plan depends on has changed, it is refused (412): plan again.
    """
    store = context.store.plans
    version = required(if_match, lambda: store.get(plan).version)
    scope: Scope = "admin" if request.requester.allows("admin") else "operate"
    with _turn():
        return _tagged(store.apply(plan, version, request.actor, scope), 200)


@contextmanager
def _turn() -> Iterator[None]:
    """Reserve a slot for a long computation; raises HTTPException if all are in use."""
    if not _working.acquire(blocking=False):
        problem = "other plans are being worked out"
        raise HTTPException(problem, status_code=503, headers={"Retry-After": str(RETRY_S)})
    try:
        yield
    finally:
        _working.release()


def _seen(context: Context, routers: Collection[str]) -> dict[str, list[str]]:
    """Return the hosts that report each router."""
    found: dict[str, list[str]] = {}
    for name, live in sorted(context.fleet.hosts.items()):
        if live.telemetry.reachable(context.now()):
            for router in {router for router, _ in present(routers, live.telemetry.routers)}:
                found.setdefault(router, []).append(name)
    return found


def _tagged(row: PlanRow, status: int) -> Response[PlanAnswer]:
    headers = {"ETag": tag(row.version)}
    if status == 201:
        headers["Location"] = f"/v1/plans/{row.id}"
    return Response(_answer(row), status_code=status, headers=headers)


def _answer(row: PlanRow) -> PlanAnswer:
    what = row.planned
    return PlanAnswer(
        id=row.id,
        version=row.version,
        keep=what.keep,
        needs=what.needs,
        admissible=not what.problems,
        changes=what.changes,
        problems=tuple(plain(*problem) for problem in what.problems),
        hosts=what.hosts,
        replay=what.replay,
        made_at=row.made_at,
        made_by=row.made_by,
        applied_at=row.applied_at,
        applied_by=row.applied_by,
    )


HANDLERS = [read_fleet, make_plan, read_plan, apply_plan]
