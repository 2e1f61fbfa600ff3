"""The REST service on a port of this machine, and a tab of a browser that visits its page."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from page_rig import Fleetwork
from support.services import connected

from policer.contracts.reach import UNLIMITED, Reach
from policer.rest import RestSettings

_REFUSED = re.compile(r"Failed to load resource: .*status of (\d+)")
_UNREACHABLE = "Failed to load resource: net::ERR_"


PATIENCE_S = 45.0


def until(holds: Callable[[], Any], seconds: float = PATIENCE_S) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come to hold"
        time.sleep(0.02)


class Service:
    """The service, which can be stopped and started again where it was."""

    def __init__(self, work: Fleetwork) -> None:
        self._work = work
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        settings = RestSettings(
            inbox=self._work.inbox,
            clock=lambda: self._work.now,
            stream_tick_s=0.05,
            rate_burst=1e6,
        )
        self._lent = ExitStack()
        app = self._lent.enter_context(connected(self._work.store, self._work.fleet, settings))
        config = uvicorn.Config(
            app, "127.0.0.1", self.port, log_config=None, timeout_graceful_shutdown=1
        )
        self._server = server = uvicorn.Server(config)
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(server),))
        self._thread.start()
        until(lambda: server.started)
        self.port = server.servers[0].sockets[0].getsockname()[1]

    async def _serve(self, server: uvicorn.Server) -> None:
        self._loop = asyncio.get_running_loop()
        await server.serve()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let the service do nothing within the block, with its connections open."""
        go_on = threading.Event()
        self._loop.call_soon_threadsafe(go_on.wait)
        try:
            yield
        finally:
            go_on.set()

    def stop(self) -> None:
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        self._lent.close()
        self._server = self._thread = None


class Visit:
    """A tab of the browser: where it is, what it asked for, and what its console says."""

    def __init__(self, page: Any, service: Service, work: Fleetwork) -> None:
        self.page, self.service, self.work = page, service, work
        self.asked: list[tuple[str, str]] = []
        """Method and address of every request."""
        self.complaints: list[str] = []
        self._expected: set[str] = set()
        page.on("request", lambda request: self.asked.append((request.method, request.url)))
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def expects(self, *statuses: int, unreachable: bool = False) -> None:
        """Take answers of these statuses, which a browser reports as errors, as meant."""
        self._expected |= {str(status) for status in statuses}
        if unreachable:
            self._expected.add(_UNREACHABLE)

    def _console(self, message: Any) -> None:
        if message.type not in {"error", "warning"}:
            return
        refused = _REFUSED.match(message.text)
        kind = refused.group(1) if refused else message.text[: len(_UNREACHABLE)]
        if kind not in self._expected:
            self.complaints.append(f"{message.text} ({message.location})")

    def go(self, view: str = "#/") -> None:
        """Open a view by its address."""
        self.page.goto(f"{self.service.origin}/{view}")

    def sign_in(self, view: str = "#/", scope: str = "operate", reach: Reach = UNLIMITED) -> None:
        """Open a view as somebody who was given a token, named after its scope."""
        self.go(view)
        self.page.get_by_label("Token").fill(self.work.token(scope, scope, reach))
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("navigation", name="Views").wait_for()

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def sees(self, text: str) -> None:
        """Wait until a text can be seen."""
        self.page.get_by_text(text).first.wait_for()

    def left_the_service(self) -> list[str]:
        """Return what was asked of anybody else."""
        home = urlsplit(self.service.origin).netloc
        return [url for _, url in self.asked if urlsplit(url).netloc not in {home, ""}]


def described(field: Any) -> str:
    """Return what a screen reader adds to a field's name."""
    ids = field.get_attribute("aria-describedby").split()
    return " ".join(field.page.locator(f"#{name}").inner_text() for name in ids)
