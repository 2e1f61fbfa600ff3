"""Test rig for gates: one host with gates, and a far end that captures and directs.

Two namespaces joined by a veth pair without offloads: ``e0`` in the first is the host's outgoing
interface, the second holds the receivers and a controller that sends the caller's messages.
"""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from lab.system import launch, links, namespaces
from xco.coordinator.config import CoordinatorConfig, checked, plain
from xco.core_files import program
from xco.errors import WireError
from xco.protocol.keys import derive, host_file
from xco.protocol.stats import Snapshot, read_statistics
from xco.protocol.wire import (
    CONTROLLER,
    Directive,
    Header,
    Hello,
    Message,
    Mode,
    Permit,
    Report,
    Status,
    Strategy,
    Welcome,
    decode,
    encode,
)

HOST, RECEIVER, OTHER = "10.77.0.1", "10.77.0.100", "10.77.0.101"
SECOND_VM: Final = "10.77.0.2"
CONTROLLER_ADDRESS: Final = "10.77.0.250"
MASTER: Final = bytes(range(32))
KEYS: Final = derive(MASTER, 0)
"""Of the gated host, the first of the topology."""
LINE_BPS: Final = 500_000_000
SO_TIMESTAMPNS: Final = 35
SO_SNDBUFFORCE: Final = 32
SO_RCVBUFFORCE: Final = 33
PAYLOAD: Final = 1400
PATIENCE_S: Final = 40.0
"""Timeout of all waits: a busy machine is slow."""
CLOSE_NS: Final = 5_000
"""Two clock readings no farther apart than this were not interrupted."""
LONG_SILENCE_NS: Final = 30_000_000_000
"""Longer than any stall of this program: the coordinator falls back only if a test wants it."""
ROOM_BYTES: Final = 200_000
DEEP_ROOM_BYTES: Final = 4_000_000
"""The kernel's buffer for a sender, by its own count; a V2V flow's queue holds as much."""
SENDER: Final = f"""
import socket, sys, time
source, to, rate, size, count, room = sys.argv[1:]
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.SOL_SOCKET, {SO_SNDBUFFORCE}, int(room))
out.bind((source, 0))
to = to, 9  # not connected, or a port without a receiver would end this
rate, data, count, sent = float(rate), bytes(int(size)), int(count), 0
start = time.monotonic()
while not count or sent < count:
    now = time.monotonic()
    start = max(start, now - (sent + 64) / rate) if rate else start
    due = (now - start) * rate if rate else sent + 64
    while sent < due and not 0 < count <= sent:
        out.sendto(sent.to_bytes(8, "big") + data[8:], to)
        sent += 1
    if rate:
        time.sleep(0.001)
"""
"""Sends numbered datagrams: SOURCE DESTINATION PACKETS_PER_S (0: no limit) BYTES COUNT (0: no end)
ROOM. After a stall it sends at most 64 of those that it missed."""
TOPOLOGY: Final = f"""
[switch.s]
[host.a]
addresses = ["{HOST}", "{SECOND_VM}", "fd77::1"]
[host.b]
addresses = ["{RECEIVER}", "fd77::100"]
[host.c]
addresses = ["{OTHER}"]
[[link]]
between = ["a", "s"]
capacity = "{LINE_BPS}"
[[link]]
between = ["b", "s"]
capacity = "{LINE_BPS}"
[[link]]
between = ["c", "s"]
capacity = "{LINE_BPS}"
"""


