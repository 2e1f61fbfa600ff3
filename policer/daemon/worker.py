"""The service's loop in a thread of its own: started, watched and stopped from outside."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Event, Thread

import structlog

BEAT_EVERY_S = 0.5
PATIENCE_S = 10.0
"""How long the work may take to end."""


class Worker:
    """Runs one coroutine function until it is stopped."""

    def __init__(self, work: Callable[[], Awaitable[None]], name: str = "service") -> None:
        self._work, self._name = work, name
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._begun = Event()
        self._beat = time.monotonic()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self.problem = ""
        """Why the work ended by itself; empty while it goes on, and when it was stopped."""

    def start(self) -> None:
        """Start, and wait until the loop turns."""
        self._thread.start()
        self._begun.wait()

    def silent_for(self) -> float:
        """Return the seconds since the loop last turned, whatever its tasks wait for."""
        return time.monotonic() - self._beat

    def stop(self) -> None:
        """Have the work cancelled, and wait for its end."""
        if self._loop is not None and self._task is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # the loop closed meanwhile
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            return
        except BaseException as error:  # noqa: BLE001  whatever it was, the process is to end
            structlog.get_logger("policer.serve").exception(f"the {self._name} ended")
            self.problem = f"{type(error).__name__}: {error}"
        else:
            self.problem = "it returned"

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        beating = asyncio.create_task(self._keep_beating())
        self._begun.set()
        try:
            await self._work()
        finally:
            beating.cancel()

    async def _keep_beating(self) -> None:
        while True:
            self._beat = time.monotonic()
            await asyncio.sleep(BEAT_EVERY_S)
