"""GRO that joins nothing: real TCP through a forwarding namespace with the usual offloads."""

import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from pyroute2 import IPRoute, netns
from support.waiting import eventually

from xtc.kernel import forwarding
from xtc.kernel.joining import (
    SINGLE,
    Joining,
    gso_segments,
    joining,
    keep_single,
    set_gso_segments,
    set_joining,
)
from xtc.kernel.namespaces import in_namespace
from xtc.meter import parse

pytestmark = pytest.mark.root
SENDER, ROUTER, RECEIVER = "xtcjn-sender", "xtcjn-router", "xtcjn-receiver"
SIZE = 2_000_000
SEGMENT = 1460
SEGMENTS = 65535
"""What a veth hands over at most, as the kernel sets it."""
UDP_SEGMENT = 103  # udp(7); not in Python's socket module
Result = TypeVar("Result")


def inside(name: str, work: Callable[[], Result]) -> Result:
    return in_namespace(f"/run/netns/{name}", work)


@pytest.fixture(autouse=True)
def line() -> Iterator[None]:
    """sender s0 -- r0 router r1 -- d0 receiver, with threaded NAPI at the router."""
    try:
        for name in (SENDER, ROUTER, RECEIVER):
            netns.create(name)
        link(SENDER, "s0", "10.9.1.2", "r0", "10.9.1.1")
        link(RECEIVER, "d0", "10.9.2.2", "r1", "10.9.2.1")
        inside(ROUTER, lambda: Path("/proc/sys/net/ipv4/ip_forward").write_text("1"))
        inside(SENDER, lambda: route_by("10.9.1.1"))
        inside(RECEIVER, lambda: route_by("10.9.2.1"))
        usual = {name: inside(ROUTER, partial(joining, name)) for name in ("r0", "r1")}
        inside(ROUTER, lambda: forwarding.enable(("r0", "r1")))
        for name, stood in usual.items():  # what is tested here is how they are kept single
            inside(ROUTER, partial(set_joining, name, stood))
        inside(SENDER, lambda: set_gso_segments("s0", SEGMENTS))
        yield
    finally:
        for name in (SENDER, ROUTER, RECEIVER):
            if Path(f"/run/netns/{name}").exists():
                netns.remove(name)


def link(end: str, far: str, far_address: str, near: str, near_address: str) -> None:
    def make() -> None:
        with IPRoute() as route:
            route.link("add", ifname=far, kind="veth", peer={"ifname": near, "net_ns_fd": ROUTER})

    inside(end, make)
    inside(end, lambda: bring_up(far, far_address))
    inside(ROUTER, lambda: bring_up(near, near_address))


def bring_up(name: str, address: str) -> None:
    with IPRoute() as route:
        index = socket.if_nametoindex(name)
        route.link("set", index=index, state="up")
        route.addr("add", index=index, address=address, prefixlen=24)


def route_by(gateway: str) -> None:
    with IPRoute() as route:
        route.route("add", dst="default", gateway=gateway)


def counted() -> tuple[int, int]:
    """Return the packets that the router has received from the sender, and sent on."""
    raw = inside(ROUTER, Path("/proc/thread-self/net/dev").read_bytes)
    found = parse(raw)
    return found["r0"].rx_packets, found["r1"].tx_packets


def transfer() -> tuple[int, int]:
    """Send by TCP; return how many packets the router received and sent on meanwhile."""
    before = counted()
    with inside(RECEIVER, lambda: socket.create_server(("10.9.2.2", 0))) as server:
        taker = threading.Thread(target=take, args=(server,))
        taker.start()
        port = server.getsockname()[1]
        with inside(SENDER, lambda: socket.create_connection(("10.9.2.2", port))) as out:
            out.sendall(bytes(SIZE))
            taker.join()
    after = counted()
    return after[0] - before[0], after[1] - before[1]


def take(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        left = SIZE
        while left > 0:
            left -= len(connection.recv(1 << 18))


def test_a_router_that_keeps_packets_single_counts_what_it_forwards() -> None:
    received, sent = transfer()
    assert received >= SIZE // SEGMENT
    assert sent < received / 2, "GRO joins by default, or there is nothing to test"

    inside(ROUTER, lambda: [keep_single(name) for name in ("r0", "r1")])
    received, sent = transfer()
    assert sent >= SIZE // SEGMENT
    assert abs(sent - received) <= 4  # neighbours are asked for on each link by itself


def test_datagrams_that_a_sender_joined_are_cut_before_they_reach_the_router() -> None:
    inside(ROUTER, lambda: [keep_single(name) for name in ("r0", "r1")])
    before = counted()[0]
    inside(SENDER, send_datagrams)
    eventually(lambda: counted()[0] - before >= 50)
    assert counted()[0] - before < 100, "the sender joins nothing, or there is nothing to test"

    usual = inside(SENDER, lambda: gso_segments("s0"))
    inside(SENDER, lambda: set_gso_segments("s0", 1))
    before = counted()[0]
    inside(SENDER, send_datagrams)
    eventually(lambda: counted()[0] - before >= 1000)
    inside(SENDER, lambda: set_gso_segments("s0", usual))
    assert inside(SENDER, lambda: gso_segments("s0")) == usual > 1


def send_datagrams() -> None:
    """Send 1,000 datagrams of UDP, joined by 20."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 100)
        for _ in range(50):
            out.sendto(bytes(2000), ("10.9.2.2", 9))


def test_what_stood_before_is_put_back() -> None:
    usual = inside(ROUTER, lambda: joining("r0"))
    assert usual.size >= 65536
    own = Joining(150_000, None if usual.ipv4_size is None else 30_000)
    inside(ROUTER, lambda: set_joining("r0", own))
    before = inside(ROUTER, lambda: keep_single("r0"))
    assert before == own
    assert inside(ROUTER, lambda: joining("r0")).size == SINGLE
    inside(ROUTER, lambda: set_joining("r0", before))
    assert inside(ROUTER, lambda: joining("r0")) == own


def test_an_interface_that_is_not_there_is_said_not_to_be() -> None:
    with pytest.raises(OSError, match="No such device") as raised:
        inside(ROUTER, lambda: joining("r9"))
    assert raised.value.filename == "r9"
