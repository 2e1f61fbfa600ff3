"""Load by clients during a soak: idle connections, and probes that send requests."""

import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import httpx

from benchmarks.policer.rig import Policer

EACH: Final = 90
"""Connections of one address, which is allowed 100."""
TURN_S: Final = 1.0
"""Interval of checks for connections that the policer closed, to open them again."""


@dataclass
class Idle:
    """Idle connections that are kept open."""

    address: tuple[str, int]
    count: int
    opened: int = 0
    """In all: each one that the policer closes is opened again."""
    _ending: threading.Event = field(default_factory=threading.Event)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> None:
        """Keep them open until asked to end."""
        for number in range(self.count):
            self._open(number)
        while not self._ending.wait(TURN_S):
            for key, _ in self._selector.select(0):
                assert isinstance(key.fileobj, socket.socket)
                self._close(key.fileobj)
                self._open(key.data)
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            self._close(key.fileobj)

    def end(self) -> None:
        """Close all."""
        self._ending.set()

    def _open(self, number: int) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        connection.bind((f"127.0.1.{1 + number // EACH}", 0))
        with suppress(BlockingIOError):
            connection.connect(self.address)
        self._selector.register(connection, selectors.EVENT_READ, number)
        self.opened += 1

    def _close(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()


@contextmanager
def idle(policer: Policer, count: int) -> Iterator[Idle]:
    """Keep a number of idle connections open."""
    crowd = Idle(policer.address, count)
    thread = threading.Thread(target=crowd.run)
    thread.start()
    try:
        yield crowd
    finally:
        crowd.end()
        thread.join()


@dataclass
class Probes:
    """Requests, each on a separate connection."""

    client: httpx.Client
    asked: int = 0
    failed: list[str] = field(default_factory=list)
    """The message of the refusal."""
    seconds: list[float] = field(default_factory=list)

    def ask(self, path: str) -> None:
        """Send one request."""
        began = time.perf_counter()
        self.asked += 1
        try:
            self.client.get(path).raise_for_status()
        except httpx.HTTPError as error:
            self.failed.append(f"{path}: {type(error).__name__}: {error}")
        else:
            self.seconds.append(time.perf_counter() - began)
