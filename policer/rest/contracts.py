"""/v1/contracts: what routers were promised; checked against capacity as it is entered."""

from litestar import Response, delete, get, post, put
from litestar.params import JSONBody

from policer.admission import problems_with, promised_pps
from policer.contract import Contract
from policer.hosts import HostName
from policer.rest.answers import (
    CheckAnswer,
    ContractAnswer,
    ContractPage,
    History,
    NewContract,
)
from policer.rest.bodies import StrictRequest
from policer.rest.cursor import MOST, After, Limit, cut, unpack
from policer.rest.desk import Desk, GivenDesk
from policer.rest.etag import create_or_replace, required, tag
from policer.rest.gate import FILTERED
from policer.rest.hosts import found
from policer.rest.names import (
    HostFilter,
    HostPath,
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    VrPath,
)
from policer.rest.once import once
from policer.rest.problems import FieldProblem
from policer.store import Answering, Stored
from xtc.wire import VrName

TAGS = ["contracts"]
PATH = "/hosts/{host:str}/contracts/{vr:str}"
ContractKey = tuple[HostName, VrName]


@get(
    "/contracts",
    operation_id="listContracts",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_contracts(
    desk: GivenDesk, limit: Limit = 100, after: After = None, host: HostFilter = None
) -> ContractPage:
    """List the contracts, by host and router."""
    rows = desk.store.contracts.page(unpack(after, ContractKey), limit + 1, host)
    page, following = cut(rows, limit, lambda row: (row[0], row[1]))
    return ContractPage([_answer(*row) for row in page], following)


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
    desk: GivenDesk,
    request: StrictRequest,
    idempotency_key: IdempotencyKey = None,
) -> Response[ContractAnswer]:
    """Make a contract."""
    host, vr = data.host, data.vr

    def change(answering: Answering[Contract] | None) -> Stored[Contract]:
        actor = request.actor
        return desk.store.contracts.put(host, vr, data.contract, None, actor, answering=answering)

    def answer(stored: Stored[Contract]) -> Response[ContractAnswer]:
        return _tagged(host, vr, stored, 201)

    return once(desk, request, idempotency_key, data, change=change, answer=answer)


@post(
    "/contracts/check",
    operation_id="checkContract",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    status_code=200,
    sync_to_thread=True,
)
def check_contract(data: JSONBody[NewContract], desk: GivenDesk) -> CheckAnswer:
    """Say what would be wrong with a contract, and what would be promised; writes nothing."""
    host = found(desk, data.host).value
    others = _contracts_of(desk, data.host)
    problems = list(problems_with(data.vr, data.contract, host, others))
    return CheckAnswer(
        admissible=not problems,
        errors=tuple(FieldProblem(p.field, p.problem, p.fix) for p in problems),
        promised_pps=promised_pps({**others, data.vr: data.contract}),
        capacity_pps=host.capacity_pps,
    )


@get(
    PATH,
    operation_id="readContract",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_contract(host: HostPath, vr: VrPath, desk: GivenDesk) -> Response[ContractAnswer]:
    """Read a contract."""
    stored = desk.store.contracts.get(host, vr)
    return _tagged(host, vr, stored, 200)


@put(
    PATH,
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
    desk: GivenDesk,
    request: StrictRequest,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[ContractAnswer]:
    """Make a contract (If-None-Match: *) or replace one (If-Match)."""
    version = create_or_replace(if_match, if_none_match, lambda: _version(desk, host, vr))
    stored = desk.store.contracts.put(host, vr, data, version, request.actor)
    return _tagged(host, vr, stored, 201 if version is None else 200)


@delete(
    PATH,
    operation_id="removeContract",
    tags=TAGS,
    scope="operate",
    limited=FILTERED,
    sync_to_thread=True,
)
def remove_contract(
    host: HostPath, vr: VrPath, desk: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> None:
    """Remove a contract: its router has a share of what is left from now on; its history stays."""
    version = required(if_match, lambda: _version(desk, host, vr))
    desk.store.contracts.remove(host, vr, version, request.actor)


def _version(desk: Desk, host: str, vr: str) -> int:
    return desk.store.contracts.get(host, vr).version.number


@get(
    PATH + "/history",
    operation_id="readHistory",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def read_history(host: HostPath, vr: VrPath, desk: GivenDesk) -> History:
    """Read all versions of a contract, the latest first; also of one that was removed."""
    revisions = desk.store.contracts.history(host, vr)
    return History(revisions[::-1])


def _contracts_of(desk: Desk, host: str) -> dict[str, Contract]:
    """Return a host's contracts as they stand in the store."""
    contracts: dict[str, Contract] = {}
    after: tuple[str, str] | None = None
    while rows := desk.store.contracts.page(after, MOST, host):
        contracts |= {vr: stored.value for _, vr, stored in rows}
        after = rows[-1][:2]
    return contracts


def _answer(host: str, vr: str, stored: Stored[Contract]) -> ContractAnswer:
    version = stored.version
    return ContractAnswer(
        host, vr, stored.value, version.number, version.changed_at, version.changed_by
    )


def _tagged(host: str, vr: str, stored: Stored[Contract], status: int) -> Response[ContractAnswer]:
    headers = {"ETag": tag(stored.version.number)}
    if status == 201:
        headers["Location"] = f"/v1/hosts/{host}/contracts/{vr}"
    return Response(_answer(host, vr, stored), status_code=status, headers=headers)


HANDLERS = [
    list_contracts,
    add_contract,
    check_contract,
    read_contract,
    put_contract,
    remove_contract,
    read_history,
]
