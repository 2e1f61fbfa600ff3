"""Hosts as namespaces, each with an interface `w0`; switches in this process with wires on them."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rigs.zovn_rig import Rig
from support.waiting import PATIENCE_S

from lab.system import namespaces
from zovn.native.switch import PortSettings, Settings
from zovn.native.wire import WirePort, WireSettings

PREFIX: Final = f"zw{os.getpid()}"
VNI: Final = 42
CLASSES: Final = Settings(class_of_priority={one: one for one in range(8)})
TRUSTING: Final = PortSettings(tagged=(7,), trust="priority")
"""A port of which the tag gives the class."""


def name(host: str) -> str:
    """Return the namespace of a host."""
    return f"{PREFIX}-{host}"


def run(*words: str) -> str:
    """Run a command and return what it prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout


def ip(host: str, *words: str) -> None:
    """Run ip(8) in a host."""
    run("ip", "-n", name(host), *words)


def bare(host: str, interface: str) -> None:
    """Switch off what leaves frames unfinished, as on a wire none is."""
    command = ("ethtool", "-K", interface, "tx", "off", "gro", "off", "gso", "off", "tso", "off")
    run("ip", "netns", "exec", name(host), *command)


def connect(one: str, its: str, other: str, others: str) -> None:
    """Connect interfaces of two hosts."""
    peer = ("peer", "name", others, "netns", name(other))
    ip(one, "link", "add", its, "type", "veth", *peer)
    for host, interface in ((one, its), (other, others)):
        bare(host, interface)
        ip(host, "link", "set", interface, "up")


@contextmanager
def hosts(*names: str) -> Iterator[None]:
    """Make hosts, and remove them."""
    for one in names:
        namespaces.remove(name(one))
    try:
        for one in names:
            namespaces.create(name(one))
        yield
    finally:
        for one in names:
            namespaces.remove(name(one))


def vxlan(host: str, local: str, remote: str, station: bytes, inner: str) -> None:
    """Give a host the kernel's device, which learns nothing and knows where to send."""
    ip(host, "address", "add", f"{local}/24", "dev", "w0")
    tunnel = ("type", "vxlan", "id", str(VNI), "local", local, "dstport", "4789", "nolearning")
    ip(host, "link", "add", "tunnel", "address", station.hex(":"), *tunnel)
    bare(host, "tunnel")
    ip(host, "address", "add", f"{inner}/24", "dev", "tunnel")
    ip(host, "link", "set", "tunnel", "mtu", "1450", "up")
    flood = ("00:00:00:00:00:00", "dev", "tunnel", "dst", remote)
    run("bridge", "-n", name(host), "fdb", "append", *flood)


def packets(host: str, interface: str) -> socket.socket:
    """Return a socket that gets each frame of an interface, with its tag in what comes besides."""

    def opened() -> socket.socket:
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        one.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
        one.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
        one.bind((interface, 3))  # ETH_P_ALL
        one.setblocking(False)
        return one

    return namespaces.inside(name(host), opened)


def received(raw: socket.socket) -> bytes | None:
    """Return a frame with its tag, or None."""
    try:
        data, control, _, _ = raw.recvmsg(10_000, 100)
    except BlockingIOError:
        return None
    status = int.from_bytes(control[0][2][:4], "little")
    tag = control[0][2][16:20]
    if status & 0x10:  # TP_STATUS_VLAN_VALID
        return data[:12] + tag[3:1:-1] + tag[1::-1] + data[12:]
    return data


def map_of(stations: Mapping[bytes, str], *hosts: str) -> str:
    """Return the text of a map of stations and further hosts."""
    lines = [f"station {one.hex(':')} {at}" for one, at in stations.items()]
    return "".join(f"{line}\n" for line in (*(f"host {one}" for one in hosts), *lines))


class Wired(Rig):
    """A switch with ports in memory, and wires behind them by number."""

    def __init__(
        self, ports: list[PortSettings], settings: Settings = CLASSES, **more: Any
    ) -> None:
        super().__init__(ports, settings, **more)
        self.wires: dict[int, WirePort] = {}

    def wire(
        self,
        host: str,
        interface: str,
        local: str,
        text: str,
        port: PortSettings | None = None,
        **settings: Any,
    ) -> int:
        """Add a wire on a host's interface; return its number."""
        with tempfile.NamedTemporaryFile("w", suffix=".map") as file:
            file.write(text)
            file.flush()
            chosen = WireSettings(interface, local, Path(file.name), VNI, **settings)
            wire = namespaces.inside(name(host), lambda: WirePort(chosen))
        number = self.switch.add(wire.handle, port or PortSettings())
        self.wires[number] = wire
        return number

    def check(self) -> None:
        """Assert the laws of the switch; wires have their counters, too."""
        assert self.switch.check() is None
        assert all(self.switch.counters(one).balanced for one in (*self.ports, *self.wires))


def passing(*switches: Wired, until: Callable[[], Any]) -> Any:
    """Step switches, as time passes, until something is so; return it."""
    deadline = time.monotonic() + PATIENCE_S
    last = time.monotonic()
    while True:
        late = time.monotonic() >= deadline
        for one in switches:
            one.step(time.monotonic() - last)
        last = time.monotonic()
        if found := until():
            return found
        assert not late, [one.counters(n) for one in switches for n in (*one.ports, *one.wires)]
        time.sleep(0.0005)
