"""Two namespaces on a switch by TAP devices; the kernel of one leaves work to the switch."""

import fcntl
import os
import select
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import run
from typing import Final

from rigs.zovn_rig import address, build

from lab.system import namespaces
from zovn.native.library import RawOffload
from zovn.native.switch import MemoryPort, Offload, Switch

PREFIX: Final = f"zo{os.getpid()}"
HEADER: Final = 10
"""Bytes of the network header that a TAP device puts before a frame."""
TUNSETIFF, TUNSETOFFLOAD, TAP_FLAGS = 0x400454CA, 0x400454D0, 0x5002
CHECKSUMS, SEGMENTS, DATAGRAMS = 0x01, 0x0E, 0x60
"""What a TAP device's reader takes: checksums, TCP segmentation with ECN, UDP segmentation."""
ALL: Final = 63
PATIENCE_S: Final = 60.0


def netns(number: int) -> str:
    """Return the namespace of an end."""
    return f"{PREFIX}-{number}"


def open_tap(takes: int) -> int:
    """Create a TAP device with a reader that takes these offloads; DATAGRAMS need Linux 6.2."""
    made = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(made, TUNSETIFF, struct.pack("16sH22x", b"tap0", TAP_FLAGS))
    try:
        fcntl.ioctl(made, TUNSETOFFLOAD, takes)
    except OSError:
        fcntl.ioctl(made, TUNSETOFFLOAD, takes & ~DATAGRAMS)
    return made


def set_up(number: int) -> None:
    """Give an end its addresses, and those of the other."""
    other = 1 - number
    switch = Path("/proc/sys/net/ipv6/conf/tap0/disable_ipv6")
    namespaces.inside(netns(number), lambda: switch.write_text("0"))
    for command in (
        f"link set tap0 address {address(number).hex(':')} up",
        f"addr add 10.78.0.{number}/24 dev tap0",
        f"addr add fd78::{number}/64 dev tap0 nodad",
        f"neigh add 10.78.0.{other} lladdr {address(other).hex(':')} dev tap0",
        f"neigh add fd78::{other} lladdr {address(other).hex(':')} dev tap0",
    ):
        run(["ip", "-n", netns(number), *command.split()], check=True)


class Taps:
    """Passes frames between two TAP devices through a switch, whose ports take nothing unfinished;
    counts frames that a kernel left unfinished, and of these those of many segments."""

    def __init__(self, devices: list[int], takes: int) -> None:
        self.devices, self.takes = devices, takes
        self.unfinished = self.cut = 0
        self.switch = Switch()
        self.ports = [MemoryPort(64, 64) for _ in devices]
        for number, port in enumerate(self.ports):
            port.offer(ALL, 0)
            self.switch.add(port.handle)
            self.switch.fix(number, 1, address(number))

    def run(self, stop: threading.Event) -> None:
        """Pass frames until the end."""
        while not stop.is_set():
            self._turn()

    def _turn(self) -> None:
        ready, _, _ = select.select(self.devices, [], [], 0.01)
        for device in ready:
            self._take(device, self.ports[self.devices.index(device)])
        self.switch.step()
        assert self.switch.check() is None
        for device, port in zip(self.devices, self.ports, strict=True):
            for frame in port.receive_all():
                os.write(device, bytes(HEADER) + frame)
        self.switch.step()

    def _take(self, device: int, port: MemoryPort) -> None:
        with suppress(BlockingIOError):
            while port.free_heads:
                got = os.read(device, 1 << 17)
                raw = RawOffload.from_buffer_copy(got)
                values = (getattr(raw, name) for name, *_ in RawOffload._fields_)
                offload = Offload(*values)
                self.unfinished += offload.flags & 1
                self.cut += offload.kind > 0
                port.send(got[HEADER:], offload)


@contextmanager
def running(made: Taps) -> Iterator[Taps]:
    """Pass frames in a thread; what goes wrong in it is raised at the end."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        passing = pool.submit(made.run, stop)
        try:
            yield made
        finally:
            stop.set()
        passing.result()


@contextmanager
def taps(takes: int) -> Iterator[Taps]:
    """Two ends; the first one's kernel may leave these offloads to its device."""
    build()
    devices: list[int] = []
    try:
        for number, offloads in enumerate((takes, 0)):
            namespaces.create(netns(number))
            devices.append(namespaces.inside(netns(number), partial(open_tap, offloads)))
            set_up(number)
        with running(Taps(devices, takes)) as made:
            yield made
    finally:
        for device in devices:
            os.close(device)
        for number in range(2):
            namespaces.remove(netns(number))


def socket_in(number: int, family: int, kind: int) -> socket.socket:
    """Return a socket in the namespace of an end."""
    made = namespaces.inside(netns(number), lambda: socket.socket(family, kind))
    made.settimeout(PATIENCE_S)
    return made


def checksum_errors(number: int) -> int:
    """Return how many packets the kernel of an end refused for their checksums."""
    text = namespaces.inside(netns(number), lambda: Path("/proc/net/snmp").read_text())
    rows = [line.split() for line in text.splitlines()]
    found = 0
    for names, values in zip(rows[::2], rows[1::2], strict=True):
        found += sum(
            int(value) for name, value in zip(names, values, strict=True) if name == "InCsumErrors"
        )
    return found