@dataclass
class StandIn:
    """A controller under the caller's direction; `skew_ns` is how far its clock is ahead."""

    socket: socket.socket
    epoch: int = 1
    skew_ns: int = 0
    silence_ns: int = LONG_SILENCE_NS
    status: Status = Status.JOINED
    strategy: Strategy = Strategy.TIMESLICE
    sequence: int = 0
    peer: tuple[str, int] | None = None
    reports: list[Report] = field(default_factory=list)
    heard_ns: list[int] = field(default_factory=list)
    directed_ns: list[int] = field(default_factory=list)
    others: list[Message] = field(default_factory=list)
    _echo: tuple[int, int] = (0, 0)

    def now_ns(self) -> int:
        """Return the controller's clock."""
        return time.monotonic_ns() + self.skew_ns

    def hear(self, seconds: float = 0.0) -> None:
        """Take what has arrived, with a timeout for the first message; answer each HELLO."""
        while select.select([self.socket], [], [], seconds)[0]:
            datagram, ancillary, _, self.peer = self.socket.recvmsg(2048, 64)
            self._take(decode(datagram, KEYS.up), arrived_ns(ancillary))
            seconds = 0.0

    def _take(self, message: Message, at_ns: int) -> None:
        self._echo = (message.header.sent_ns, at_ns + self.skew_ns)
        if isinstance(message, Report):
            self.reports.append(message)
            self.heard_ns.append(at_ns)
        else:
            self.others.append(message)
        if isinstance(message, Hello):
            self.welcome()

    def _header(self) -> Header:
        self.sequence += 1
        return Header(CONTROLLER, self.epoch, self.sequence, self.now_ns())

    def welcome(self) -> None:
        """Answer a HELLO."""
        rest = (0, self.status, self.strategy, 2_000_000, self.silence_ns, *self._echo)
        self.send(encode(Welcome(self._header(), *rest), KEYS.down))

    def allow_silence(self, silence_ns: int) -> None:
        """Change the coordinator's timeout for directives, now and at each HELLO."""
        self.silence_ns = silence_ns
        self.welcome()

    def directive(self, mode: Mode, start: int, end: int, *permits: Permit) -> Directive:
        """Build a directive; start and end are of this machine's clock, 0 for none."""
        times = [instant + self.skew_ns if instant else 0 for instant in (start, end)]
        return Directive(self._header(), 0, mode, times[0], times[1], *self._echo, permits)

    def direct(self, mode: Mode, start: int, end: int, *permits: Permit) -> Directive:
        """Send a directive."""
        directive = self.directive(mode, start, end, *permits)
        self.send(encode(directive, KEYS.down))
        self.directed_ns.append(time.monotonic_ns())
        return directive

    def send(self, datagram: bytes) -> None:
        """Send bytes to the coordinator that reported."""
        assert self.peer is not None
        self.socket.sendto(datagram, self.peer)

    def wait_for(self, holds: Callable[[], Any], seconds: float = PATIENCE_S) -> None:
        """Receive until a condition holds.

        Raises:
            TimeoutError: it does not hold in time.
        """
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {seconds} s: {self.reports[-3:]}")
            with contextlib.suppress(WireError):
                self.hear(0.01)

    def keep_until(
        self, holds: Callable[[], Any], mode: Mode, *permits: Permit, seconds: float = PATIENCE_S
    ) -> None:
        """Repeat a directive until a condition holds.

        Raises:
            TimeoutError: it does not hold in time.
        """
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {seconds} s: {self.reports[-3:]}")
            self.keep(0.02, mode, *permits)

    def keep(self, seconds: float, mode: Mode, *permits: Permit) -> None:
        """Repeat a directive every 10 ms, as a controller's heartbeat does."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.hear(0.01)
            self.direct(mode, 0, 0, *permits)

    def keep_through(self, reports: int, mode: Mode, *permits: Permit) -> None:
        """Repeat a directive until a number of reports arrive that were sent after this call."""
        self.keep_until(partial(self.has_news, time.monotonic_ns(), reports), mode, *permits)

    def hear_through(self, reports: int) -> None:
        """Receive until a number of reports arrive that were sent after this call."""
        self.wait_for(partial(self.has_news, time.monotonic_ns(), reports))

    def has_news(self, since_ns: int, reports: int) -> bool:
        """Whether a number of reports were sent after an instant, by the coordinator's clock."""
        newest = self.reports[-reports:]
        return len(newest) == reports and newest[0].header.sent_ns > since_ns


def arrived_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Return when the kernel received a datagram, in ns of CLOCK_MONOTONIC (SO_TIMESTAMPNS)."""
    seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
    return int(seconds * 10**9 + nanoseconds - wall_offset_ns())


def wall_offset_ns(tries: int = 20) -> int:
    """Return the wall clock less CLOCK_MONOTONIC, by the closest of some pairs of readings.

    Time between the two readings makes arrivals seem late, and never early: a coordinator's
    estimate of this clock leaves such exchanges out.
    """
    closest = most = 1 << 62
    for _ in range(tries):
        before = time.monotonic_ns()
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.monotonic_ns()
        if after - before < closest:
            closest, most = after - before, wall - after
        if closest < CLOSE_NS:
            break
    return most


class Capture:
    """A receiver with the kernel's timestamps of arrivals."""

    def __init__(self, receiver: socket.socket) -> None:
        self._socket = receiver

    def take(self, seconds: float = 0.0) -> list[tuple[int, int, str]]:
        """Return (arrival in ns of this machine's CLOCK_MONOTONIC, number, source) of each."""
        began = time.monotonic_ns()
        got: list[tuple[int, int, str]] = []
        # leave further arrivals for the next call
        while (not got or got[-1][0] < began) and select.select([self._socket], [], [], seconds)[0]:
            data, ancillary, _, source = self._socket.recvmsg(2048, 64)
            got.append((arrived_ns(ancillary), int.from_bytes(data[:8], "big"), str(source[0])))
            seconds = 0.0
        return got


