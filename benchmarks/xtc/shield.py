"""Cost of a dropped packet to the host, in nanoseconds, by the way it is dropped.

    python -m benchmarks.xtc.shield                        # as root; needs clang and libbpf-dev
    python -m benchmarks.xtc.shield --bridge               # the flood comes in by another port
    python -m benchmarks.xtc.shield --json results.json    # every round, for the table's raw data

One sender floods a router's veth with UDP packets of 64 bytes, directly or, with --bridge, from
another namespace through a port of the host's bridge. All ways take turns, round by round, so that
changes of the machine affect all of them. The benchmark measures the CPU time of the sender and of
the softirq thread of its CPU, per packet; "beyond" is that without the packet's cost up to clsact
("path"), which no way on this interface can save.

ways: none     no limit; the router drops all, as nothing is routed
      path     dropped by clsact without a decision
      shield   the shield (xtc/shield), a limit of 1 packet/s
      tbf      the queueing discipline (xtc/shield/tbf.py), 1 packet/s
      xdp      the shield's decision by native XDP at the router's own end
      port     dropped by clsact without a decision where the flood comes in (with --bridge)
"""

import argparse
import ctypes
import json
import os
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeVar

from pyroute2 import IPRoute, netns

from common.arguments import whole_number
from common.units import PacketsPerSecond
from xtc.kernel import bpf, clsact
from xtc.kernel.clsact import Direction
from xtc.kernel.namespaces import in_namespace
from xtc.shield import filters
from xtc.shield import interface as product
from xtc.shield.bucket import in_packets
from xtc.shield.exemptions import DEFAULT, Exemptions
from xtc.shield.tbf import Limiter

HOST, ROUTER, FAR = (f"xtcsb{os.getpid()}-{name}" for name in ("host", "router", "far"))
SLOW: Final = PacketsPerSecond(1)
BATCH: Final = 64
NATIVE: Final = 1 << 2  # XDP_FLAGS_DRV_MODE
SOURCE: Final = Path(__file__).with_suffix(".bpf.c")
WAYS: Final = ("none", "path", "shield", "tbf", "xdp", "port")

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Result:
    """One way: nanoseconds of CPU a packet, for every round."""

    way: str
    rounds: list[float]

    @property
    def median(self) -> float:
        """The middle of the rounds."""
        return statistics.median(self.rounds)


class _Header(ctypes.Structure):
    """``struct msghdr``."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.c_void_p),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    """``struct mmsghdr``."""

    _fields_ = (("header", _Header), ("sent", ctypes.c_uint32))


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Sender:
    """Send batches of one UDP packet; packets that a limit drops count as sent (udp(7))."""

    def __init__(self) -> None:
        self._payload = ctypes.create_string_buffer(22)
        self._vector = _Vector(ctypes.addressof(self._payload), 22)
        one = _Header(vectors=ctypes.addressof(self._vector), vector_count=1)
        self._batch = (_Message * BATCH)(*([_Message(one)] * BATCH))
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(("10.9.9.9", 9))
        self._sendmmsg = ctypes.CDLL(None, use_errno=True).sendmmsg

    def send(self, packets: int) -> None:
        """Send a number of packets, rounded down to whole batches."""
        for _ in range(packets // BATCH):
            if self._sendmmsg(self._socket.fileno(), self._batch, BATCH, 0) != BATCH:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "sendmmsg")


def main() -> None:
    """Measure all ways in turns and print a table."""
    options = _options()
    ways = [way for way in options.ways if way != "port" or options.bridge]
    sender = FAR if options.bridge else HOST
    with tempfile.TemporaryDirectory() as folder, _veth(bridge=options.bridge):
        compiled = _compiled(Path(folder))
        steps = _ways(compiled)
        rounds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way in ways:
                rounds[way].append(_round(*steps[way], sender, options.packets))
    results = [Result(way, rounds[way]) for way in ways]
    _print(results)
    if options.json:
        kernel = f"{os.uname().sysname} {os.uname().release}"
        found = {"kernel": kernel, "packets": options.packets, "at": time.time()}
        found["bridge"] = options.bridge
        raw = found | {"ways": [asdict(result) for result in results]}
        options.json.write_text(json.dumps(raw, indent=2) + "\n")


def _ways(compiled: Path) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Return the set-up and removal of each way, in the host's namespace."""
    shield, tbf = product.Shield(), Limiter()
    return {
        "none": (lambda: None, lambda: None),
        "path": (
            lambda: _attach_first(compiled, "v0", Direction.EGRESS),
            lambda: clsact.remove_qdisc(socket.if_nametoindex("v0")),
        ),
        "port": (
            lambda: _attach_first(compiled, "p0", Direction.INGRESS),
            lambda: clsact.remove_qdisc(socket.if_nametoindex("p0")),
        ),
        "shield": (lambda: shield.limit("v0", SLOW), lambda: shield.lift("v0")),
        "tbf": (lambda: tbf.limit("v0", SLOW), lambda: tbf.lift("v0")),
        "xdp": (lambda: _attach_xdp(compiled), _detach_xdp),
    }


