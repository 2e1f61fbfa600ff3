"""The compiled loop as a child, and hosts that speak to it by real sockets."""

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from support.waiting import PATIENCE_S, eventually
from xco_controller_rig import MASTER, host_encode
from xco_controller_scenes import EPOCH, Speaker, loop_file

from xco.errors import ControllerError
from xco.protocol.keys import derive
from xco.protocol.messages import Directive, Message, Status, Welcome
from xco.protocol.stats import read_statistics
from xco.protocol.wire import decode
from xco.topology.graph import Topology

PATIENT = {"silence": "20s", "drop": "60s"}
"""Settings with which a host may stand still as long as this program."""


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class UdpHost(Speaker):
    """A host with a socket of its own."""

    def __init__(self, host: int, digest: bytes, port: int) -> None:
        super().__init__(host, digest, first_sequence=time.time_ns())
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(PATIENCE_S)
        self.port = port

    def close(self) -> None:
        self._socket.close()

    def send(self, message: Message | bytes) -> bytes:
        datagram = message if isinstance(message, bytes) else host_encode(message)
        self._socket.sendto(datagram, ("127.0.0.1", self.port))
        return datagram

    def receive(self, patience_s: float = PATIENCE_S) -> Message:
        self._socket.settimeout(patience_s)
        message = decode(self._socket.recv(2000), derive(MASTER, self.host).down)
        self.hear(message)
        return message

    def silent_for(self, seconds: float) -> bool:
        """Whether nothing but what was sent again of old arrives."""
        try:
            return not isinstance(self.receive(seconds), Welcome)
        except TimeoutError:
            return True

    def join(self) -> Welcome:
        self.send(self.hello(now_ns()))
        while not isinstance(message := self.receive(), Welcome):
            pass
        return message if message.status is not Status.HELLO_FIRST else self.join()

    def next_directive(self, wanted: Callable[[Directive], bool] = lambda _: True) -> Directive:
        """Return the next directive of a certain kind."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            message = self.receive()
            if isinstance(message, Directive) and wanted(message):
                return message
        raise AssertionError("no such directive")


class RunningLoop:
    """The program as a child, started without the shell."""

    def __init__(self, program: Path, folder: Path, topology: Topology, **settings: object) -> None:
        self.folder, self.topology = folder, topology
        self.file = loop_file(folder, topology, **settings)
        self.process = subprocess.Popen(
            [program, self.file, "--with-parent"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.stats_file = folder / "controller.stats"
        self.hosts: list[UdpHost] = []
        try:
            eventually(self._is_up)
        except BaseException:
            self.close()
            raise
        self.port = self.counter("port")

    def host(self, index: int) -> UdpHost:
        host = UdpHost(index, self.topology.hosts_digest(), self.port)
        self.hosts.append(host)
        return host

    def joined(self, *indices: int) -> list[UdpHost]:
        hosts = [self.host(index) for index in indices]
        for host in hosts:
            host.join()
            host.next_directive()
        return hosts

    def counter(self, name: str) -> int:
        return read_statistics(self.stats_file).values[name]

    def fresh_counter(self, name: str) -> int:
        """Return a counter as it is published after this call."""
        since_ns = now_ns()
        eventually(lambda: read_statistics(self.stats_file).updated_ns > since_ns)
        return self.counter(name)

    def close(self) -> None:
        for host in self.hosts:
            host.close()
        self.process.kill()
        self.process.communicate()

    def _is_up(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()[1].decode()
        try:
            return self.counter("port") > 0 and self.counter("epoch") == EPOCH
        except ControllerError:
            return False
