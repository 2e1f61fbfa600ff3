"""/v1/hosts: the machines of the fleet, with their entries and states."""

from litestar import Response, delete, get, post, put
from litestar.params import JSONBody

from policer.contracts.host import Host, HostName
from policer.errors import Invalid, Problem
from policer.rest.access.context import Context, GivenDesk
from policer.rest.access.gate import FILTERED
from policer.rest.answers.entities import HostAnswer, HostPage
from policer.rest.answers.live import host_live
from policer.rest.handlers.idempotency import once
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, cut, unpack
from policer.rest.http.etag import required, tag
from policer.rest.http.names import HostPath, IdempotencyKey, IfMatch
from policer.store import Answering, Stored

TAGS = ["hosts"]


@get(
    "/hosts",
    operation_id="listHosts",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_hosts(context: GivenDesk, limit: Limit = 100, after: After = None) -> HostPage:
    """List the hosts, by name."""
    stored = context.store.hosts.page(unpack(after, HostName), limit + 1)
    page, following = cut(stored, limit, _name)
    return HostPage([_answer(context, one) for one in page], following)


@post("/hosts", operation_id="addHost", tags=TAGS, scope="admin", sync_to_thread=True)
def add_host(
    data: JSONBody[Host],
    context: GivenDesk,
    request: StrictRequest,
    idempotency_key: IdempotencyKey = None,
) -> Response[HostAnswer]:
    """Add a host; the policer starts to receive it within a second."""

    def change(answering: Answering[Host] | None) -> Stored[Host]:
        return context.store.hosts.add(data, request.actor, answering=answering)

    def answer(stored: Stored[Host]) -> Response[HostAnswer]:
        return _tagged(context, stored, 201, {"Location": f"/v1/hosts/{data.name}"})

    return once(context, request, idempotency_key, data, change=change, answer=answer)


@get(
    "/hosts/{host:str}",
    operation_id="readHost",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_host(host: HostPath, context: GivenDesk) -> Response[HostAnswer]:
    """Read one host."""
    return _tagged(context, found(context, host), 200)


@put(
    "/hosts/{host:str}", operation_id="changeHost", tags=TAGS, scope="operate", sync_to_thread=True
)
def change_host(
    host: HostPath,
    data: JSONBody[Host],
    context: GivenDesk,
    request: StrictRequest,
    if_match: IfMatch = None,
) -> Response[HostAnswer]:
    """Change a host's entry; a capacity below the promises is refused.

    Only `admin` may change the address or the key of its daemon: another address is another daemon.
    """
    version = required(if_match, lambda: found(context, host).version.number)
    if data.name != host:
        fix = "a host keeps its name; enter a new one and remove the old one instead"
        raise Invalid([Problem("name", f"{data.name} is not {host}, which is changed here", fix)])
    redirects = request.requester.allows("admin")
    stored = context.store.hosts.replace(data, version, request.actor, redirects=redirects)
    return _tagged(context, stored, 200)


@delete(
    "/hosts/{host:str}", operation_id="removeHost", tags=TAGS, scope="admin", sync_to_thread=True
)
def remove_host(
    host: HostPath, context: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> None:
    """Remove a host that has no contracts; its leases expire by themselves."""
    version = required(if_match, lambda: found(context, host).version.number)
    context.store.hosts.remove(host, version, request.actor)


def found(context: Context, host: str) -> Stored[Host]:
    """Return a host's entry; raises Unknown."""
    return context.store.hosts.get(host)


def _name(stored: Stored[Host]) -> str:
    return stored.value.name


def _answer(context: Context, stored: Stored[Host]) -> HostAnswer:
    return HostAnswer(
        entry=stored.value,
        version=stored.version.number,
        changed_at=stored.version.changed_at,
        changed_by=stored.version.changed_by,
        live=host_live(
            context.live(stored.value.name),
            context.now(),
            braked=stored.value.name in context.fleet.braked_hosts,
            suspension=context.fleet.overrides.suspended.get(stored.value.name),
        ),
    )


def _tagged(
    context: Context, stored: Stored[Host], status: int, headers: dict[str, str] | None = None
) -> Response[HostAnswer]:
    etag = {"ETag": tag(stored.version.number)}
    return Response(
        _answer(context, stored), status_code=status, headers={**etag, **(headers or {})}
    )


HANDLERS = [list_hosts, add_host, read_host, change_host, remove_host]
