"""A router as its operator has it, with programs of other projects: bird's OSPF, trafgen, ping.

Dom0 bridges between the router and its neighbours. Offloads are as the kernel sets them.

    source s0 ----.                                         .-- d0 sink
                  br0 -- edge.0 = e0  edge  e1 = edge.1 -- br1
    neighbour n0 -'

The neighbour's hellos enter the router by the same queue as a flood.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from lab import namespaces
from lab.plan import DOM0, namespace
from lab.processes import Place
from lab.topology import Lab
from support.waiting import eventually
from support.weights import make_punctual
from xtc.actuator.deadline import share_of
from xtc.kernel import forwarding
from xtc.kernel.namespaces import in_namespace
from xtc.kernel.scheduling import SCHED_DEADLINE, get_policy
from xtc.measure.meter import parse

ROUTER: Final = "edge"
INNER, OUTER = ("e0", "e1"), ("edge.0", "edge.1")
"""The router's interfaces, and the host's ends of its links."""


class End(NamedTuple):
    """A neighbour's interface, the side it is on, and its number on that side's network."""

    interface: str
    side: int
    number: int

    @property
    def address(self) -> str:
        """Its address; the router is number 1 on each side."""
        return f"10.8.{self.side}.{self.number}"


ENDS: Final = {"source": End("s0", 0, 2), "neighbour": End("n0", 0, 3), "sink": End("d0", 1, 2)}
SPEAKERS: Final = {ROUTER: INNER[0], "neighbour": ENDS["neighbour"].interface}
FRAME: Final = 60
"""Bytes of a frame of 64 without its checksum, as the kernel counts."""
UNBOUNDED: Final = "100000000pps"
FULL, LOST = "changed state from Loading to Full", "changed state from Full to"
BIRD: Final = """
log "{log}" all;
router id {id};
protocol device {{}}
protocol kernel {{ ipv4 {{ export all; }}; }}
protocol ospf v2 {{
  debug {{ events }};
  area 0 {{
    interface "{interface}" {{ type ptp; hello 2; dead 8; }};
    interface "e1" {{ stub; }};
  }};
}}
"""
ECHO: Final = re.compile(r"^\[([0-9.]+)\] .* time=([0-9.]+) ms", re.MULTILINE)


class Echo(NamedTuple):
    """An answer to a ping: when both were under way, in monotonic seconds."""

    sent: float
    answered: float


class Pings(NamedTuple):
    """Answers of one time: of the sink behind the router, and of the neighbour before it.

    Both ways lead through the host's bridge, its softirqs and the same sender. Only one leads
    through the router, so what delays the other is not the router's cap.
    """

    across: list[Echo]
    beside: list[Echo]


class Site:
    """The router with its neighbours, in namespaces that end with the lab."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        """Wire everything to the lab's Dom0."""
        self._prefix, self._folder = lab.prefix, folder
        for name in (ROUTER, *ENDS):
            namespaces.create(self._name(name))
        namespaces.configure(self._name(DOM0), _add_bridges)
        for side, (inner, outer) in enumerate(zip(INNER, OUTER, strict=True)):
            self._join(ROUTER, End(inner, side, 1), outer)
        for name, end in ENDS.items():
            self._join(name, end, f"{name}.x")
            gateway = End("", end.side, 1).address
            namespaces.configure(self._name(name), partial(_route_by, gateway))
        namespaces.write_sysctls(self._name(ROUTER), {"ipv4/ip_forward": 1})

    @property
    def table(self) -> str:
        """The router's table in the daemon's configuration."""
        inner = ", ".join(f'"{name}"' for name in INNER)
        actuator = f'kind = "deadline", netns = "{self._path(ROUTER)}", interfaces = [{inner}]'
        return f'interfaces = ["{ROUTER}.*"]\nactuator = {{ {actuator} }}'

    def left(self) -> int:
        """Return the packets that have left the router, as its neighbours received them."""
        return sum(self._received(name, end.interface) for name, end in ENDS.items())

    @contextmanager
    def routing(self) -> Iterator[None]:
        """Run bird in the router and at its neighbour, from the first adjacency on."""
        with self._bird(ROUTER), self._bird("neighbour"):
            eventually(lambda: all(FULL in self._log(name).read_text() for name in SPEAKERS))
            yield

    def adjacencies_lost(self) -> list[str]:
        """Return what birds have logged of adjacencies that they had and lost."""
        lines = (line for name in SPEAKERS for line in self._log(name).read_text().splitlines())
        return [line for line in lines if LOST in line]

    @contextmanager
    def flood(self, rate: float) -> Iterator[None]:
        """Send frames of 64 bytes at a rate, in packets/s, evenly.

        With a rate of its own trafgen sends all packets of a second together. So a queue paces it.
        """
        source, sink = ENDS["source"], ENDS["sink"]
        frame = (
            f"{{ eth(da={self._mac()}), ipv4(saddr={source.address}, daddr={sink.address}, ttl=64),"
            f" udp(sp=9, dp=9), fill(0, {FRAME - 42}) }}"
        )
        pace = ["tbf", "rate", f"{rate * FRAME * 8:.0f}bit", "burst", "6kb", "limit", "1mb"]
        self._run("source", "tc", "qdisc", "replace", "dev", source.interface, "root", *pace)
        options = ["--dev", source.interface, "--qdisc-path", "--rate", UNBOUNDED]
        with self._running("source", "trafgen", *options, frame) as process:
            _unpin(process.pid)
            yield
        self._run("source", "tc", "qdisc", "del", "dev", source.interface, "root")

    def rename(self, inner: str, name: str) -> None:
        """Rename one of the router's interfaces, as its tenant can."""

        def change(ip: Any) -> None:
            ip.link("set", index=ip.link_lookup(ifname=inner)[0], ifname=name)

        namespaces.configure(self._name(ROUTER), change)

    def share(self, inner: str) -> float | None:
        """Return what the kernel caps the thread of an interface at, None where it does not."""
        threads = in_namespace(self._path(ROUTER), partial(forwarding.threads, [inner]))
        policies = [get_policy(tid) for tid in threads[inner]]
        if not policies or any(policy.policy != SCHED_DEADLINE for policy in policies):
            return None
        return sum(map(share_of, policies))

    def ping(self, count: int, interval_s: float) -> "Pings":
        """Ping the sink across the router, and beside it the neighbour, from the source."""
        started = time.time() - time.monotonic()
        options = ["-D", "-n", "-c", str(count), "-i", str(interval_s)]
        with (
            self._running("source", "ping", *options, ENDS["neighbour"].address) as beside,
            self._running("source", "ping", *options, ENDS["sink"].address) as across,
        ):
            for process in (beside, across):
                make_punctual(process.pid)
            texts = [process.communicate()[0] for process in (across, beside)]
        return Pings(*(_echoes(text, started) for text in texts))

    def _name(self, name: str) -> str:
        return namespace(self._prefix, name)

    def _path(self, name: str) -> str:
        return namespaces.path(self._name(name))

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _join(self, name: str, end: End, outer: str) -> None:
        peer = {"ifname": end.interface, "net_ns_fd": self._name(name)}
        namespaces.configure(self._name(DOM0), partial(_bridge, outer, peer, end.side))
        namespaces.configure(self._name(name), partial(_bring_up, end.interface, end.address))

    def _received(self, name: str, interface: str) -> int:
        raw = in_namespace(self._path(name), Path("/proc/thread-self/net/dev").read_bytes)
        return parse(raw)[interface].rx_packets

    def _mac(self) -> str:
        def read(ip: Any) -> str:
            return str(ip.link("get", ifname=INNER[0])[0].get_attr("IFLA_ADDRESS"))

        return namespaces.configure(self._name(ROUTER), read)

    @contextmanager
    def _bird(self, name: str) -> Iterator[None]:
        files = {part: self._folder / f"{name}.{part}" for part in ("conf", "ctl", "pid")}
        number = list(SPEAKERS).index(name) + 1
        values = {"log": self._log(name), "id": f"10.8.9.{number}", "interface": SPEAKERS[name]}
        files["conf"].write_text(BIRD.format(**values))
        self._log(name).touch()
        options = ["-f", "-c", files["conf"], "-s", files["ctl"], "-P", files["pid"]]
        with self._running(name, "bird", *map(str, options)):
            yield

    def _run(self, name: str, *command: str) -> None:
        subprocess.run(Place(self._path(name)).command(command), check=True)

    @contextmanager
    def _running(self, name: str, *command: str) -> "Iterator[subprocess.Popen[str]]":
        with subprocess.Popen(
            Place(self._path(name)).command(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._folder,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)  # trafgen's children send


def _echoes(text: str, started: float) -> list[Echo]:
    """Read ping's answers; its times are of a clock that was 0 at the time given."""
    found = ((float(at) - started, float(ms) / 1e3) for at, ms in ECHO.findall(text))
    return [Echo(answered - took, answered) for answered, took in found]


def _unpin(pid: int) -> None:
    """Let trafgen's child, which binds itself to a CPU, go elsewhere while that CPU is taken."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    (child,) = map(int, eventually(lambda: children.read_text().split()))
    eventually(lambda: len(os.sched_getaffinity(child)) == 1)
    os.sched_setaffinity(child, os.sched_getaffinity(0))


def _add_bridges(ip: Any) -> None:
    for side in range(len(INNER)):
        ip.link("add", ifname=f"br{side}", kind="bridge")
        ip.link("set", ifname=f"br{side}", state="up")


def _bridge(outer: str, peer: dict[str, str], side: int, ip: Any) -> None:
    ip.link("add", ifname=outer, kind="veth", peer=peer)
    (bridge,) = ip.link_lookup(ifname=f"br{side}")
    ip.link("set", ifname=outer, master=bridge, state="up")


def _bring_up(interface: str, address: str, ip: Any) -> None:
    (index,) = ip.link_lookup(ifname=interface)
    ip.link("set", index=index, state="up")
    ip.addr("add", index=index, address=address, prefixlen=24)


def _route_by(gateway: str, ip: Any) -> None:
    ip.route("add", dst="default", gateway=gateway)
