"""Numbered datagrams from containers to one of them, at a pace; and which of them arrived."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Final

from rigs.zovn_veth_rig import ENOUGH, PORT, SO_RCVBUFFORCE, Flood, container, inside

from lab.system import namespaces

PAUSE_S: Final = 0.003
BYTES: Final = 300
HEAD: Final = struct.Struct(">IQ")
RARP: Final = bytes.fromhex("80350001080006040003")
"""EtherType, and the head of a request (RFC 903)."""


def announce(number: int) -> None:
    """Send what a hypervisor sends for a guest that has come: a RARP request."""

    def send() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind(("e0", 0))
            mac = out.getsockname()[4]
            out.send(b"\xff" * 6 + mac + RARP + (mac + bytes(4)) * 2 + bytes(18))

    namespaces.inside(container(number), send)


class Sender(Flood):
    """Sends from a container in a thread; `sent` datagrams have the numbers below it."""

    def __init__(self, number: int, to: int) -> None:
        self.number, self._lock = number, threading.Lock()
        super().__init__(number, to)

    def _work(self) -> None:
        while not self._ends.wait(PAUSE_S):
            with self._lock:
                self._socket.sendto(HEAD.pack(self.number, self.sent).ljust(BYTES), self._to)
                self.sent += 1

    @contextmanager
    def held(self) -> Iterator[None]:
        """Send nothing meanwhile."""
        with self._lock:
            yield


class Inbox:
    """Receives at a container in a thread; keeps numbers by sender, in order of arrival."""

    def __init__(self, number: int, senders: list[int]) -> None:
        self.arrived: dict[int, list[int]] = {sender: [] for sender in senders}
        self._socket = inside(number)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ENOUGH)
        self._socket.bind(("", PORT))
        self._socket.settimeout(0.1)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self._ends.is_set():
            try:
                sender, number = HEAD.unpack_from(self._socket.recv(2048))
            except TimeoutError:
                continue
            self.arrived[sender].append(number)

    def end(self) -> None:
        """Stop."""
        self._ends.set()
        self._thread.join(60)
        self._socket.close()


class Flows:
    """Flows from senders to one receiver."""

    def __init__(self, senders: list[Sender], inbox: Inbox) -> None:
        self.senders = {sender.number: sender for sender in senders}
        self.inbox = inbox

    def sent(self) -> int:
        """Return how many datagrams were sent."""
        return sum(sender.sent for sender in self.senders.values())

    def arrived(self) -> int:
        """Return how many have arrived."""
        return sum(map(len, self.inbox.arrived.values()))

    def marks(self) -> dict[int, int]:
        """Return the number that each sender sends next."""
        return {number: sender.sent for number, sender in self.senders.items()}

    def ends(self) -> dict[int, tuple[int, list[int]]]:
        """Return how many each sender sent, and the number that arrived last."""
        return {
            number: (sender.sent, self.inbox.arrived[number][-1:])
            for number, sender in self.senders.items()
        }

    def have(self, more: int, marks: dict[int, int]) -> bool:
        """Return whether of each flow one has arrived that is so far beyond its mark."""
        return all(
            self.inbox.arrived[number] and self.inbox.arrived[number][-1] >= mark + more
            for number, mark in marks.items()
        )

    def holes(self, number: int) -> list[range]:
        """Return which numbers of a flow are missing between those that arrived.

        Raises:
            AssertionError: one came twice, or was overtaken.
        """
        arrived = [-1, *self.inbox.arrived[number]]
        wrong = [pair for pair in pairwise(arrived) if pair[0] >= pair[1]]
        assert not wrong, (number, wrong[:10], arrived[-5:])
        return [range(one + 1, other) for one, other in pairwise(arrived) if other - one > 1]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Send nothing meanwhile."""
        with ExitStack() as stack:
            for sender in self.senders.values():
                stack.enter_context(sender.held())
            yield

    def end(self) -> None:
        """Stop sending."""
        for sender in self.senders.values():
            sender.end()


@contextmanager
def flows(*senders: int, to: int) -> Iterator[Flows]:
    """Send from containers to another one."""
    inbox = Inbox(to, list(senders))
    running: list[Sender] = []
    try:
        running += [Sender(number, to) for number in senders]
        yield Flows(running, inbox)
    finally:
        for sender in running:
            sender.end()
        inbox.end()
