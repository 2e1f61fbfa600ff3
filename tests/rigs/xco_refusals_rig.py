"""A host that may refuse connections, and another one that claims marks: for tests on packets."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from support.inconclusive import Inconclusive
from support.waiting import eventually

from benchmarks.xco.gates.rig import HOST, MASTER, RECEIVER, Rig, Running, on_time
from lab.system import namespaces
from xco.coordinator.config import CoordinatorConfig
from xco.protocol.keys import derive, host_file
from xco.protocol.messages import Header, Marks
from xco.protocol.wire import encode

PEER_PORT, SERVICE = 7401, 5001
HOSTS = 3
T = TypeVar("T")
TRIES = 4
TCP_INFO_BYTES, TOTAL_RETRANS_AT = 104, 100
"""Of struct tcp_info (linux/tcp.h), as far as tcpi_total_retrans."""


@dataclass
class Peer:
    """The receiver's coordinator, which sends the marks that a test sets."""

    socket: socket.socket
    config: CoordinatorConfig
    share: float = 1.0
    """Of the packets that arrive marked."""
    over: threading.Event = field(default_factory=threading.Event)

    def run_on_time(self) -> None:
        """Write every 10 ms, until it is over."""
        with on_time():
            self._run()

    def _run(self) -> None:
        keys = derive(MASTER, 1, HOSTS).peers
        assert keys
        digest, packets, marks = self.config.topology.hosts_digest(), 0, 0
        for sequence in count(1):
            if self.over.wait(0.01):
                return
            packets, marks = packets + 100, marks + round(100 * self.share)
            header = Header(1, 0, sequence, time.monotonic_ns())
            told = Marks(header, 0, sequence, packets, packets, marks, digest, 10**9, 0)
            self.socket.sendto(encode(told, keys.to[0]), (HOST, PEER_PORT))


@contextmanager
def peer(bench: Rig, config: CoordinatorConfig) -> Iterator[Peer]:
    """Let the receiver write to the host."""

    def create() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((RECEIVER, PEER_PORT))
        return made

    with namespaces.inside(bench.far, create) as out:
        made = Peer(out, config)
        thread = threading.Thread(target=made.run_on_time)
        thread.start()
        try:
            yield made
        finally:
            made.over.set()
            thread.join()


def configured(bench: Rig, **changes: Any) -> CoordinatorConfig:
    """Return a host that refuses where half of the packets are marked.

    Its silence is long: with that of 50 ms a peer that came late once would end a refusal.
    """
    key = bench.folder / "host.key"
    key.write_bytes(host_file(derive(MASTER, 0, HOSTS)))
    alone: dict[str, Any] = {"controllers": [], "fallback": "hygenicc", "marks": "hide"}
    refusing = {"admission": 0.5, "key_file": str(key), "silence": "200ms"}
    return bench.config(**alone | refusing | changes)


def hosts_refused(running: Running) -> int:
    return running.statistics().values["destinations_refused"]


def attempts(running: Running) -> int:
    return running.statistics().values["attempts_refused"]


def fresh_attempts(running: Running) -> int:
    """Return the attempts that were refused, as published after this call."""
    since_ns = time.monotonic_ns()
    eventually(lambda: running.statistics().updated_ns > since_ns)
    return attempts(running)


def first_attempts(running: Running, one: socket.socket) -> int:
    """Return the refused attempts, as published after this call, less those of a SYN sent again."""
    while True:
        before = sent_again(one)
        count = fresh_attempts(running)
        if sent_again(one) == before:
            return count - before


def listening(bench: Rig, address: str) -> socket.socket:
    return listening_in(bench.far, address)


def listening_in(name: str, address: str) -> socket.socket:
    def create() -> socket.socket:
        return socket.create_server((address, SERVICE))

    return namespaces.inside(name, create)


def connecting(bench: Rig, address: str) -> socket.socket:
    """Return a socket that connects from now on."""
    return connecting_in(bench.near, address)


def connecting_in(name: str, address: str) -> socket.socket:
    """Return one of a namespace."""

    def create() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setblocking(False)
        made.connect_ex((address, SERVICE))
        return made

    return namespaces.inside(name, create)


def is_connected(one: socket.socket) -> bool:
    try:
        one.getpeername()
    except OSError:
        return False
    return True


def connects(one: socket.socket, seconds: float) -> float | None:
    """Return how long it takes; None: longer."""
    began = time.monotonic()
    while True:
        took = time.monotonic() - began
        if is_connected(one):
            return took
        if took >= seconds:
            return None
        time.sleep(0.005)


def sent_again(one: socket.socket) -> int:
    """Return how many segments of a connection were sent again."""
    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    return int(struct.unpack_from("=I", info, TOTAL_RETRANS_AT)[0])


def passes(one: socket.socket) -> bool:
    """Whether a connection is made with its first SYN, however late this program sees that."""
    return connects(one, 10.0) is not None and sent_again(one) == 0


@contextmanager
def accepted(one: socket.socket, listener: socket.socket) -> Iterator[socket.socket]:
    """Yield the other end of a connection."""
    assert connects(one, 5.0) is not None
    one.setblocking(True)
    with listener.accept()[0] as end:
        yield end


def carries(source: socket.socket, to: socket.socket) -> bool:
    source.sendall(b"x" * 20_000)
    to.settimeout(10.0)
    got = 0
    while got < 20_000:
        got += len(to.recv(65536))
    return True


def refused(running: Running) -> Callable[[], bool]:
    """Return what is true once it is published, from now on, that connections are refused."""
    since_ns, file = time.monotonic_ns(), running.config.statistics

    def holds() -> bool:
        fresh = file.exists() and running.statistics().updated_ns > since_ns
        return fresh and hosts_refused(running) == 1

    return holds


def during_refusal(running: Running, observe: Callable[[], T]) -> T:
    """Return what is seen while connections are refused, again where a stall ended the refusal."""

    def ends() -> int:
        return running.log.read_text().count("are admitted again")

    for _ in range(TRIES):
        before = ends()
        eventually(refused(running))
        seen = observe()
        if ends() == before:
            return seen
    raise Inconclusive(f"the peer's messages were late {TRIES} times")


@contextmanager
def refused_connection(bench: Rig, running: Running) -> Iterator[socket.socket]:
    """Yield a socket whose first attempt to connect to the receiver was refused."""
    with ExitStack() as stack:

        def observe() -> socket.socket:
            stack.close()  # what an earlier try left
            count = fresh_attempts(running)
            made = stack.enter_context(connecting(bench, RECEIVER))
            eventually(lambda: attempts(running) > count or hosts_refused(running) == 0)
            return made

        yield during_refusal(running, observe)
