"""Events that wake the daemon's loop: requests, signals, and finished journal writes."""

import contextlib
import math
import signal
import socket
from collections.abc import Iterable
from typing import Self

import zmq

_ROOM = 4096
"""Bytes, one for each signal: further ones are lost, which is harmless."""


class Wake:
    """A readable file descriptor once a signal has arrived, until it is drained.

    Without it, a poll that a signal interrupts would resume by itself (PEP 475).
    """

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


class Wakes:
    """Sleeps until there is work."""

    def __init__(
        self, signals: Wake, sockets: "Iterable[zmq.Socket[bytes]]", journal: int | None
    ) -> None:
        """Wait for request sockets, and for the descriptor of a journal if there is one."""
        self._signals, self._journal = signals, journal
        self._all, self._journal_alone = zmq.Poller(), zmq.Poller()
        for one in sockets:
            self._all.register(one, zmq.POLLIN)
        for poller in (self._all, self._journal_alone):
            poller.register(signals.fileno(), zmq.POLLIN)
            if journal is not None:
                poller.register(journal, zmq.POLLIN)

    def sleep(self, seconds: float, *, hearing: bool) -> tuple[bool, bool]:
        """Sleep for a limited time.

        Args:
            seconds: negative values count as 0.
            hearing: whether requests wake it; not while one waits for the journal.

        Returns:
            Whether there are requests, and whether the journal has written.
        """
        poller = self._all if hearing else self._journal_alone
        found = dict(poller.poll(max(0, math.ceil(seconds * 1000))))  # rounded down, it would spin
        if found.pop(self._signals.fileno(), 0):
            self._signals.drain()
        written = found.pop(self._journal, 0) if self._journal is not None else 0
        return bool(found), bool(written)
