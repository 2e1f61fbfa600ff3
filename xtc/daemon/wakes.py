"""Events that wake the daemon's loop: requests, signals, and finished journal writes."""

import math
from collections.abc import Iterable

import zmq

from xtc.daemon.wake import Wake


class Wakes:
    """Sleeps until there is work."""

    def __init__(
        self, signals: Wake, sockets: "Iterable[zmq.Socket[bytes]]", journal: int | None
    ) -> None:
        """Wait for request sockets, and for the descriptor of a journal if there is one."""
        self._signals, self._journal = signals, journal
        self._all, self._journal_alone = zmq.Poller(), zmq.Poller()
        for socket in sockets:
            self._all.register(socket, zmq.POLLIN)
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
