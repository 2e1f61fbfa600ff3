"""Programs loaded in advance for the next routers, so that no tick waits for the verifier."""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from xtc.kernel.bpf import Program

KEPT: Final = 4
"""Programs in advance: each takes 10 ms of the kernel's time, and seconds in emulation."""


class Spares:
    """Loads programs in advance in a thread; if none is ready, the caller loads it."""

    def __init__(self, load: Callable[[], Program], keep: int = KEPT) -> None:
        """Store how to load; the first load is in `begin` or `take`."""
        self._load, self._keep = load, keep
        self._ready: deque[Program] = deque()
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._work, name="xtc-spares", daemon=True)

    def begin(self) -> None:
        """Begin to load programs in advance."""
        self._wanted.set()
        self._thread.start()

    @property
    def ready(self) -> int:
        """How many programs are ready."""
        return len(self._ready)

    def take(self) -> Program:
        """Return an unused program. Raises OSError, as `bpf.load`."""
        try:
            return self._ready.popleft()
        except IndexError:
            return self._load()
        finally:
            self._wanted.set()

    def _work(self) -> None:
        while self._wanted.wait():
            self._wanted.clear()
            with suppress(OSError):  # the caller of `take` gets this error, too, and reports it
                while len(self._ready) < self._keep:
                    self._ready.append(self._load())
