"""Format of all errors: one problem document (RFC 9457), made only here."""

import http
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException

from policer.errors import (
    Forbidden,
    Invalid,
    IssuerAway,
    KeyReused,
    NotGranted,
    NotLeading,
    OutOfReach,
    PolicerError,
    Stale,
    StoreBusy,
    StoreError,
    Taken,
    Unauthenticated,
    Unknown,
)
from policer.rest.http.exchange import exchange_of

MEDIA_TYPE = "application/problem+json"
RETRY_S = 2
"""When to retry a request to a store that was busy or gone (RFC 9110, 15.6.4)."""


class FieldProblem(msgspec.Struct, frozen=True):
    """Problem of one field, and its fix."""

    field: str
    problem: str
    fix: str = ""


class ProblemDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request was not carried out."""

    type: str
    """Stable name of the problem, `urn:xtc:problem:...`."""
    title: str
    status: int
    detail: str
    instance: str
    """Id of the request in the policer's log."""
    errors: tuple[FieldProblem, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """How an error is answered."""

    status: int
    name: str
    headers: Mapping[str, str] = {}


_VERDICTS: tuple[tuple[type[PolicerError], Verdict], ...] = (
    (Invalid, Verdict(422, "invalid")),
    (KeyReused, Verdict(422, "key-reused")),
    (Unknown, Verdict(404, "unknown")),
    (Taken, Verdict(409, "taken")),
    (Stale, Verdict(412, "stale")),
    (
        Unauthenticated,
        Verdict(401, "unauthenticated", {"WWW-Authenticate": 'Bearer realm="policer"'}),
    ),
    (Forbidden, Verdict(403, "forbidden")),
    (NotGranted, Verdict(403, "forbidden")),
    (OutOfReach, Verdict(403, "forbidden")),
    (IssuerAway, Verdict(503, "issuer", {"Retry-After": "10"})),
    (NotLeading, Verdict(503, "not-leading", {"Retry-After": str(RETRY_S)})),
    (StoreBusy, Verdict(503, "store-busy", {"Retry-After": str(RETRY_S)})),
    (StoreError, Verdict(503, "store", {"Retry-After": str(RETRY_S)})),
)
"""The first match decides."""

NAMES = {
    400: "malformed",
    401: "unauthenticated",
    403: "forbidden",
    404: "unknown",
    405: "method",
    409: "taken",
    412: "stale",
    413: "too-large",
    415: "media-type",
    422: "invalid",
    428: "precondition-required",
    429: "too-many-requests",
    500: "unforeseen",
    503: "unavailable",
}
"""Name of a problem by its status, without more information."""


_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Titles of RFC 9110, since older versions of Python have other names."""
_WORDS = {
    404: "there is no such path (/v1/openapi.json lists them)",
    405: "not with this method (the header Allow lists those that go)",
}
"""Used if the error has no more text than its title."""
_HOST = "1 to 64 letters, digits and . -, the first a letter or digit"
_EXAMPLES = {
    "host": _HOST,
    "name": _HOST,
    "vr": "1 to 64 letters, digits and . _ : -, the first a letter or digit",
    "kind": "lower-case letters and _, such as punished",
    "hosts": "the name of a host, with * and ? for other characters",
    "routers": "HOST/VR, with * and ? for other characters but /",
    "tenants": "the name of a tenant: letters, digits and . _ -",
    "reason": "one line of at most 200 characters",
    "token": "its id, as `policer token list` shows it",
    "requests": "tcp://10.0.0.7:7077 or ipc:///run/xtc/manager.sock",
    "telemetry": "tcp://10.0.0.7:7078 or ipc:///run/xtc/telemetry.sock",
}
_PATTERN = "matching regex"
"""msgspec's text for a value that does not match its pattern."""
_BODY = "data"
"""Litestar's name for the body, used only if the body is missing."""


def from_policer(request: Request[Any, Any, Any], error: PolicerError) -> Response[ProblemDocument]:
    """Answer an error that the policer raised deliberately."""
    for kind, verdict in _VERDICTS:
        if isinstance(error, kind):
            errors = _fields(error)
            return _answer(request, verdict, str(error), errors)
    return unforeseen(request, error)


def from_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[ProblemDocument]:
    """Answer an error of the protocol: unknown path, wrong method, parameter out of range."""
    errors = _parameters(error.extra)
    if any(one.field == _BODY for one in errors):
        return _answer(request, Verdict(400, "malformed"), "send a body of JSON", ())
    status = 422 if errors else error.status_code
    if status == http.HTTPStatus.INTERNAL_SERVER_ERROR:
        return unforeseen(request, error)
    name = NAMES.get(status, "http")
    bare = error.detail in {"", http.HTTPStatus(status).phrase}
    said = _WORDS.get(status, error.detail) if bare else error.detail
    detail = "; ".join(_told(e) for e in errors) or said
    return _answer(request, Verdict(status, name, dict(error.headers or {})), detail, errors)


def unforeseen(request: Request[Any, Any, Any], error: Exception) -> Response[ProblemDocument]:
    """Answer an unexpected error; the log has it under the id in the answer."""
    structlog.get_logger("policer.rest").error(
        "request_failed", id=exchange_of(request.scope).id, exc_info=error
    )
    detail = "the policer could not do it; its log says more under this id"
    return _answer(request, Verdict(500, "unforeseen"), detail, ())


HANDLERS: dict[type[Exception] | int, Callable[..., Response[Any]]] = {
    PolicerError: from_policer,
    HTTPException: from_http,
    Exception: unforeseen,
}


def bare(request_id: str, error: HTTPException) -> bytes:
    """Return the document of an error that is answered before a request object exists."""
    verdict = Verdict(error.status_code, NAMES[error.status_code])
    return msgspec.json.encode(_document(request_id, verdict, error.detail, ()))


def _answer(
    request: Request[Any, Any, Any],
    verdict: Verdict,
    detail: str,
    errors: tuple[FieldProblem, ...],
) -> Response[ProblemDocument]:
    return Response(
        _document(exchange_of(request.scope).id, verdict, detail, errors),
        status_code=verdict.status,
        media_type=MEDIA_TYPE,
        headers=dict(verdict.headers),
    )


def _document(
    request_id: str, verdict: Verdict, detail: str, errors: tuple[FieldProblem, ...]
) -> ProblemDocument:
    return ProblemDocument(
        type=f"urn:xtc:problem:{verdict.name}",
        title=_TITLES.get(verdict.status) or http.HTTPStatus(verdict.status).phrase,
        status=verdict.status,
        detail=detail,
        instance=f"urn:xtc:request:{request_id}",
        errors=errors,
    )


def _fields(error: PolicerError) -> tuple[FieldProblem, ...]:
    if not isinstance(error, Invalid):
        return ()
    return tuple(FieldProblem(p.field, p.problem, p.fix) for p in error.problems)


def _parameters(extra: Any) -> tuple[FieldProblem, ...]:
    """Parse Litestar's message about parameters that it refused."""
    if not isinstance(extra, list):
        return ()
    return tuple(
        plain(str(entry.get("key", "request")), str(entry.get("message", "")))
        for entry in extra
        if isinstance(entry, dict)
    )


def plain(field: str, problem: str, fix: str = "") -> FieldProblem:
    """Return the problem of a field; for a pattern, an example is shown."""
    example = _EXAMPLES.get(field.rpartition(".")[2].partition("[")[0])
    if _PATTERN not in problem:
        return FieldProblem(field, problem, fix)
    words = "it has the wrong form"
    return FieldProblem(field, words, fix if example is None else f"write {example}")


def _told(error: FieldProblem) -> str:
    return f"{error.field}: {error.problem}" + (f" ({error.fix})" if error.fix else "")
