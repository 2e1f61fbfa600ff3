"""VMs behind a bridge whose uplink is gated; each has a namespace."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.xco.gates.rig import HOST, PAYLOAD, RECEIVER, SENDER, Rig, Running, StandIn, rig
from lab.system import namespaces
from xco.protocol.wire import Mode, Permit

NETWORK = """
[switch.s]
[host.a]
[host.b]
[[link]]
between = ["a", "s"]
capacity = "1Gbps"
[[link]]
between = ["b", "s"]
capacity = "1Gbps"
"""
"""A topology of two hosts."""
WEIGHTS = """
[vm.gold]
interface = "gold0"
weight = 3
[vm.tin]
interface = "tin0"
"""
NEAR_MAC, FAR_MAC = "02:00:00:77:00:01", "02:00:00:77:00:02"
DEEP_ROOM = "4000000"
FAST = 4000
"""Datagrams a second of `PAYLOAD`."""
SEGMENT = f"out.setsockopt(socket.IPPROTO_UDP, 103, {PAYLOAD})  # UDP_SEGMENT"
JOINED = SENDER.replace("out.bind", f"{SEGMENT}\nout.bind")
"""Sends GSO packets: as many datagrams of `PAYLOAD` at a time as the size says."""
DEEP_BYTES = 3_000_000
"""What waits for each VM before the gate opens; a queue takes 4 MB."""
DEEP_SMALL_BYTES = 1_500_000
"""The same of smaller datagrams: of 350 bytes, the sender's buffer holds 2.4 MB of frames."""


class Vms:
    """A rig with a bridge."""

    def __init__(self, bench: Rig, stack: ExitStack) -> None:
        self.bench = bench
        self._stack = stack
        self._bridge()

    def _bridge(self) -> None:
        """Make e0 a port of a bridge that has its addresses."""
        self.ip(
            "address flush dev e0",
            f"link add br0 address {NEAR_MAC} type bridge forward_delay 0",
            "link set e0 master br0",
            "link set br0 up",
            f"address add {HOST}/24 dev br0",
            f"neighbour add 10.77.0.250 lladdr {FAR_MAC} dev br0",
            f"neighbour add {RECEIVER} lladdr {FAR_MAC} dev br0",
        )

    def ip(self, *lines: str, inside: str = "") -> None:
        """Carry out commands of ip(8) in the host's namespace, or in a VM's."""
        command = ["ip", "-n", inside or self.bench.near, "-batch", "-"]
        subprocess.run(command, input="\n".join(lines), text=True, check=True, capture_output=True)

    def tc(self, words: str) -> str:
        """Return what a command of tc(8) prints about the host's interfaces."""
        command = ["tc", "-n", self.bench.near, *words.split()]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def named(self, name: str) -> str:
        """Return the name of a VM's namespace."""
        return f"{self.bench.near}-{name}"

    def add(self, name: str, address: str, mac: str = "") -> None:
        """Start a VM whose link ends at the interface NAME0 of the host."""
        space = self.named(name)
        namespaces.remove(space)
        namespaces.create(space)
        self._stack.callback(namespaces.remove, space)
        self.plug(name)
        self.ip(
            f"link set v0 address {mac}" if mac else "link set lo up",
            "link set v0 up",
            f"address add {address}/24 dev v0",
            f"neighbour add {RECEIVER} lladdr {FAR_MAC} dev v0",
            inside=space,
        )

    def plug(self, name: str) -> None:
        """Make the VM's link."""
        self.ip(
            f"link add {name}0 type veth peer name v0 netns {self.named(name)}",
            f"link set {name}0 master br0",
            f"link set {name}0 up",
        )

    def send(
        self, name: str, source: str, rate: int, size: int = PAYLOAD, to: str = RECEIVER
    ) -> "subprocess.Popen[bytes]":
        """Have a VM, or the host itself ("host"), send so many datagrams a second."""
        words = (source, to, str(rate), str(size), "0", DEEP_ROOM)
        space = self.bench.near if name == "host" else self.named(name)
        script = SENDER if size <= PAYLOAD else JOINED
        process = subprocess.Popen(
            ["ip", "netns", "exec", space, sys.executable, "-c", script, *words]
        )
        self._stack.callback(_end, process)
        return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


class Queues:
    """The queues of VMs behind the closed gate to the receiver's host, filled before it opens."""

    def __init__(self, vms: Vms, stand_in: StandIn, running: Running) -> None:
        self._vms, self._stand_in, self._running = vms, stand_in, running
        self._capture = vms.bench.capture()
        self.filling: tuple[Mode, Permit] | tuple[Mode] = (Mode.CLOSED,)
        """How the gate is while queues are filled; a closed one cuts all GSO packets."""

    def fill(self, **senders: tuple[str, int]) -> None:
        """Have VMs send from an address, datagrams of a size, until the queue of each is deep.

        One after the other: together, a fast one could have all of what is to wait for both.
        """
        for name, (address, size) in senders.items():
            need = self._settled_backlog() + (DEEP_BYTES if size >= PAYLOAD else DEEP_SMALL_BYTES)
            process = self._vms.send(name, address, FAST * PAYLOAD // size, size)
            self._stand_in.keep_until(lambda: self._backlog() > need, *self.filling)  # noqa: B023  called at once
            _end(process)
        self._stand_in.keep_until(lambda: not self._capture.take(0.1), Mode.CLOSED)

    def open(self, frames: int, rate_bps: int) -> "Counter[str]":
        """Open the gate until so many datagrams have arrived; return how many of them by source.

        Those that arrive until this program sees that are left out: a queue may have ended there.
        """
        sources: list[str] = []

        def enough() -> bool:
            sources.extend(source for _, _, source in self._capture.take())
            return len(sources) >= frames

        self._stand_in.keep_until(enough, Mode.RATE, Permit(1, rate_bps))
        return Counter(sources[:frames])

    def _settled_backlog(self) -> int:
        """Return what waits, as published after this call."""
        since_ns = time.monotonic_ns()

        def fresh() -> bool:
            return self._running.statistics().updated_ns > since_ns

        self._stand_in.keep_until(fresh, *self.filling)
        return self._backlog()

    def _backlog(self) -> int:
        rows = self._running.statistics().rows
        return sum(row["backlog_bytes"] for row in rows if row["host"] == 1)


@contextmanager
def vms_rig(prefix: str) -> Iterator[Vms]:
    """Yield a rig with a bridge, and remove it with its VMs."""
    with rig(prefix) as bench, ExitStack() as stack:
        bench.classifier = "bpf"
        yield Vms(bench, stack)