def _round(
    set_up: Callable[[], object], take_down: Callable[[], object], sender: str, packets: int
) -> float:
    """Return the nanoseconds of CPU a packet of one round."""
    _inside(HOST, set_up)
    try:
        return _inside(sender, lambda: _measured(packets))
    finally:
        _inside(HOST, take_down)


def _measured(packets: int) -> float:
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    sender = Sender()
    sender.send(20 * BATCH)
    before = time.thread_time_ns() + _softirq_ns(cpu)
    sender.send(packets)
    spent = time.thread_time_ns() + _softirq_ns(cpu) - before
    return spent / (packets // BATCH * BATCH)


def _softirq_ns(cpu: int) -> int:
    """Return the CPU time of a CPU's softirq thread."""
    for entry in Path("/proc").glob("[0-9]*/comm"):
        try:
            if entry.read_text().strip() == f"ksoftirqd/{cpu}":
                return int(entry.with_name("schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return 0


def _attach_first(compiled: Path, interface: str, direction: Direction) -> None:
    index = socket.if_nametoindex(interface)
    clsact.make_qdisc(index)
    clsact.attach(index, direction, bpf.load(compiled, "drop_all"), filters.LIMIT)


def _attach_xdp(compiled: Path) -> None:
    program = bpf.load(compiled, "decide_xdp")
    program.maps["exempt"].write(0, Exemptions.parse(DEFAULT).pack())
    program.maps["terms"].write(0, in_packets(SLOW).pack())
    _inside(ROUTER, lambda: bpf.call("bpf_xdp_attach", _peer(), program.fd, NATIVE, None))


def _detach_xdp() -> None:
    _inside(ROUTER, lambda: bpf.call("bpf_xdp_detach", _peer(), NATIVE, None))


def _peer() -> int:
    return socket.if_nametoindex("r0")


def _inside(name: str, work: Callable[[], Outcome]) -> Outcome:
    return in_namespace(f"/run/netns/{name}", work)


def _compiled(folder: Path) -> Path:
    built, includes = folder / "benchmark.bpf.o", filters.OBJECT.parent
    words = ["clang", "-O2", "-g", "-target", "bpf", "-mcpu=v2", f"-I{includes}"]
    words += [f"-I/usr/include/{os.uname().machine}-linux-gnu", "-c", str(SOURCE), "-o", str(built)]
    subprocess.run(words, check=True)
    return built


@contextmanager
def _veth(*, bridge: bool) -> Iterator[None]:
    try:
        for name in (HOST, ROUTER, FAR):
            netns.create(name)
        _inside(HOST, lambda: _link("v0", "r0", ROUTER))
        _inside(ROUTER, lambda: _bring_up("r0"))
        if bridge:
            _inside(HOST, lambda: _link("p0", "f0", FAR))
            _inside(HOST, _make_bridge)
            _inside(FAR, lambda: _address("f0"))
        else:
            _inside(HOST, lambda: _address("v0"))
        yield
    finally:
        for name in (HOST, ROUTER, FAR):
            if Path(f"/run/netns/{name}").exists():
                netns.remove(name)


def _link(near: str, far: str, namespace: str) -> None:
    peer = {"ifname": far, "net_ns_fd": namespace}
    with IPRoute() as route:
        route.link("add", ifname=near, kind="veth", peer=peer)
    _bring_up(near)


def _make_bridge() -> None:
    with IPRoute() as route:
        route.link("add", ifname="br0", kind="bridge")
        bridge = _bring_up("br0")
        for port in ("p0", "v0"):
            route.link("set", index=socket.if_nametoindex(port), master=bridge)


def _address(interface: str) -> None:
    """Route the router's packets by an interface."""
    router = _inside(ROUTER, _hardware_address)
    with IPRoute() as route:
        index = _bring_up(interface)
        route.addr("add", index=index, address="10.9.0.2", prefixlen=16)
        route.neigh("add", dst="10.9.9.9", lladdr=router, ifindex=index, state="permanent")


def _hardware_address() -> str:
    with IPRoute() as route:
        return str(route.link("get", ifname="r0")[0].get_attr("IFLA_ADDRESS"))


def _bring_up(name: str) -> int:
    with IPRoute() as route:
        index = socket.if_nametoindex(name)
        route.link("set", index=index, state="up")
        return index


def _print(results: list[Result]) -> None:
    path = next((result.median for result in results if result.way == "path"), None)
    print(f"{'way':8} {'ns a packet':>12} {'least':>7} {'most':>7} {'beyond':>7}")
    for one in results:
        beyond = "-" if path is None or one.way == "path" else f"{one.median - path:.0f}"
        least, most = min(one.rounds), max(one.rounds)
        print(f"{one.way:8} {one.median:12.0f} {least:7.0f} {most:7.0f} {beyond:>7}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=whole_number(1), default=15)
    parser.add_argument(
        "--packets", type=whole_number(1), default=100_000, help="of each way in each round"
    )
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--bridge", action="store_true", help="send through the host's bridge")
    parser.add_argument("--json", type=Path, help="file for every round's result")
    return parser.parse_args()


if __name__ == "__main__":
    main()
