"""The OpenAPI document: Litestar's part from the handlers, and the part specific to this service.

Problems, scopes, preconditions and examples are common to many operations, so they are defined
once, here.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.rest.access.gate import CLOSED, FILTERED, OPEN, Limited
from policer.rest.answers import entities as answers
from policer.rest.answers import overrides as overrideanswers
from policer.rest.answers.telemetry import Tick
from policer.rest.handlers import history, reports, webhooks
from policer.rest.handlers.exports import CSV, LINES
from policer.rest.http.problems import MEDIA_TYPE, NAMES, ProblemDocument

Operation = dict[str, Any]
PROBLEM = {"$ref": "#/components/schemas/ProblemDocument"}
BEARER: list[dict[str, list[str]]] = [{"bearer": []}]
DESCRIPTION = """\
Contracts in, setpoints out: what each virtual router was promised, does, and is told.

Every error is a problem document (RFC 9457). What is changed carries an ETag; send it back as
If-Match. POST takes an Idempotency-Key. Lists have a cursor: give the `next` of one page as the
`after` of the following one, until it is null. Unknown fields and parameters are refused.
"""
ANSWERS = (answers, history, reports, webhooks, overrideanswers)
"""Modules with structs of bodies."""
_CONTRACT = {
    "guarantee_pps": 20000,
    "ceiling_pps": 50000,
    "weight": 2,
    "measures": ["warn"],
    "burst": 4000,
}
_HOST = {
    "name": "gold",
    "requests": "tcp://192.0.2.7:9166",
    "telemetry": "tcp://192.0.2.7:9167",
    "capacity_pps": 120000,
    "server_key": "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
}
EXAMPLES: Mapping[str, Any] = {
    "addHost": _HOST,
    "changeHost": _HOST,
    "putContract": _CONTRACT,
    "putFollowing": {"class": "silver", "valid_until": "2031-01-01T00:00:00Z"},
    "putClass": _CONTRACT,
    "addContract": {"host": "gold", "vr": "customer-7", "contract": _CONTRACT},
    "checkContract": {"host": "gold", "vr": "customer-7", "contract": _CONTRACT},
    "putTenant": {"description": "Acme Ltd., customer 4711"},
    "makePlan": {
        "keep": True,
        "fleet": {
            "version": 1,
            "tenants": {"acme": {"description": "Acme Ltd., customer 4711"}},
            "hosts": {"gold": {"contracts": {"customer-8": {**_CONTRACT, "tenant": "acme"}}}},
        },
    },
    "changeBrake": {"mode": "on", "until": "2030-01-01T00:00:00Z", "reason": "the new model"},
    "suspendHost": {"until": None, "reason": "its daemon is updated"},
    "exemptRouter": {"until": "2030-01-01T00:00:00Z", "reason": "a load test"},
    "raiseEpoch": {"above": 1790000000, "reason": "a mistyped epoch"},
    "addToken": {
        "name": "billing",
        "scope": "read",
        "expires_at": "2030-01-01T00:00:00Z",
        "reach": {"tenants": ["acme"]},
    },
    "addWebhook": {
        "name": "pager",
        "url": "https://hooks.example/policer",
        "kinds": ["punished", "guarantee_missed", "brake"],
    },
    "redeliverLetters": {"ids": [17, 23]},
}
"""A request body for each operation that takes one."""
PRECONDITIONED = {
    "changeHost",
    "removeHost",
    "removeContract",
    "removeFollowing",
    "removeClass",
    "removeTenant",
    "applyPlan",
    "changeBrake",
    "resumeHost",
    "endExemption",
}
"""Operations that are refused without If-Match."""
MAKING = {"putContract", "putFollowing", "putClass", "putTenant", "suspendHost", "exemptRouter"}
"""Operations that create or replace something."""
TAGGED = {
    "readHost",
    "addHost",
    "changeHost",
    "readContract",
    "addContract",
    "readFollowing",
    "readClass",
    "readTenant",
    "makePlan",
    "readPlan",
    "applyPlan",
    "readBrake",
    "changeBrake",
    "readSuspension",
    "readExemption",
    *MAKING,
}
"""Operations that answer with an ETag."""
EXPORTS = {
    "listEvents": (LINES, "EventRow"),
    "listAudit": (LINES, "AuditRow"),
    "readReport": (CSV, ""),
}
"""Operations that export: media type, and content of each line of JSON."""
STREAMS = {"streamEvents": ("event", "EventRow"), "streamTelemetry": ("telemetry", "Tick")}
"""Operations that stream: name of their events, and content."""


LIMITS: Mapping[Limited, str] = {
    CLOSED: "A token that is limited to hosts, routers or tenants is refused (403).",
    FILTERED: "A limited token gets what it reaches; the rest is not there.",
}


class Needs(NamedTuple):
    """Rights that a token needs for an operation."""

    scope: str
    limited: Limited


def finished(document: dict[str, Any], needs: Mapping[str, Needs]) -> dict[str, Any]:
    """Return the document completed with the parts that Litestar cannot derive.

    Args:
        document: as made by Litestar.
        needs: requirements of each operation.
    """
    document["components"]["schemas"] |= _schemas()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _finish(path, operation, needs[operation["operationId"]])
    return document


def _schemas() -> dict[str, Any]:
    """Return the schemas of all bodies, from the library that checks and writes them."""
    structs = [Contract, Host, ProblemDocument, Tick, *_structs()]
    _, components = msgspec.json.schema_components(
        structs, ref_template="#/components/schemas/{name}"
    )
    return components


def _structs() -> Iterator[type]:
    for value in (value for module in ANSWERS for value in vars(module).values()):
        if isinstance(value, type) and issubclass(value, msgspec.Struct):
            yield value


def _finish(path: str, operation: Operation, needs: Needs) -> None:
    scope = needs.scope
    _say_who_may(operation, needs)
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    operation["responses"].pop("400", None)
    for status in sorted(set(_problems(path, operation, scope))):
        operation["responses"][str(status)] = _problem(status)
    _say_what_is_special(operation)


def _say_who_may(operation: Operation, needs: Needs) -> None:
    scope = needs.scope
    operation["security"] = [] if scope == OPEN else BEARER
    operation["summary"] = operation["description"].partition("\n")[0].rstrip(".")
    takes = "Takes no token." if scope == OPEN else f"Takes a token with the scope `{scope}`."
    limits = "" if scope == OPEN else f" {LIMITS[needs.limited]}"
    operation["description"] += f"\n\n{takes}{limits}"


def _say_what_is_special(operation: Operation) -> None:
    name, responses = operation["operationId"], operation["responses"]
    if name in EXAMPLES:
        content = operation["requestBody"]["content"]["application/json"]
        content["examples"] = {"ordinary": {"value": EXAMPLES[name]}}
        operation["requestBody"]["required"] = True
    if name in MAKING:
        responses["201"] = {**deepcopy(responses["200"]), "description": "It is new"}
    if name in TAGGED:
        _tell_etag(responses)
    if name in PRECONDITIONED:
        _parameter(operation, "If-Match")["required"] = True
    if name in EXPORTS:
        media_type, line = EXPORTS[name]
        responses["200"]["content"][media_type] = {"schema": _export(line)}
    if name in STREAMS:
        responses["200"]["content"]["text/event-stream"]["schema"] = _stream(*STREAMS[name])


def _problems(path: str, operation: Operation, scope: str) -> Iterator[int]:
    """Yield the statuses with which an operation may be refused."""
    name = operation["operationId"]
    yield from (500, 503)
    if scope != OPEN:
        yield from (401, 403, 429)
    if "requestBody" in operation:
        yield from (400, 413, 415, 422)
    if scope != OPEN:
        yield 422
    if ("{" in path and name != "readReport") or name in {"addContract", "checkContract"}:
        yield 404
    if name in {"addHost", "addContract", "addWebhook", *MAKING}:
        yield 409
    if name in PRECONDITIONED | MAKING:
        yield from (412, 428)


def _problem(status: int) -> dict[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": PROBLEM, "examples": {"typical": _example(status)}}},
    }


def _example(status: int) -> dict[str, Any]:
    phrase = HTTPStatus(status).phrase
    value = {
        "type": f"urn:xtc:problem:{NAMES[status]}",
        "title": phrase,
        "status": status,
        "detail": phrase,
        "instance": "urn:xtc:request:0123456789abcdef",
    }
    if status == 422:
        fix = "raise the ceiling, lower the guarantee, or leave the ceiling out"
        problem = "10 is below the guarantee of 20"
        value["errors"] = [{"field": "ceiling_pps", "problem": problem, "fix": fix}]
    return {"value": value}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an optional parameter: a null cannot be sent."""
    if isinstance(schema.get("type"), list):
        (kind,) = (kind for kind in schema["type"] if kind != "null")
        choices = [choice for choice in schema["enum"] if choice is not None]
        return {**schema, "type": kind, "enum": choices}
    kinds = [kind for kind in schema.get("oneOf", ()) if kind.get("type") != "null"]
    rest = {name: value for name, value in schema.items() if name != "oneOf"}
    return {**rest, **kinds[0]} if len(kinds) == 1 else schema


