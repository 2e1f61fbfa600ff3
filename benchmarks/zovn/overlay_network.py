"""A running network for `benchmarks.zovn.overlay`: hosts, their switches, a star, containers."""

import operator
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final, Self

from pyroute2 import Ethtool

from benchmarks.zovn import overlay_plan
from benchmarks.zovn.overlay_plan import Container, Request
from lab.errors import ProgramError
from lab.fabric import counters
from lab.fabric.links import HOST_SYSCTLS
from lab.fabric.star import StarFabric, StarHost
from lab.plan import namespace
from lab.programs.processes import Place, environment
from lab.system import namespaces
from lab.system.links import enter_neighbour, index_of, set_up, turn_offloads_off
from lab.traffic.partition import Member
from zovn.errors import SwitchAway
from zovn.switch import control
from zovn.switch.control import SwitchReport

PREFIX: Final = "zoverlay"
INNER: Final = "e0"
QUEUE_PACKETS: Final = 100_000
START_S: Final = 30.0
NICE: Final = -15
_POLL_S: Final = 0.05


@dataclass(frozen=True)
class Lost:
    """What was lost, and what TCP did about it."""

    virtual: int = 0
    """Frames, by the hosts' switches for congestion."""
    physical: int = 0
    """Frames, by the star, or by wires that had no room for them."""
    otherwise: int = 0
    """Frames, by the hosts' switches for other reasons or before them."""
    timeouts: int = 0
    """Of TCP, at the workers."""
    probes: int = 0
    retransmitted: int = 0

    def __add__(self, other: "Lost") -> "Lost":
        return Lost(*map(operator.add, astuple(self), astuple(other)))

    def __sub__(self, other: "Lost") -> "Lost":
        return Lost(*map(operator.sub, astuple(self), astuple(other)))


class Overlay:
    """A running network, as a context manager; leaving it removes all of it."""

    def __init__(self, request: Request, prefix: str = PREFIX) -> None:
        """Build it, and wait until all switches answer."""
        self.request, self.prefix = request, prefix
        self.containers = overlay_plan.containers(request)
        with ExitStack() as stack:
            rates = [request.line_bps] * request.hosts
            self.star = stack.enter_context(
                StarFabric(
                    rates, overlay_plan.buffers(request), delay_s=request.delay_s, prefix=prefix
                )
            )
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="overlay-")))
            for container in self.containers.all:
                self._connect(container)
            started = [(host, self._start(stack, host)) for host in self.star.hosts]
            for host, running in started:
                self._wait(host, running)
            self._stack = stack.pop_all()

    @property
    def top(self) -> Place:
        """The place of the aggregator."""
        return self.member(self.containers.top).place

    def member(self, container: Container) -> Member:
        """Return a container for the workload."""
        return Member(Place(namespaces.path(self._name(container))), container.address)

    def reports(self) -> list[SwitchReport]:
        """Return what all switches say."""
        return [control.status(self._control(host)) for host in self.star.hosts]

    def lost(self) -> Lost:
        """Return what was lost since the start, and what TCP did about it."""
        ports = [port for each in self.reports() for port in each.ports]
        congestion = sum(port.drops["congestion"] for port in ports)
        names = [self._name(each) for each in self.containers.workers]
        found = [counters.tcp_counts(name) for name in names]
        return Lost(
            congestion,
            self.star.counts().lost() + sum(port.counters.get("beyond", 0) for port in ports),
            sum(sum(port.drops.values()) + (port.lost or 0) for port in ports) - congestion,
            sum(each["TCPTimeouts"] for each in found),
            sum(each["TCPLossProbes"] for each in found),
            sum(map(counters.tcp_retransmitted, names)),
        )

    def _name(self, container: Container) -> str:
        return namespace(self.prefix, container.name)

    def _host(self, container: Container) -> str:
        return self.star.netns(self.star.hosts[container.host - 1])

    def _control(self, host: StarHost) -> Path:
        return self.folder / f"{host.name}.sock"

    def _connect(self, container: Container) -> None:
        """Make a container, with an end as docs/howto/zovn-veth.md has it."""
        name, outer = self._name(container), self._host(container)
        namespaces.create(name)
        namespaces.write_sysctls(name, HOST_SYSCTLS)
        peer = {"ifname": INNER, "net_ns_fd": name, "num_tx_queues": 1}
        new: dict[str, Any] = {"ifname": container.port, "kind": "veth", "peer": peer}
        namespaces.configure(outer, lambda ip: ip.link("add", **new))
        turn_offloads_off(name, INNER)
        namespaces.inside(name, _receive_by_napi)
        namespaces.configure(
            outer,
            lambda ip: ip.link("set", index=index_of(ip, container.port), state="up"),
        )
        namespaces.configure(name, lambda ip: self._address(ip, container))

    def _address(self, ip: Any, container: Container) -> None:
        set_up(ip, INNER, container.mac)
        index = index_of(ip, INNER)
        ip.link("set", index=index_of(ip, "lo"), state="up")
        ip.addr("add", index=index, address=container.address, prefixlen=16)
        ip.tc("add", "pfifo", index=index, handle=0x10000, limit=QUEUE_PACKETS)
        for other in self.containers.all:
            if other is not container:
                enter_neighbour(ip, index, other.address, other.mac)

    def _start(self, stack: ExitStack, host: StarHost) -> "subprocess.Popen[bytes]":
        where, settings = self.folder / "locations", self.folder / f"{host.name}.toml"
        where.write_text(overlay_plan.locations(self.request, self.star.hosts))
        text = overlay_plan.settings(self.request, host, str(self._control(host)), str(where))
        settings.write_text(text)
        command = [sys.executable, "-m", "zovn", "switch", "run", str(settings)]
        log = stack.enter_context((self.folder / f"{host.name}.log").open("wb"))
        running = subprocess.Popen(
            self.star.place(host).command(command), stdout=log, stderr=log, env=environment()
        )
        # a switch has a CPU of its own where there are enough
        os.setpriority(os.PRIO_PROCESS, running.pid, NICE)
        stack.callback(running.wait)
        stack.callback(running.terminate)
        return running

    def _wait(self, host: StarHost, running: "subprocess.Popen[bytes]") -> None:
        """Wait until a switch answers.

        Raises:
            ProgramError: it ended, or does not within half a minute.
        """
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and running.poll() is None:
            try:
                control.ports(self._control(host))
            except SwitchAway:
                time.sleep(_POLL_S)
            else:
                return
        log = (self.folder / f"{host.name}.log").read_text()
        raise ProgramError("zovn switch", f"it ended, or does not answer within {START_S:g} s", log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _receive_by_napi() -> None:
    with Ethtool() as ethtool:
        ethtool.set_offload_flag(INNER, "generic-receive-offload", 1)
