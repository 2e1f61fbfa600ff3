"""Applications of the policer's service for tests: to make the routes of one takes 0.2 s."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from litestar import Litestar

from policer.fleet.live import Fleet
from policer.rest import RestSettings
from policer.rest.app import connect, routed_app
from policer.store import Store

_free: Final[defaultdict[tuple[Path | None, int], list[Litestar]]] = defaultdict(list)
"""Routed applications that no test uses now, by their settings."""


@contextmanager
def connected(store: Store, fleet: Fleet, settings: RestSettings) -> Iterator[Litestar]:
    """Lend a service, as `create_app` makes it, which no other test has at that time."""
    free = _free[settings.page, settings.max_body]
    app = free.pop() if free else routed_app(settings.page, settings.max_body)
    bare, routes = app.asgi_handler, len(app.routes)
    connect(app, store, fleet, settings)
    yield app
    app.asgi_handler = bare
    if len(app.routes) == routes:  # the test added none of its own
        free.append(app)