class Rig:
    """The two namespaces, the stand-in, and their programs."""

    def __init__(self, prefix: str, folder: Path, stack: ExitStack) -> None:
        self.near, self.far, self.folder = f"{prefix}-near", f"{prefix}-far", folder
        self._stack = stack
        self.log = folder / "log"
        self.classifier = "auto"
        self.tables = ""
        """Tables to add to the topology's file."""

    def build(self) -> None:
        """Make namespaces, veth pair and addresses."""
        for name in (self.near, self.far):
            namespaces.remove(name)
            namespaces.create(name)
            self._stack.callback(namespaces.remove, name)
        self.join()

    def join(self) -> None:
        """Make the veth pair; after `part` it is a new one of the same name."""
        peer = {"ifname": "e0", "net_ns_fd": self.far}
        namespaces.configure(
            self.near, lambda ip: ip.link("add", ifname="e0", kind="veth", peer=peer)
        )
        for name, end, addresses in (
            (self.near, 1, (HOST, SECOND_VM)),
            (self.far, 2, (RECEIVER, OTHER, CONTROLLER_ADDRESS)),
        ):
            links.turn_offloads_off(name, "e0")
            namespaces.configure(name, partial(_address, end=end, addresses=addresses))

    def part(self) -> None:
        """Remove the veth pair."""
        namespaces.configure(self.near, lambda ip: ip.link("del", ifname="e0"))

    def stand_in(self) -> StandIn:
        """Open the controller's socket."""

        def make() -> socket.socket:
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            made.bind((CONTROLLER_ADDRESS, 7400))
            return made

        return StandIn(self._stack.enter_context(namespaces.inside(self.far, make)))

    def capture(self, address: str = RECEIVER, port: int = 9) -> Capture:
        """Open a receiver."""

        def make() -> socket.socket:
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 29)
            made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            made.bind((address, port))
            return made

        return Capture(self._stack.enter_context(namespaces.inside(self.far, make)))

    def config(self, **changes: Any) -> CoordinatorConfig:
        """Return a configuration for the near end."""
        (self.folder / "topology.toml").write_text(TOPOLOGY + self.tables)
        (self.folder / "key").write_bytes(host_file(KEYS))
        table = {
            "host": "a",
            "interface": "e0",
            "topology": str(self.folder / "topology.toml"),
            "key_file": str(self.folder / "key"),
            "controllers": [f"{CONTROLLER_ADDRESS}:7400"],
            "state_dir": str(self.folder),
            "runtime_dir": str(self.folder),
            "classifier": self.classifier,
        }
        return checked(table | changes)

    def start(self, config: CoordinatorConfig) -> "Running":
        """Start the compiled coordinator in the near namespace."""
        config.plain_file.write_text(plain(config))
        process = self.run(str(program("xco-coordinator")), str(config.plain_file))
        return Running(process, config, self.log)

    def run(self, *command: str) -> "subprocess.Popen[bytes]":
        """Start a program in the near namespace that ends with the rig."""
        start = [sys.executable, launch.__file__, "--owner", str(os.getpid())]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*start, "--netns", namespaces.path(self.near), "--", *command], stderr=log
            )
        self._stack.callback(_end, process)
        return process

    def send(
        self,
        source: str = HOST,
        to: str = RECEIVER,
        *,
        rate: float = 0,
        size: int = PAYLOAD,
        count: int = 0,
        room: int = ROOM_BYTES,
    ) -> "subprocess.Popen[bytes]":
        """Start a sender.

        Args:
            source: its address.
            to: its destination.
            rate: packets/s, 0 for as many as the queue takes.
            size: of a datagram, in bytes.
            count: datagrams to send, 0 for no end.
            room: its send buffer, as the kernel counts.
        """
        words = (source, to, *map(str, (rate, size, count, room)))
        return self.run(sys.executable, "-c", SENDER, *words)


@dataclass
class Running:
    """A coordinator that runs: `process` is its guard."""

    process: "subprocess.Popen[bytes]"
    config: CoordinatorConfig
    log: Path

    def statistics(self) -> Snapshot:
        """Return its published statistics."""
        return read_statistics(self.config.statistics)

    def loop(self) -> int:
        """Return the loop's process number."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(children.read_text().split()[0])


@contextmanager
def on_time() -> Iterator[None]:
    """Give this thread a real-time priority, below the coordinator's: it announces slices."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def rig(prefix: str = "xcogate") -> Iterator[Rig]:
    """Yield a rig, and remove it with all its programs."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        _remove_orphans(prefix)
        made = Rig(f"{prefix}{os.getpid()}", Path(folder), stack)
        made.build()
        yield made


def _remove_orphans(prefix: str) -> None:
    """Remove what killed rigs left behind."""
    for place in Path(namespaces.path(prefix)).parent.glob(f"{prefix}[0-9]*-*"):
        owner = place.name.removeprefix(prefix).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            namespaces.remove(place.name)


def _address(ip: Any, end: int, addresses: tuple[str, ...]) -> None:
    links.set_up(ip, "e0", f"02:00:00:77:00:{end:02x}")
    index = links.index_of(ip, "e0")
    for address in addresses:
        ip.addr("add", index=index, address=address, prefixlen=24)
    others = (RECEIVER, OTHER, CONTROLLER_ADDRESS) if end == 1 else (HOST, SECOND_VM)
    for address in others:
        links.enter_neighbour(ip, index, address, f"02:00:00:77:00:{3 - end:02x}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE_S / 4)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE_S / 4)
