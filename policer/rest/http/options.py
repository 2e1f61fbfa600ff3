"""Answers OPTIONS: Litestar's own answer omits methods of paths that have several handlers."""

from collections import defaultdict
from typing import Any

from litestar import Litestar, Request, Response
from litestar.routes import HTTPRoute


def methods_by_path(app: Litestar) -> dict[str, str]:
    """Return the allowed methods of each path of an application."""
    found: dict[str, set[str]] = defaultdict(set)
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            found[route.path_format] |= set(route.methods)
    return {path: ", ".join(sorted(methods)) for path, methods in found.items()}


async def answer_options(request: Request[Any, Any, Any]) -> Response[None] | None:
    """Answer OPTIONS with the methods of the path; leave other requests to their handlers."""
    if request.method != "OPTIONS":
        return None
    allowed = request.app.state.methods[request.scope["path_template"]]
    return Response(None, status_code=204, headers={"Allow": allowed})
