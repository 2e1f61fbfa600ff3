"""Ends a poll when a signal arrives: an interrupted poll would resume by itself (PEP 475)."""

import contextlib
import signal
import socket
from typing import Self

_ROOM = 4096
"""Bytes, one for each signal: further ones are lost, which is harmless."""


class Wake:
    """A readable file descriptor once a signal has arrived, until it is drained."""

    def __enter__(self) -> Self:
        """Start; in the main thread, where Python handles signals."""
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            end.setblocking(False)
        self._before = signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._before)
        self._reading.close()
        self._writing.close()

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._reading.fileno()

    def drain(self) -> None:
        """Wait for the next signal."""
        with contextlib.suppress(BlockingIOError):
            self._reading.recv(_ROOM)
