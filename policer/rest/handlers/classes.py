"""/v1/classes: terms shared by many contracts; a change is checked on every affected host."""

from litestar import Response, delete, get, put
from litestar.params import JSONBody

from policer.contracts.contract import Contract
from policer.contracts.schedule import ClassName
from policer.rest.access.context import Context, GivenDesk
from policer.rest.access.gate import FILTERED
from policer.rest.answers.entities import ClassAnswer, ClassPage
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.cursor import After, Limit, page_of, unpack
from policer.rest.http.etag import create_or_replace, required, tag
from policer.rest.http.names import ClassPath, IfMatch, IfNoneMatch
from policer.store import Stored

TAGS = ["classes"]
ONE = "/classes/{name:str}"


@get(
    "/classes",
    operation_id="listClasses",
    tags=TAGS,
    scope="read",
    limited=FILTERED,
    sync_to_thread=True,
)
def list_classes(context: GivenDesk, limit: Limit = 100, after: After = None) -> ClassPage:
    """List the contract classes, by name."""
    rows = context.store.classes.all().items()
    page, following = page_of(rows, limit, unpack(after, ClassName), lambda row: row[0])
    return ClassPage([_answer(*row) for row in page], following)


@get(ONE, operation_id="readClass", tags=TAGS, scope="read", limited=FILTERED, sync_to_thread=True)
def read_class(name: ClassPath, context: GivenDesk) -> Response[ClassAnswer]:
    """Read a contract class."""
    return _tagged(name, context.store.classes.get(name), 200)


@put(ONE, operation_id="putClass", tags=TAGS, scope="operate", sync_to_thread=True)
def put_class(
    *,
    name: ClassPath,
    data: JSONBody[Contract],
    context: GivenDesk,
    request: StrictRequest,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[ClassAnswer]:
    """Create a class (If-None-Match: *) or change one and all its contracts (If-Match)."""
    version = create_or_replace(if_match, if_none_match, lambda: _version(context, name))
    stored = context.store.classes.put(name, data, version, request.actor)
    return _tagged(name, stored, 201 if version is None else 200)


@delete(ONE, operation_id="removeClass", tags=TAGS, scope="operate", sync_to_thread=True)
def remove_class(
    name: ClassPath, context: GivenDesk, request: StrictRequest, if_match: IfMatch = None
) -> None:
    """Remove a class that no contract names."""
    version = required(if_match, lambda: _version(context, name))
    context.store.classes.remove(name, version, request.actor)


def _version(context: Context, name: str) -> int:
    return context.store.classes.get(name).version.number


def _answer(name: str, stored: Stored[Contract]) -> ClassAnswer:
    version = stored.version
    return ClassAnswer(name, stored.value, version.number, version.changed_at, version.changed_by)


def _tagged(name: str, stored: Stored[Contract], status: int) -> Response[ClassAnswer]:
    headers = {"ETag": tag(stored.version.number)}
    if status == 201:
        headers["Location"] = f"/v1/classes/{name}"
    return Response(_answer(name, stored), status_code=status, headers=headers)


HANDLERS = [list_classes, read_class, put_class, remove_class]
