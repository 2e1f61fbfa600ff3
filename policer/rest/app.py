"""Makes the REST application of a store and a fleet."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from litestar import Litestar, Response, Router, get
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.routes import HTTPRoute
from litestar.types import ControllerRouterHandler

from policer.fleet.live import Fleet
from policer.rest.access.context import Context, provide_context, provide_gate
from policer.rest.access.gate import CLOSED, OPEN, Gate, guard
from policer.rest.access.settings import RestSettings
from policer.rest.access.slots import Slots
from policer.rest.access.throttle import Throttle
from policer.rest.handlers import (
    classes,
    contracts,
    events,
    health,
    history,
    hosts,
    overrides,
    plans,
    reports,
    routers,
    streams,
    tenants,
    tokens,
    webhooks,
)
from policer.rest.handlers import fleet as fleetwide
from policer.rest.handlers.page import page_handler
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.options import answer_options, methods_by_path
from policer.rest.http.problems import HANDLERS
from policer.rest.http.queries import known_queries
from policer.rest.middleware import RequestMiddleware
from policer.rest.openapi import DESCRIPTION, Needs, finished
from policer.store import Store
from policer.token_bucket import Buckets

VERSION = "1.0.0"
"""Of the interface; the path says v1."""
ROOMS = (
    hosts,
    routers,
    contracts,
    classes,
    tenants,
    plans,
    events,
    streams,
    fleetwide,
    overrides,
    tokens,
    history,
    reports,
    webhooks,
)
_GIVEN = {"context": Provide(provide_context), "gate": Provide(provide_gate)}


def create_app(store: Store, fleet: Fleet, settings: RestSettings) -> Litestar:
    """Return the service as an ASGI application.

    Args:
        store: where contracts, tokens and events are.
        fleet: what the policer sees; only read.
        settings: limits, clock, and what the rest of the policer lends.
    """
    app = routed_app(settings.page, settings.max_body)
    connect(app, store, fleet, settings)
    return app


def routed_app(page: Path | None, max_body: int) -> Litestar:
    """Return an application with all routes, which is to be connected before it serves.

    Args:
        page: directory of the page; None serves none.
        max_body: most bytes of a request's body.
    """
    document = describe()
    pages = [] if page is None else [page_handler(page)]
    app = Litestar(
        route_handlers=[*_handlers(), _document_handler(document), *pages],
        guards=[guard],
        before_request=answer_options,
        dependencies=_GIVEN,
        request_class=StrictRequest,
        exception_handlers=HANDLERS,
        request_max_body_size=max_body,
        openapi_config=None,
        logging_config=None,
    )
    _read_types(app)
    return app


def connect(app: Litestar, store: Store, fleet: Fleet, settings: RestSettings) -> None:
    """Give a routed application all that its operations work on, as `create_app` does."""
    throttle = Throttle(settings)
    slots = Slots(settings.max_streams, settings.max_streams_each)
    app.state.context = Context(store, fleet, settings, slots)
    app.state.gate = Gate(store, settings, throttle)
    app.state.queries = known_queries(describe())
    app.state.plans = Buckets(settings.plans_per_s, settings.plans_burst)
    app.state.methods = methods_by_path(app)
    # Litestar's middleware sees no request without a route: the shell must be around all of it.
    app.asgi_handler = RequestMiddleware(app.asgi_handler, settings, throttle)


@cache
def describe() -> dict[str, Any]:
    """Return the OpenAPI document, which is the same for all applications; only to be read.

    It is read off an application that serves nothing: Litestar's own way of serving it puts pages
    of other people's scripts, and an answer in HTML for every unknown path, beside it.
    """
    bearer = SecurityScheme(type="http", scheme="bearer", description="A token: xtcp_...")
    config = OpenAPIConfig(
        title="xtc policer",
        version=VERSION,
        description=DESCRIPTION,
        use_handler_docstrings=True,
        components=Components(security_schemes={"bearer": bearer}),
        path="/unserved",
    )
    app = Litestar(
        route_handlers=_handlers(),
        dependencies=_GIVEN,
        request_class=StrictRequest,
        openapi_config=config,
        logging_config=None,
    )
    return finished(app.openapi_schema.to_schema(), _needs(app))


@cache
def _handlers() -> Sequence[ControllerRouterHandler]:
    """Return all operations; an application works with copies of them."""
    v1 = Router("/v1", route_handlers=[handler for room in ROOMS for handler in room.HANDLERS])
    return v1, *health.HANDLERS


def _document_handler(document: dict[str, Any]) -> HTTPRouteHandler:
    raw = msgspec.json.encode(document)

    @get("/v1/openapi.json", scope=OPEN, include_in_schema=False, sync_to_thread=False)
    def openapi() -> Response[bytes]:
        """Serve the OpenAPI document."""
        return Response(raw, media_type="application/vnd.oai.openapi+json")

    return openapi


def _read_types(app: Litestar) -> None:
    """Have msgspec read all types now, while there is one thread.

    It reads a type when it is first used, and where two threads do so at once it crashes the
    process (seen with 0.22): requests and the store's calls are in threads of their own.
    """
    _read(handler.signature_model for handler in _handlers_of(app))
    _read_structs()


@cache
def _read_structs() -> None:
    _read(_structs_of_the_policer(msgspec.Struct))


def _read(kinds: Iterable[type[msgspec.Struct]]) -> None:
    for kind in kinds:
        with suppress(msgspec.ValidationError):
            msgspec.convert({}, kind)


def _structs_of_the_policer(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("policer."):
            yield one
        yield from _structs_of_the_policer(one)


def _handlers_of(app: Litestar) -> Iterator[HTTPRouteHandler]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            yield from route.route_handlers


def _needs(app: Litestar) -> dict[str, Needs]:
    """Return what each operation takes of a token."""
    return {
        handler.operation_id: Needs(handler.opt["scope"], handler.opt.get("limited", CLOSED))
        for handler in _handlers_of(app)
        if isinstance(handler.operation_id, str)
    }
