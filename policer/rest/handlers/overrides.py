"""/v1/overrides, and operators' changes of brake, suspensions, exemptions and epochs.

All of these are written into the store, so any policer accepts them; the leader follows the store.
"""

from litestar import Response, delete, get, post, put
from litestar.params import JSONBody

from policer.contracts.overrides import Kind, Override, braked, standing
from policer.contracts.promised import ANYWHERE
from policer.rest.access.context import Context, GivenDesk
from policer.rest.access.gate import FILTERED
from policer.rest.answers.overrides import (
    BrakeAnswer,
    CountedBrake,
    NewBrake,
    NewEpoch,
    NewExemption,
    NewSuspension,
    OverrideAnswer,
    OverridePage,
    override_answer,
)
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, page_of, unpack
from policer.rest.http.etag import create_or_replace, required, tag
from policer.rest.http.names import HostFilter, HostPath, IfMatch, IfNoneMatch, VrPath
from policer.store import OverrideKey

TAGS = ["overrides"]
SUSPENSION = "/hosts/{host:str}/suspension"
EXEMPTION = "/hosts/{host:str}/routers/{vr:str}/exemption"
OverrideRank = tuple[Kind, str, str]


@get(
    "/overrides",
    operation_id="listOverrides",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_overrides(
    context: GivenDesk, limit: Limit = 100, after: After = None, host: HostFilter = None
) -> OverridePage:
    """List the current overrides, by kind, host and router."""
    now = context.today()
    found = (one for one in context.store.overrides.all() if not one.ended(now))
    rows = (one for one in found if host in {None, one.host})
    page, following = page_of(rows, limit, unpack(after, OverrideRank), _rank)
    return OverridePage([override_answer(one) for one in page], following)


@get("/brake", operation_id="readBrake", tags=TAGS, scope="read", sync_to_thread=True)
def read_brake(context: GivenDesk) -> Response[BrakeAnswer]:
    """Read the mode and the state of the brake."""
    return _brake(context, context.store.overrides.brake())


@put("/brake", operation_id="changeBrake", tags=TAGS, scope="operate", sync_to_thread=True)
def change_brake(
    data: JSONBody[NewBrake], context: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> Response[BrakeAnswer]:
    """Put the brake on, off, or back to the count of guilty routers."""
    version = required(if_match, lambda: context.store.overrides.brake().version)
    wanted = Override("brake", data.mode, until=data.until, reason=data.reason)
    return _brake(context, context.store.overrides.put(wanted, version, request.actor))


@get(
    SUSPENSION,
    operation_id="readSuspension",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_suspension(host: HostPath, context: GivenDesk) -> Response[OverrideAnswer]:
    """Read until when, why and by whom control of a host is suspended."""
    return _tagged(context.store.overrides.get(OverrideKey("suspension", host)))


@put(
    SUSPENSION,
    operation_id="suspendHost",
    tags=TAGS,
    scope="operate",
    limited=FILTERED,
    sync_to_thread=True,
)
def suspend_host(
    *,
    host: HostPath,
    data: JSONBody[NewSuspension],
    context: GivenDesk,
    request: StrictRequest,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[OverrideAnswer]:
    """Suspend control of a host (If-None-Match: *), or change its suspension (If-Match).

    The policer sends nothing to it. Its leases expire, and its daemon uses its own configuration.
    """
    wanted = Override("suspension", "suspended", host, until=data.until, reason=data.reason)
    return _put(context, wanted, request, if_match, if_none_match)


@delete(
    SUSPENSION,
    operation_id="resumeHost",
    tags=TAGS,
    scope="operate",
    limited=FILTERED,
    sync_to_thread=True,
)
def resume_host(
    host: HostPath, context: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> None:
    """Resume control of a host."""
    _clear(context, OverrideKey("suspension", host), request, if_match)


@get(
    EXEMPTION,
    operation_id="readExemption",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_exemption(host: HostPath, vr: VrPath, context: GivenDesk) -> Response[OverrideAnswer]:
    """Read until when, why and by whom a router is exempt from its ladder."""
    return _tagged(context.store.overrides.get(_exemption(context, host, vr)))


@put(EXEMPTION, operation_id="exemptRouter", tags=TAGS, scope="operate", sync_to_thread=True)
def exempt_router(
    *,
    host: HostPath,
    vr: VrPath,
    data: JSONBody[NewExemption],
    context: GivenDesk,
    request: StrictRequest,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[OverrideAnswer]:
    """Exempt a router (If-None-Match: *), or change its exemption (If-Match).

    Steps in force are lifted; the rest of its contract stays in force.
    """
    _, where, router = _exemption(context, host, vr)
    wanted = Override("exemption", "exempt", where, router, until=data.until, reason=data.reason)
    return _put(context, wanted, request, if_match, if_none_match)


@delete(EXEMPTION, operation_id="endExemption", tags=TAGS, scope="operate", sync_to_thread=True)
def end_exemption(
    host: HostPath, vr: VrPath, context: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> None:
    """End a router's exemption: escalation applies to it again, from the first step."""
    _clear(context, _exemption(context, host, vr), request, if_match)


@post(
    "/leadership/epoch",
    operation_id="raiseEpoch",
    tags=["leadership"],
    scope="admin",
    status_code=202,
    sync_to_thread=True,
)
def raise_epoch(
    data: JSONBody[NewEpoch], context: GivenDesk, request: StrictRequest
) -> OverrideAnswer:
    """Make the leader take an epoch above one that a daemon obeys; it is never lowered again."""
    wanted = Override("epoch", "above", above=data.above, reason=data.reason)
    return override_answer(context.store.overrides.ask_epoch(wanted, request.actor))


def _exemption(context: Context, host: str, vr: str) -> OverrideKey:
    """Return the key of an exemption: host and router, or a contract that follows."""
    live = context.live(host)
    router = None if live is None else live.follows.get(vr)
    if router is None:
        return OverrideKey("exemption", host, vr)
    return OverrideKey("exemption", ANYWHERE, router)


def _rank(override: Override) -> tuple[str, str, str]:
    return override.kind, override.host, override.vr


def _put(
    context: Context,
    wanted: Override,
    request: StrictRequest,
    if_match: str | None,
    if_none_match: str | None,
) -> Response[OverrideAnswer]:
    key = OverrideKey(wanted.kind, wanted.host, wanted.vr)
    table = context.store.overrides
    version = create_or_replace(if_match, if_none_match, lambda: table.get(key).version)
    return _tagged(table.put(wanted, version, request.actor), 201 if version is None else 200)


def _clear(
    context: Context, key: OverrideKey, request: StrictRequest, if_match: str | None
) -> None:
    table = context.store.overrides
    version = required(if_match, lambda: table.get(key).version)
    table.clear(key, version, request.actor)


def _tagged(override: Override, status: int = 200) -> Response[OverrideAnswer]:
    headers = {"ETag": tag(override.version)}
    return Response(override_answer(override), status_code=status, headers=headers)


def _brake(context: Context, override: Override) -> Response[BrakeAnswer]:
    fleet, answer = context.fleet, override_answer(override)
    mode = standing([override], context.today()).brake_mode
    stopped, hosts = braked(mode, fleet.counted)
    body = BrakeAnswer(
        mode=mode,
        until=answer.until,
        reason=answer.reason,
        set_by=answer.set_by,
        set_at=answer.set_at,
        version=answer.version,
        braked=stopped,
        braked_hosts=sorted(hosts),
        counted=[CountedBrake(name or None, at) for name, at in sorted(fleet.counted.items())],
        leading=fleet.leadership.leading,
    )
    return Response(body, headers={"ETag": tag(override.version)})


HANDLERS = [
    list_overrides,
    read_brake,
    change_brake,
    read_suspension,
    suspend_host,
    resume_host,
    read_exemption,
    exempt_router,
    end_exemption,
    raise_epoch,
]
