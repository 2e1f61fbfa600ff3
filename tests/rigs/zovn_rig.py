"""The compiled switch with ports in memory, and frames that can be told apart."""

import fcntl
import shutil
import subprocess
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from zovn.native.switch import Counters, MemoryPort, Offload, PortSettings, Settings, Switch

BUILD_S: Final = 300
"""How long a build for sanitizers may take; its test may wait as long for another build before."""
CORE: Final = Path(__file__).parents[2] / "zovn" / "core"
BROADCAST: Final = b"\xff" * 6
SERIAL_AT: Final = 20
PRIORITIES: Final = {priority: priority for priority in range(8)}
"""Each priority has a class of its own."""


def build(target: str = "all") -> None:
    """Build the core, one process at a time; where that cannot be done, the test is skipped."""
    if not shutil.which("make") or not shutil.which("cc"):
        pytest.skip("no make or no C compiler: the core of zovn is not tested")
    with (CORE / "Makefile").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "-C", CORE, target], check=True, timeout=BUILD_S)


def address(port: int, which: int = 0) -> bytes:
    """Return one of the addresses of the peer behind a port."""
    return bytes((2, 0, 0, 0, which, port))


def frame(
    source: bytes,
    destination: bytes,
    serial: int = 0,
    length: int = 64,
    tag: int | None = None,
) -> bytes:
    """Return a frame of a type for experiments, with a number in it."""
    tagged = b"" if tag is None else b"\x81\x00" + tag.to_bytes(2, "big")
    body = (destination + source + tagged + b"\x88\xb5").ljust(SERIAL_AT, b"\0")
    return (body + serial.to_bytes(4, "big")).ljust(length, bytes((serial % 251,)))


def serial(got: bytes) -> int:
    """Return the number of a frame."""
    return int.from_bytes(got[SERIAL_AT : SERIAL_AT + 4], "big")


class Rig:
    """A switch with ports; each step checks the laws of the switch."""

    def __init__(
        self,
        ports: int | Sequence[PortSettings] = 0,
        settings: Settings | None = None,
        *,
        sent: int = 16,
        received: int = 16,
    ) -> None:
        self.switch = Switch(settings)
        self.sizes = (sent, received)
        self.ports: dict[int, MemoryPort] = {}
        self.serials = count(1)
        chosen = [PortSettings()] * ports if isinstance(ports, int) else ports
        for each in chosen:
            self.add(each)

    def add(self, settings: PortSettings | None = None, received: int | None = None) -> int:
        """Add a port; return its number."""
        port = MemoryPort(self.sizes[0], received or self.sizes[1])
        number = self.switch.add(port.handle, settings or PortSettings())
        self.ports[number] = port
        return number

    def remove(self, number: int) -> Counters:
        """Remove a port."""
        last = self.switch.remove(number)
        del self.ports[number]
        assert last.balanced
        self.check()
        return last

    def know(self) -> None:
        """Let the switch learn the first address of each port."""
        for number in self.ports:
            self.ports[number].send(frame(address(number), address(number)))
        self.step()
        self.drain()

    def send(
        self,
        source: int,
        destination: int,
        length: int = 64,
        offload: Offload | None = None,
        tag: int | None = None,
    ) -> bytes | None:
        """Send a frame from port to port; return it, or None if the sender must wait."""
        made = frame(address(source), address(destination), next(self.serials), length, tag)
        return made if self.ports[source].send(made, offload) else None

    def step(self, after_s: float = 0.0) -> int:
        """Step, and check."""
        moved = self.switch.step(after_s)
        self.check()
        return moved

    def settle(self) -> None:
        """Step until nothing moves."""
        while self.step():
            pass

    def drain(self) -> dict[int, list[bytes]]:
        """Receive everything, until nothing moves."""
        got: dict[int, list[bytes]] = {number: [] for number in self.ports}
        while True:
            moved = self.step()
            for number, port in self.ports.items():
                frames = port.receive_all()
                got[number] += frames
                moved += len(frames)
            if not moved:
                return got

    def check(self) -> None:
        """Assert the laws of the switch, and that what was delivered went out."""
        assert self.switch.check() is None
        assert all(self.counters(number).balanced for number in self.ports)

    def counters(self, number: int) -> Counters:
        """Return what a port has counted."""
        return self.switch.counters(number)

    def drops(self, number: int) -> dict[str, int]:
        """Return the drops of frames from a port, by reason."""
        return dict(self.counters(number).drops)


def known(ports: int, settings: Settings | None = None, **sizes: int) -> Rig:
    """Return a switch that knows where the first address of each port is."""
    rig = Rig(ports, settings, **sizes)
    rig.know()
    return rig


def jain(shares: Sequence[float]) -> float:
    """Return Jain's index of fairness."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
