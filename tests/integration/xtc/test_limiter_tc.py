"""The limiter on a real veth in namespaces of its own: rate, lifting, foreign qdiscs."""

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from pyroute2 import IPRoute, netns
from support.limits import check_limited, check_unlimited, passing
from support.paced import Paced
from support.waiting import eventually

from common.units import PacketsPerSecond
from xtc.daemon.build import release_all
from xtc.errors import Gone, Permanent
from xtc.kernel.namespaces import in_namespace
from xtc.shield.tbf import Limiter
from xtc.state.journal import Journal, Ledger, boot_id

pytestmark = pytest.mark.root

HOST, ROUTER = "xtcact-lim-host", "xtcact-lim-router"
Result = TypeVar("Result")


def path(name: str) -> str:
    return f"/run/netns/{name}"


def on_host(work: Callable[[], Result]) -> Result:
    return in_namespace(path(HOST), work)


@pytest.fixture(autouse=True)
def host() -> Iterator[None]:
    try:
        netns.create(HOST)
        netns.create(ROUTER)
        on_host(make_veth)
        in_namespace(path(ROUTER), lambda: bring_up("r0"))
        yield
    finally:
        for name in (HOST, ROUTER):
            if Path(path(name)).exists():
                netns.remove(name)


def make_veth() -> None:
    with IPRoute() as route:
        peer = {"ifname": "r0", "address": "02:00:00:00:09:01", "net_ns_fd": ROUTER}
        route.link("add", ifname="v0", kind="veth", peer=peer)
        index = bring_up("v0")
        route.addr("add", index=index, address="10.9.0.2", prefixlen=24)
        address = "02:00:00:00:09:01"
        route.neigh("add", dst="10.9.0.1", lladdr=address, ifindex=index, state="permanent")


def bring_up(name: str) -> int:
    with IPRoute() as route:
        index = int(route.link_lookup(ifname=name)[0])
        route.link("set", index=index, state="up")
        return index


def received() -> int:
    return in_namespace(path(ROUTER), lambda: packets("/proc/thread-self/net/dev"))


def packets(file: str) -> int:
    line = next(line for line in Path(file).read_text().splitlines() if "r0:" in line)
    return int(line.partition(":")[2].split()[1])


@pytest.fixture
def flood(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Paced]:
    rate, sizes = request.param
    sender = Paced(tmp_path / "sender")
    command = sender.command(("", "10.9.0.1"), rate, sizes, path(HOST))
    with subprocess.Popen(command) as process:
        eventually(lambda: received() > 1000)
        assert process.poll() is None
        yield sender
        process.kill()


def root_qdisc() -> tuple[str, int]:
    with IPRoute() as route:
        index = route.link_lookup(ifname="v0")[0]
        root = route.get_qdiscs(index=index)[0]
        return root.get_attr("TCA_KIND"), root["handle"]


def add_foreign_qdisc() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="v0")[0]
        route.tc("add", "pfifo", index, handle="8:", limit=77)


@pytest.mark.parametrize("flood", [(20_000, (22,)), (20_000, (22, 1400))], indirect=True)
def test_a_flood_of_20_kp_s_is_limited_to_5_kp_s_whatever_its_sizes(flood: Paced) -> None:
    limiter = Limiter()
    check_unlimited(passing(received, flood, 0.5))

    on_host(lambda: limiter.limit("v0", PacketsPerSecond(5_000)))
    check_limited(passing(received, flood, 2), 5_000)
    assert on_host(lambda: limiter.current("v0")) == pytest.approx(5_000, rel=1e-3)

    on_host(lambda: limiter.limit("v0", PacketsPerSecond(10_000)))
    check_limited(passing(received, flood, 2), 10_000)

    on_host(lambda: limiter.lift("v0"))
    check_unlimited(passing(received, flood, 0.5))


def test_lifting_puts_the_default_qdisc_back_and_may_be_repeated() -> None:
    limiter = Limiter()
    before = on_host(root_qdisc)
    on_host(lambda: limiter.limit("v0", PacketsPerSecond(1_000)))
    assert on_host(root_qdisc) == ("tbf", 0x7C000000)
    for _ in range(2):
        on_host(lambda: limiter.lift("v0"))
        assert on_host(root_qdisc) == before
        assert on_host(lambda: limiter.current("v0")) is None


def test_a_foreign_qdisc_is_refused_and_left_alone() -> None:
    limiter = Limiter()
    on_host(add_foreign_qdisc)
    with pytest.raises(Permanent, match="qdisc pfifo 8: belongs to another program"):
        on_host(lambda: limiter.limit("v0", PacketsPerSecond(1_000)))
    on_host(lambda: limiter.lift("v0"))
    assert on_host(root_qdisc) == ("pfifo", 0x80000)
    assert on_host(lambda: limiter.current("v0")) is None


def test_an_interface_that_is_gone_is_said_to_be_and_needs_no_lifting() -> None:
    limiter = Limiter()
    with pytest.raises(Gone, match="v9"):
        on_host(lambda: limiter.limit("v9", PacketsPerSecond(1_000)))
    with pytest.raises(Gone, match="v9"):
        on_host(lambda: limiter.current("v9"))
    on_host(lambda: limiter.lift("v9"))


def rename(old: str, new: str) -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname=old)[0]
        route.link("set", index=index, state="down")
        route.link("set", index=index, ifname=new)


def kinds() -> list[str]:
    with IPRoute() as route:
        return [qdisc.get_attr("TCA_KIND") for qdisc in route.get_qdiscs()]


def test_a_limit_is_lifted_from_an_interface_that_was_renamed() -> None:
    limiter = Limiter()
    on_host(lambda: limiter.limit("v0", PacketsPerSecond(5000)))
    on_host(lambda: rename("v0", "w0"))
    assert "tbf" in on_host(kinds)
    on_host(lambda: limiter.lift("v0"))
    assert "tbf" not in on_host(kinds)


def test_a_process_of_its_own_lifts_it_too(tmp_path: Path) -> None:
    on_host(lambda: Limiter().limit("v0", PacketsPerSecond(5000)))
    with Journal(tmp_path) as journal:
        number = on_host(lambda: socket.if_nametoindex("v0"))
        limits = {"a": ("v0",)}
        journal.store(Ledger(boot_id(), limits=limits, numbers={"v0": number}))
    on_host(lambda: rename("v0", "w0"))
    assert on_host(lambda: release_all(tmp_path)) == {}
    assert "tbf" not in on_host(kinds)
