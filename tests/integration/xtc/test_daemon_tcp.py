"""A router in the kernel, set up as its operator has it, with TCP of iperf3: held in real packets.

Nothing is switched off beforehand: offloads are as the kernel sets them for a veth.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from conftest import Daemon
from pyroute2 import IPRoute, netns
from support.holding import check_held, watch
from support.rates import between, read
from support.waiting import eventually

from xtc.actuator.factory import probe
from xtc.kernel.namespaces import in_namespace
from xtc.kernel.offload import gro, tso
from xtc.measure.meter import Counters, parse

IPERF: Final = shutil.which("iperf3")
pytestmark = [
    pytest.mark.root,
    pytest.mark.external,
    pytest.mark.skipif(IPERF is None, reason="iperf3 is missing: apt install iperf3"),
    pytest.mark.usefixtures("deadline"),
]

SOURCE, ROUTER, SINK = "xtctcp-src", "xtctcp-vr", "xtctcp-dst"
ENDS: Final = ("tcp0", "tcp1")
"""The router's interfaces; kernel threads are named by them."""
SETPOINT: Final = 5e3
SETTLING, WATCHED = 5, 12
"""Of the daemon's ticks."""
LARGEST_FRAME: Final = 1514


def path(name: str) -> str:
    return f"/run/netns/{name}"


@pytest.fixture
def line() -> Iterator[None]:
    """source s0 -- tcp0 router tcp1 -- d0 sink."""
    try:
        for name in (SOURCE, ROUTER, SINK):
            netns.create(name)
        join(SOURCE, "s0", "10.7.1.2", ENDS[0], "10.7.1.1")
        join(SINK, "d0", "10.7.2.2", ENDS[1], "10.7.2.1")
        forward = Path("/proc/sys/net/ipv4/ip_forward")
        in_namespace(path(ROUTER), lambda: forward.write_text("1"))
        yield
    finally:
        for name in (SOURCE, ROUTER, SINK):
            if Path(path(name)).exists():
                netns.remove(name)


def join(end: str, far: str, address: str, near: str, gateway: str) -> None:
    def make() -> None:
        with IPRoute() as route:
            route.link("add", ifname=far, kind="veth", peer={"ifname": near, "net_ns_fd": ROUTER})

    in_namespace(path(end), make)
    in_namespace(path(end), partial(bring_up, far, address))
    in_namespace(path(ROUTER), partial(bring_up, near, gateway))
    in_namespace(path(end), partial(route_by, gateway))


def bring_up(name: str, address: str) -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname=name)[0]
        route.link("set", index=index, state="up")
        route.addr("add", index=index, address=address, prefixlen=24)


def route_by(gateway: str) -> None:
    with IPRoute() as route:
        route.route("add", dst="default", gateway=gateway)


@contextmanager
def inside(name: str, *command: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a program in a namespace while the test goes on."""
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(["ip", "netns", "exec", name, *command], **output) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def holding(folder: Path, pid: int) -> Iterator[Daemon]:
    """Run a daemon that counts as the process's namespace does."""
    (folder / "xtc.toml").write_text(
        f"""
[daemon]
period_s = 0.5
state_dir = "{folder}/state"
runtime_dir = "{folder}/run"
proc_net_dev = "/proc/{pid}/net/dev"
[router.edge]
actuator = {{ kind = "deadline", netns = "{path(ROUTER)}", interfaces = ["tcp0", "tcp1"] }}
interfaces = ["tcp0", "tcp1"]
side = "router"
"""
    )
    command = [sys.executable, "-m", "xtc", "run", "--config", str(folder / "xtc.toml")]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            daemon = Daemon(process, folder)
            daemon.wait_until_ready()
            yield daemon
            daemon.client.close()
        finally:
            process.kill()


def counters(name: str, interface: str) -> Counters:
    raw = in_namespace(path(name), Path("/proc/thread-self/net/dev").read_bytes)
    return parse(raw)[interface]


def arrived() -> int:
    """Return the packets that the router has sent, as its neighbours received them."""
    return counters(SOURCE, "s0").rx_packets + counters(SINK, "d0").rx_packets


@pytest.mark.usefixtures("line")
@pytest.mark.parametrize("flows", [1, 4])
def test_tcp_is_held_in_packets_as_they_are_on_the_wire(tmp_path: Path, flows: int) -> None:
    before = in_namespace(path(SOURCE), partial(tso, "s0"))
    assert before, "offloads are off, or there is nothing to test"
    with inside(ROUTER, "sleep", "600") as counted, inside(SINK, "iperf3", "-s"):
        eventually(listens)
        client = ["iperf3", "-c", "10.7.2.2", "-t", "600", "-P", str(flows)]
        with inside(SOURCE, *client), holding(tmp_path, counted.pid) as daemon:
            daemon.hold(edge=SETPOINT)
            daemon.wait_until_held("edge")
            watch(daemon.runtime, SETTLING)
            first, sent = read(arrived), counters(ROUTER, ENDS[1])
            seen = watch(daemon.runtime, WATCHED)
            rate, now = between(first, read(arrived)), counters(ROUTER, ENDS[1])
            check_held(seen, {"edge": rate}, 0.05, edge=SETPOINT)
            packets = now.tx_packets - sent.tx_packets
            assert (now.tx_bytes - sent.tx_bytes) / packets <= LARGEST_FRAME
            daemon.stop()
    assert in_namespace(path(SOURCE), partial(tso, "s0")) == before
    assert not in_namespace(path(ROUTER), partial(gro, ENDS[0]))


def listens() -> bool:
    """Whether the server of iperf3 listens (proc_net_tcp: port 5201, state 0A)."""
    sockets = in_namespace(path(SINK), sockets_of_thread)
    return any(":1451 " in line and " 0A " in line for line in sockets.splitlines())


def sockets_of_thread() -> str:
    return "".join(Path(f"/proc/thread-self/net/{kind}").read_text() for kind in ("tcp", "tcp6"))


def test_this_host_can() -> None:
    assert probe().deadline is None
