"""What clients do to a policer meanwhile: connections that ask nothing, and probes that ask."""

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
"""Connections of one address, which is let have 100."""
TURN_S: Final = 1.0
"""Between two looks for connections that the policer closed: they are opened again."""


@dataclass
class Idle:
    """Connections that are kept open without a word."""

    address: tuple[str, int]
    count: int
    opened: int = 0
    """In all: each that the policer closed is opened anew."""
    _ending: threading.Event = field(default_factory=threading.Event)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> None:
        """Keep them open until told to end."""
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
    """Keep so many connections open that ask nothing."""
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
    """Requests, each by a connection of its own."""

    client: httpx.Client
    asked: int = 0
    failed: list[str] = field(default_factory=list)
    """In whose words."""
    seconds: list[float] = field(default_factory=list)

    def ask(self, path: str) -> None:
        """Ask once."""
        began = time.perf_counter()
        self.asked += 1
        try:
            self.client.get(path).raise_for_status()
        except httpx.HTTPError as error:
            self.failed.append(f"{path}: {type(error).__name__}: {error}")
        else:
            self.seconds.append(time.perf_counter() - began)