def _stream(event: str, data: str) -> dict[str, Any]:
    """Return the schema of one event of a stream; comments are the heartbeat."""
    content = {"$ref": f"#/components/schemas/{data}"}
    text = {"type": "string", "contentMediaType": "application/json", "contentSchema": content}
    words = {"type": "string", "description": "Why the stream ends."}
    return {"anyOf": [_event(event, text), _event("problem", words)]}


def _export(line: str) -> dict[str, Any]:
    """Return the schema of an export; OpenAPI 3.1 cannot describe lines of JSON."""
    if not line:
        return {"type": "string"}
    content = {"$ref": f"#/components/schemas/{line}"}
    more = {"contentMediaType": "application/json", "contentSchema": content}
    return {"type": "string", "description": "One such object a line, the oldest first."} | more


def _event(name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"id": {"type": "string"}, "event": {"const": name}, "data": data},
        "required": ["event", "data"],
    }


def _tell_etag(responses: dict[str, Any]) -> None:
    for status in ("200", "201"):
        if status in responses:
            etag = {"description": 'Its version, as "v3".', "schema": {"type": "string"}}
            responses[status].setdefault("headers", {})["ETag"] = etag


def _parameter(operation: Operation, name: str) -> dict[str, Any]:
    found: Iterable[dict[str, Any]] = operation["parameters"]
    return next(one for one in found if one["name"] == name)
