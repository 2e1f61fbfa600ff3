"""Follows a topology in a thread of its own: a slow switch delays no other work."""

from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread

import structlog

from xco.errors import TopologyError
from xco.topology.discovery import Run, run
from xco.topology.graph import Topology
from xco.topology.watch import TopologyWatch

EVERY_S = 1.0
"""Interval between two reads of the file and the switches."""
AGENTS_EVERY_S = 5.0
"""The same for switches read by SNMP: their processors are slow."""

News = Topology | TopologyError
_log = structlog.get_logger("xco.topology")


class Follower:
    """Reports when a topology has changed, when it is wrong, and when it is right again."""

    def __init__(self, path: Path, *, every_s: float | None = None, run: Run = run) -> None:
        """Read it for the first time; `start` begins to follow it.

        Raises:
            TopologyError: the topology is wrong.
        """
        self._path = path
        self._watch = TopologyWatch(path, run)
        self.topology = self._watch.topology
        self._every_s = every_s
        self._problem = ""
        self._news: SimpleQueue[News] = SimpleQueue()
        self._stopped = Event()

    def start(self) -> None:
        """Follow it from now on."""
        Thread(target=self._follow, name="topology", daemon=True).start()

    def stop(self) -> None:
        """Stop following; do not wait for a read in progress."""
        self._stopped.set()

    def news(self) -> News | None:
        """Return the next topology to apply, or its error; None if nothing is new.

        When an error is over, this returns the topology, changed or not.
        """
        try:
            return self._news.get_nowait()
        except Empty:
            return None

    def look(self) -> None:
        """Read once; store what is new for `news`."""
        try:
            found = self._watch.look()
        except TopologyError as error:
            self._refuse(error)
            return
        except Exception as error:  # noqa: BLE001  the thread's firewall: the next look may work
            problem = f"unexpected error: {error!r}"
            if self._refuse(TopologyError(str(self._path), "", problem, "report it with the log")):
                _log.exception("unexpected_error", where="topology")
            return
        if found is not None or self._problem:
            self._news.put(self._watch.topology)
        self._problem = ""

    def _refuse(self, error: TopologyError) -> bool:
        """Store an error for `news`, once while it lasts; return whether it is new."""
        is_new = str(error) != self._problem
        if is_new:
            self._news.put(error)
        self._problem = str(error)
        return is_new

    def _follow(self) -> None:
        while not self._stopped.wait(self._rest_s()):
            self.look()

    def _rest_s(self) -> float:
        if self._every_s is not None:
            return self._every_s
        return AGENTS_EVERY_S if self._watch.asks_agents else EVERY_S
