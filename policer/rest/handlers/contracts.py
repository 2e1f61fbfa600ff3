"""/v1/contracts: contracts of routers, checked against capacity on entry."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from litestar import Response, delete, get, post, put
from litestar.params import JSONBody

from policer.actor import Actor
from policer.contracts.contract import Contract
from policer.contracts.in_force import Classes, in_force
from policer.contracts.location import UUID
from policer.contracts.promised import ANYWHERE
from policer.errors import Problem, Unknown
from policer.rest.access.context import Context, GivenDesk
from policer.rest.access.gate import FILTERED
from policer.rest.answers.entities import (
    CheckAnswer,
    ContractAnswer,
    ContractPage,
    History,
    NewContract,
)
from policer.rest.handlers.idempotency import once
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, RowId, cut, unpack
from policer.rest.http.etag import create_or_replace, required, tag
from policer.rest.http.names import (
    FollowedPath,
    HostFilter,
    HostPath,
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    VrPath,
)
from policer.rest.http.problems import FieldProblem
from policer.store import Answering, Stored
from policer.store.database.records import now, refuse
from xtc.wire import VrName

TAGS = ["contracts"]
OF_HOST = "/hosts/{host:str}/contracts/{vr:str}"
OF_ROUTER = "/routers/{vr:str}/contract"
WhereOrEmpty = Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9.-]{0,63})?$(?!\n)")]
"""A host's name, or ANYWHERE."""
ContractKey = tuple[WhereOrEmpty, VrName]


