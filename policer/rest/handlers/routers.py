"""/v1/routers: contract, state and orders of each router; and its pardon."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.params import QueryParameter

from policer.contracts.host import HostName
from policer.contracts.in_force import in_force
from policer.contracts.promised import ANYWHERE
from policer.errors import NotLeading, Unknown
from policer.fleet.inbox import Pardon
from policer.fleet.live import HostLive
from policer.rest.access.context import Context, GivenDesk
from policer.rest.access.gate import FILTERED
from policer.rest.answers.entities import PardonAnswer, RouterAnswer, RouterPage, SetpointPage
from policer.rest.answers.live import router, routers_of, setpoint
from policer.rest.handlers.hosts import found
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, page_of, unpack
from policer.rest.http.names import HostFilter, HostPath, VrPath
from policer.store.database.records import now as today
from xtc.wire import VrName

TAGS = ["routers"]
RouterKey = tuple[HostName, VrName]
Misbehaving = Annotated[
    bool | None, QueryParameter(description="Only those that do, or only those that do not.")
]


def key_of(pair: tuple[HostLive, str]) -> tuple[str, str]:
    """Return the sort key of a router."""
    live, vr = pair
    return live.host.name, vr


@get(
    "/routers",
    operation_id="listRouters",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_routers(
    context: GivenDesk,
    limit: Limit = 100,
    after: After = None,
    host: HostFilter = None,
    misbehaving: Misbehaving = None,
) -> RouterPage:
    """List the routers of the fleet, by host and name."""
    rows = (
        (live, vr)
        for live, vr in routers_of(context.fleet, host)
        if misbehaving is None or _guilty(live, vr) is misbehaving
    )
    page, following = page_of(rows, limit, unpack(after, RouterKey), key_of)
    return RouterPage([_answer(context, live, vr) for live, vr in page], following)


@get(
    "/hosts/{host:str}/routers",
    operation_id="listRoutersOfHost",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_routers_of_host(
    host: HostPath, context: GivenDesk, limit: Limit = 100, after: After = None
) -> RouterPage:
    """List the routers of one host, by name."""
    if context.live(host) is None:
        found(context, host)
    page, following = page_of(
        routers_of(context.fleet, host), limit, unpack(after, RouterKey), key_of
    )
    return RouterPage([_answer(context, live, vr) for live, vr in page], following)


@get(
    "/hosts/{host:str}/routers/{vr:str}",
    operation_id="readRouter",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_router(host: HostPath, vr: VrPath, context: GivenDesk) -> RouterAnswer:
    """Read one router; shows a new contract before the policer has applied it."""
    live = context.live(host) or HostLive(found(context, host).value)
    answer = _answer(context, live, vr)
    where = (ANYWHERE, answer.follows) if answer.follows else (host, vr)
    try:
        stored = context.store.contracts.get(*where)
    except Unknown:
        if vr not in live.telemetry.routers:
            raise
        return msgspec.structs.replace(answer, contract=None)
    classes = context.store.classes.named_by([stored.value])
    return msgspec.structs.replace(
        answer,
        contract=in_force(stored.value, classes, today()),
        contract_version=stored.version.number,
    )


@post(
    "/hosts/{host:str}/routers/{vr:str}/pardon",
    operation_id="pardonRouter",
    tags=TAGS,
    scope="operate",
    limited=FILTERED,
    status_code=202,
    sync_to_thread=False,
)
def pardon_router(
    host: HostPath, vr: VrPath, context: GivenDesk, request: StrictRequest
) -> PardonAnswer:
    """Forget a router's misbehaviour, and lift the measures against it."""
    leadership = context.fleet.leadership
    if not leadership.leading:
        raise NotLeading(f"ask the policer that leads: {leadership.holder or 'none is known'}")
    live = context.live(host)
    if live is None:
        raise Unknown("host", host, "GET /v1/hosts lists them")
    state = live.state.routers.get(vr)
    if state is None or state.punishment.height == 0:
        fix = "`policer router list` and GET /v1/punishments show them"
        raise Unknown("punishment of", f"{vr} on {host}", fix)
    context.settings.inbox.put(Pardon(host, vr, str(request.actor)))
    return PardonAnswer(host, vr, state.punishment.step)


@get(
    "/setpoints",
    operation_id="listSetpoints",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_setpoints(
    context: GivenDesk, limit: Limit = 100, after: After = None, host: HostFilter = None
) -> SetpointPage:
    """List the current orders of each router, by host and router."""
    rows = ((live, vr) for live, vr in routers_of(context.fleet, host) if vr in live.orders)
    page, following = page_of(rows, limit, unpack(after, RouterKey), key_of)
    now = context.now()
    return SetpointPage([setpoint(live, vr, now) for live, vr in page], following)


def _answer(context: Context, live: HostLive, vr: str) -> RouterAnswer:
    exempt = context.fleet.overrides.exempt_on(live.host.name, live.follows)
    return router(live, vr, context.now(), exempt.get(vr))


def _guilty(live: HostLive, vr: str) -> bool:
    state = live.state.routers.get(vr)
    return state is not None and state.evidence.guilty


HANDLERS = [
    list_routers,
    list_routers_of_host,
    read_router,
    pardon_router,
    list_setpoints,
]
