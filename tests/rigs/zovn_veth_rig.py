"""A host with a switch between veth interfaces, containers behind them, floods and sinks."""

import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pyroute2 import Ethtool
from rigs.zovn_rig import CORE, build
from support.waiting import eventually

from lab.system import namespaces
from xtc.kernel import offload

PREFIX: Final = f"zv{os.getpid()}"
HOST: Final = f"{PREFIX}-host"
PORT, DISCARD = 9000, 9
ENOUGH: Final = 1 << 28
GRO: Final = "generic-receive-offload"
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
MAC: Final = "02:00:00:00:00:{:02x}"
SWITCH, PROBE = (CORE / "build" / f"zovn-veth-{name}" for name in ("switch", "probe"))


def require_lossless_veth() -> None:
    """Build the programs; skip where the kernel is too old, or has no AF_XDP."""
    build("veth")
    said = subprocess.run([PROBE], capture_output=True, text=True, check=False).stdout.strip()
    if said != "lossless":
        pytest.skip(f"zovn-veth-probe: {said}")


def run(*words: str) -> str:
    """Run a command and return what it prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout


def container(number: int) -> str:
    """Return the namespace of a container."""
    return f"{PREFIX}-c{number}"


def port(number: int) -> str:
    """Return the host's end of its veth."""
    return f"p{number}"


def address(number: int) -> str:
    return f"10.77.0.{number}"


def set_offload(netns: str, interface: str, offload: str, *, on: bool) -> None:
    """Set an offload by ethtool's name."""

    def apply() -> None:
        with Ethtool() as ethtool:
            ethtool.set_offload_flag(interface, offload, int(on))

    namespaces.inside(netns, apply)


def set_receive_queues(netns: str, interface: str, count: int) -> None:
    """Set how many receive queues of an interface are in use."""

    def apply() -> None:
        with Ethtool() as ethtool:
            ethtool.set_channels(interface, {"rx_count": count})

    namespaces.inside(netns, apply)


def prepare(number: int) -> None:
    """Set up a container's end as docs/howto/zovn-veth.md says."""
    name = container(number)
    set_offload(name, "e0", "tx-checksumming", on=False)
    set_offload(name, "e0", GRO, on=True)
    run("tc", "-n", name, "qdisc", "add", "dev", "e0", "root", "pfifo", "limit", "100000")


def connect(number: int) -> None:
    """Make a container with an end of a veth, of which the other is the host's."""
    name = container(number)
    namespaces.create(name)
    queues = ("numtxqueues", "1")
    peer = ("peer", "name", "e0", "address", MAC.format(number), *queues, "netns", name)
    run("ip", "-n", HOST, "link", "add", port(number), "type", "veth", *peer)
    run("ip", "-n", HOST, "link", "set", port(number), "up")
    run("ip", "-n", name, "address", "add", f"{address(number)}/24", "dev", "e0")
    run("ip", "-n", name, "link", "set", "e0", "up")


def neighbours(*numbers: int) -> None:
    """Let containers know each other's address: what floods is then only what a test sends."""
    for one in numbers:
        for other in set(numbers) - {one}:
            entry = ("lladdr", MAC.format(other), "dev", "e0")
            run("ip", "-n", container(one), "neighbour", "replace", address(other), *entry)


@contextmanager
def host(*numbers: int) -> Iterator[None]:
    """A host and these containers, prepared."""
    names = [HOST, *map(container, numbers)]
    for name in names:
        namespaces.remove(name)
    try:
        namespaces.create(HOST)
        for number in numbers:
            connect(number)
            prepare(number)
        neighbours(*numbers)
        yield
    finally:
        for name in names:
            namespaces.remove(name)


