"""Serves the page's files: read once, with types and tags; nothing outside the directory."""

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from litestar import Response, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler

from policer.rest.access.gate import OPEN
from policer.rest.http.bodies import StrictRequest

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css"}
INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page."""

    content: bytes
    media_type: str
    etag: str


def page_files(folder: Path) -> dict[str, PageFile]:
    """Read all files under a directory, by their request path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[path.relative_to(folder).as_posix()] = _file(path)
    return found


def _file(path: Path) -> PageFile:
    content = path.read_bytes()
    guessed = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    media_type = guessed or "application/octet-stream"
    return PageFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def page_handler(folder: Path) -> HTTPRouteHandler:
    """Return the handler that serves the page in a directory."""
    files = page_files(folder)

    @get(
        ["/", "/{file:path}"],
        scope=OPEN,
        include_in_schema=False,
        sync_to_thread=False,
        name="page",
    )
    def page(request: StrictRequest) -> Response[bytes]:
        """Serve one file; 304 if the browser has it already."""
        wanted = files.get(request.scope["path"].removeprefix("/") or INDEX)
        if wanted is None:
            raise NotFoundException("there is no such page")
        headers = {
            "ETag": wanted.etag,
            "Cache-Control": "no-cache",
            "Content-Security-Policy": POLICY,
        }
        if wanted.etag in request.headers.get("if-none-match", ""):
            return Response(b"", status_code=304, headers=headers)
        return Response(wanted.content, media_type=wanted.media_type, headers=headers)

    return page