@get(
    "/contracts",
    operation_id="listContracts",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_contracts(
    context: GivenDesk, limit: Limit = 100, after: After = None, host: HostFilter = None
) -> ContractPage:
    """List the contracts: first those that follow routers, then the others by host and router."""
    rows = context.store.contracts.page(unpack(after, ContractKey), limit + 1, host)
    page, following = cut(rows, limit, lambda row: (row[0], row[1]))
    classes = context.store.classes.named_by(stored.value for _, _, stored in page)
    homes = context.fleet.homes()
    return ContractPage([_answer(*row, classes, homes) for row in page], following)


@post(
    "/contracts",
    operation_id="addContract",
    tags=TAGS,
    scope="operate",
    limited=FILTERED,
    sync_to_thread=True,
)
def add_contract(
    data: JSONBody[NewContract],
    context: GivenDesk,
    request: StrictRequest,
    idempotency_key: IdempotencyKey = None,
) -> Response[ContractAnswer]:
    """Create a contract: on one host or, without a host, one that follows its router."""
    host, vr = data.host or ANYWHERE, data.vr
    # The answer is made within the change, which reads nothing else.
    classes = _classes(context, data.contract)

    def change(answering: Answering[Contract] | None) -> Stored[Contract]:
        refuse(_ambiguous(context, host, vr))
        return context.store.contracts.put(
            host,
            vr,
            data.contract,
            None,
            request.actor,
            answering=answering,
            seen_on=_seen_on(context, host, vr),
        )

    def answer(stored: Stored[Contract]) -> Response[ContractAnswer]:
        return _tagged(context, (host, vr), stored, 201, classes)

    return once(context, request, idempotency_key, data, change=change, answer=answer)


@post(
    "/contracts/check",
    operation_id="checkContract",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    status_code=200,
    sync_to_thread=True,
)
def check_contract(data: JSONBody[NewContract], context: GivenDesk) -> CheckAnswer:
    """Return the problems of a contract, and what would be promised; writes nothing."""
    host, vr = data.host or ANYWHERE, data.vr
    checked = context.store.contracts.check(host, vr, data.contract, _seen_on(context, host, vr))
    problems = (*checked.problems, *_ambiguous(context, host, vr))
    return CheckAnswer(
        admissible=not problems,
        errors=tuple(FieldProblem(p.field, p.problem, p.fix) for p in problems),
        promised_pps=checked.promised_pps,
        capacity_pps=None if checked.host is None else checked.host.capacity_pps,
        host=None if checked.host is None else checked.host.name,
    )


@get(
    OF_HOST,
    operation_id="readContract",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_contract(host: HostPath, vr: VrPath, context: GivenDesk) -> Response[ContractAnswer]:
    """Read the contract of a router on one host."""
    return _read(context, host, vr)


@put(
    OF_HOST,
    operation_id="putContract",
    tags=TAGS,
    scope="operate",
    limited=FILTERED,
    sync_to_thread=True,
)
def put_contract(
    *,
    host: HostPath,
    vr: VrPath,
    data: JSONBody[Contract],
    context: GivenDesk,
    request: StrictRequest,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[ContractAnswer]:
    """Create a contract on one host (If-None-Match: *) or replace one (If-Match)."""
    version = create_or_replace(if_match, if_none_match, lambda: _version(context, host, vr))
    return _put(context, (host, vr), data, version, request.actor)


@delete(
    OF_HOST,
    operation_id="removeContract",
    tags=TAGS,
    scope="operate",
    limited=FILTERED,
    sync_to_thread=True,
)
def remove_contract(
    host: HostPath, vr: VrPath, context: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> None:
    """Remove a contract: from now on its router gets a share of what is left; its history stays."""
    _remove(context, host, vr, if_match, request.actor)


@get(
    OF_HOST + "/history",
    operation_id="readHistory",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_history(
    host: HostPath, vr: VrPath, context: GivenDesk, limit: Limit = 100, after: After = None
) -> History:
    """Read the versions of a contract, the latest first; also if it was removed."""
    return _history(context, host, vr, limit, after)


@get(
    OF_ROUTER,
    operation_id="readFollowing",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_following(vr: FollowedPath, context: GivenDesk) -> Response[ContractAnswer]:
    """Read the contract that follows a router."""
    return _read(context, ANYWHERE, vr)


@put(
    OF_ROUTER,
    operation_id="putFollowing",
    tags=TAGS,
    scope="operate",
    limited=FILTERED,
    sync_to_thread=True,
)
def put_following(
    *,
    vr: FollowedPath,
    data: JSONBody[Contract],
    context: GivenDesk,
    request: StrictRequest,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[ContractAnswer]:
    """Create a contract that follows its router (If-None-Match: *) or replace one (If-Match)."""
    version = create_or_replace(if_match, if_none_match, lambda: _version(context, ANYWHERE, vr))
    return _put(context, (ANYWHERE, vr), data, version, request.actor)


@delete(
    OF_ROUTER,
    operation_id="removeFollowing",
    tags=TAGS,
    scope="operate",
    limited=FILTERED,
    sync_to_thread=True,
)
def remove_following(
    vr: FollowedPath, context: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> None:
    """Remove the contract that follows a router; its history stays."""
    _remove(context, ANYWHERE, vr, if_match, request.actor)


@get(
    OF_ROUTER + "/history",
    operation_id="readFollowingHistory",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_following_history(
    vr: FollowedPath, context: GivenDesk, limit: Limit = 100, after: After = None
) -> History:
    """Read the versions of a contract that follows its router, the latest first."""
    return _history(context, ANYWHERE, vr, limit, after)


def _history(context: Context, host: str, vr: str, limit: int, after: str | None) -> History:
    rows = context.store.contracts.history(host, vr, unpack(after, RowId), limit + 1)
    return History(*cut(rows, limit, lambda revision: revision.version))


def _read(context: Context, host: str, vr: str) -> Response[ContractAnswer]:
    stored = context.store.contracts.get(host, vr)
    return _tagged(context, (host, vr), stored, 200, _classes(context, stored.value))


def _put(
    context: Context, whose: tuple[str, str], contract: Contract, version: int | None, actor: Actor
) -> Response[ContractAnswer]:
    host, vr = whose
    if version is None:
        refuse(_ambiguous(context, host, vr))
    seen_on = _seen_on(context, host, vr)
    stored = context.store.contracts.put(host, vr, contract, version, actor, seen_on=seen_on)
    status = 201 if version is None else 200
    return _tagged(context, whose, stored, status, _classes(context, contract))


def _remove(context: Context, host: str, vr: str, if_match: str | None, actor: Actor) -> None:
    version = required(if_match, lambda: _version(context, host, vr))
    context.store.contracts.remove(host, vr, version, actor)


def _version(context: Context, host: str, vr: str) -> int:
    return context.store.contracts.get(host, vr).version.number


def _seen_on(context: Context, host: str, vr: str) -> str | None:
    """Return the host of a router to follow; None unless it is on exactly one."""
    having = context.fleet.having(vr, context.now()) if host == ANYWHERE else []
    return having[0] if len(having) == 1 else None


def _ambiguous(context: Context, host: str, vr: str) -> Iterator[Problem]:
    """Yield the problem of a new contract if several routers have the name that it follows.

    A UUID is on two hosts while its domain migrates. A host that takes a router's name must not
    prevent the contract from being replaced or removed.
    """
    having = context.fleet.having(vr, context.now()) if host == ANYWHERE else []
    if len(having) < 2 or UUID.fullmatch(vr) or _is_there(context, vr):
        return
    some = ", ".join(having[:5]) + (", ..." if len(having) > 5 else "")
    fix = "give the router's UUID, or make the contract on one host"
    yield Problem("vr", f"several hosts have a router of this name: {some}", fix)


def _is_there(context: Context, vr: str) -> bool:
    """Whether a contract follows a router already."""
    try:
        context.store.contracts.get(ANYWHERE, vr)
    except Unknown:
        return False
    return True


def _classes(context: Context, contract: Contract) -> Classes:
    return context.store.classes.named_by([contract])


def _answer(
    host: str,
    vr: str,
    stored: Stored[Contract],
    classes: Classes,
    homes: Mapping[str, str],
) -> ContractAnswer:
    version, contract = stored.version, stored.value
    return ContractAnswer(
        host=host or None,
        vr=vr,
        contract=contract,
        version=version.number,
        changed_at=version.changed_at,
        changed_by=version.changed_by,
        terms=in_force(contract, classes, now()),
        seen_on=None if host else homes.get(vr),
    )


def _tagged(
    context: Context,
    whose: tuple[str, str],
    stored: Stored[Contract],
    status: int,
    classes: Classes,
) -> Response[ContractAnswer]:
    host, vr = whose
    headers = {"ETag": tag(stored.version.number)}
    if status == 201:
        where = f"hosts/{host}/contracts/{vr}" if host else f"routers/{vr}/contract"
        headers["Location"] = f"/v1/{where}"
    answer = _answer(host, vr, stored, classes, context.fleet.homes())
    return Response(answer, status_code=status, headers=headers)


HANDLERS = [
    list_contracts,
    add_contract,
    check_contract,
    read_contract,
    put_contract,
    remove_contract,
    read_history,
    read_following,
    put_following,
    remove_following,
    read_following_history,
]