class Switch:
    """A running zovn-veth-switch."""

    def __init__(self, numbers: Sequence[int], options: Sequence[str]) -> None:
        ports = [port(number) for number in numbers]
        enter = ["nsenter", f"--net={namespaces.path(HOST)}"]
        self.process = subprocess.Popen(
            [*enter, SWITCH, *options, *ports],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            pytest.fail(self.process.communicate()[1])

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> dict[str, str]:
        """Stop it and return its counters."""
        self.signal(signal.SIGTERM)
        said, complaints = self.process.communicate(timeout=60)
        assert (self.process.returncode, complaints) == (0, "")
        return dict(line.split() for line in said.splitlines())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def greet(*numbers: int) -> None:
    """Let each container send, so that the switch knows where its address is."""
    for one, other in zip(numbers, numbers[1:] + numbers[:1], strict=True):
        with inside(one) as sender:
            sender.sendto(b"hello", (address(other), DISCARD))


@contextmanager
def switch(*numbers: int, options: Sequence[str] = ()) -> Iterator[Switch]:
    """A switch between the ports of these containers."""
    running = Switch(numbers, options)
    try:
        greet(*numbers)
        yield running
    finally:
        if running.process.returncode is None:
            running.kill()


def inside(number: int, kind: socket.SocketKind = socket.SOCK_DGRAM) -> socket.socket:
    """Return a socket of a container."""
    return namespaces.inside(container(number), lambda: socket.socket(socket.AF_INET, kind))


class Flood:
    """Sends numbered datagrams as fast as `send` lets it, in a thread."""

    def __init__(self, sender: int, receiver: int, serial_of_flow: int = 0) -> None:
        self.sent, self._ends = 0, threading.Event()
        self._socket = inside(sender)
        self._to = address(receiver), PORT
        self._head = struct.pack(">II", sender, serial_of_flow)
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self._ends.is_set():
            datagram = self._head + struct.pack(">Q", self.sent) + bytes(48)
            self._socket.sendto(datagram, self._to)
            self.sent += 1

    def end(self) -> int:
        """Stop and return how many were sent."""
        self._ends.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "a sender still sleeps"
        self._socket.close()
        return self.sent


@contextmanager
def floods(pairs: Sequence[tuple[int, int]]) -> Iterator[list[Flood]]:
    """A flood for each (sender, receiver)."""
    running = [Flood(*pair, serial) for serial, pair in enumerate(pairs)]
    try:
        yield running
    finally:
        for flood in running:
            flood.end()


class Sink:
    """Receives the datagrams of floods in a thread; knows gaps and reordering of each flow."""

    def __init__(self, number: int) -> None:
        self.received, self.gaps, self.reordered = 0, 0, 0
        self._next: dict[bytes, int] = {}
        self._socket = inside(number)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ENOUGH)
        self._socket.bind((address(number), PORT))
        self._socket.settimeout(0.1)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self._ends.is_set():
            try:
                datagram = self._socket.recv(2048)
            except TimeoutError:
                continue
            self._note(datagram[:8], struct.unpack(">Q", datagram[8:16])[0])

    def _note(self, flow: bytes, serial: int) -> None:
        expected = self._next.get(flow, 0)
        self.received += 1
        self.gaps += max(serial - expected, 0)
        self.reordered += serial < expected
        self._next[flow] = max(expected, serial + 1)

    def settled(self, expected: int | None = None) -> int:
        """Wait until so many have come, and then no more; return how many have come.

        Where the number is not known, a longer silence must do.
        """
        eventually(lambda: self.received >= (expected or 0), state=lambda: self.received)
        quiet_s = 2.0 if expected is None else 0.5
        while True:
            before = self.received
            time.sleep(quiet_s)
            if self.received == before:
                return before

    def end(self) -> None:
        self._ends.set()
        self._thread.join(60)
        self._socket.close()


@contextmanager
def sink(number: int) -> Iterator[Sink]:
    """A sink in a container."""
    running = Sink(number)
    try:
        yield running
    finally:
        running.end()


def all_sleep(flooding: Sequence[Flood]) -> int:
    """Wait until no sender sends any longer; return how many datagrams they sent until then."""
    counts: list[int] = []

    def same_twice() -> bool:
        counts.append(sum(flood.sent for flood in flooding))
        return len(counts) > 1 and counts[-1] == counts[-2]

    eventually(same_twice, poll_s=0.3)
    return counts[-1]


def link(netns: str, interface: str) -> dict[str, Any]:
    """Return what ip-link(8) says of an interface."""
    found: list[dict[str, Any]] = json.loads(run("ip", "-n", netns, "-s", "-j", "link"))
    return next(one for one in found if one["ifname"] == interface)


def qdisc(netns: str, interface: str) -> dict[str, Any]:
    """Return what tc(8) says of an interface's queue."""
    said = run("tc", "-n", netns, "-s", "-j", "qdisc", "show", "dev", interface)
    found: list[dict[str, Any]] = json.loads(said)
    return found[0]


def write_inside(number: int, name: str, value: int) -> None:
    """Write a setting of the container's end of its veth (sysfs)."""
    file = Path("/sys/class/net/e0", name)
    run("ip", "netns", "exec", container(number), "sh", "-c", f"echo {value} > {file}")


def state_of_host(number: int) -> tuple[object, ...]:
    """Return what a port may change of the host's end."""
    name = port(number)
    offloads = namespaces.inside(HOST, lambda: (offload.gro(name), offload.tso(name)))
    return qdisc(HOST, name)["kind"], "xdp" in link(HOST, name), *offloads
