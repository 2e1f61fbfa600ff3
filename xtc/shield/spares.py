"""Programs that wait in the kernel for the next routers, so that no tick waits for its verifier."""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from xtc.kernel.bpf import Program

KEPT: Final = 4
"""Programs ahead: 10 ms of the kernel's time each, and seconds of an emulated one's."""


class Spares:
    """Loads programs ahead in a thread; without one ahead, whoever takes a program loads it."""

    def __init__(self, load: Callable[[], Program], keep: int = KEPT) -> None:
        """Remember how; nothing is loaded before `begin`, or what is taken."""
        self._load, self._keep = load, keep
        self._ready: deque[Program] = deque()
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._work, name="xtc-spares", daemon=True)

    def begin(self) -> None:
        """Load programs ahead from now on."""
        self._wanted.set()
        self._thread.start()

    @property
    def ready(self) -> int:
        """How many programs are ahead."""
        return len(self._ready)

    def take(self) -> Program:
        """Return a program that nobody else has. Raises OSError, as `bpf.load`."""
        try:
            return self._ready.popleft()
        except IndexError:
            return self._load()
        finally:
            self._wanted.set()

    def _work(self) -> None:
        while self._wanted.wait():
            self._wanted.clear()
            with suppress(OSError):  # whoever takes a program meets it, too, and tells
                while len(self._ready) < self._keep:
                    self._ready.append(self._load())
