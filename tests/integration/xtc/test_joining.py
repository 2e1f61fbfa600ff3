"""GRO that joins nothing: real TCP through a forwarding namespace with the usual offloads."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from pyroute2 import IPRoute, netns
from support.waiting import eventually

from xtc.kernel import forwarding
from xtc.kernel.following import Following
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
from xtc.kernel.offload import gro_list, set_gro_list, set_uso, uso
from xtc.measure.meter import parse

pytestmark = pytest.mark.root
SENDER, ROUTER, RECEIVER = "xtcjn-sender", "xtcjn-router", "xtcjn-receiver"
SIZE = 2_000_000
SEGMENT = 1460
SEGMENTS = 65535
"""What a veth hands over at most, as the kernel sets it."""
UDP_SEGMENT = 103  # udp(7); not in Python's socket module
SOL_PACKET, PACKET_VNET_HDR = 263, 15  # packet(7); not in Python's socket module
GSO_UDP_L4 = 5  # VIRTIO_NET_HDR_GSO_UDP_L4, linux/virtio_net.h
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
        inside(SENDER, lambda: set_uso("s0", on=True))
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
    send_in_bursts(50)
    inside(SENDER, lambda: set_gso_segments("s0", usual))
    assert inside(SENDER, lambda: gso_segments("s0")) == usual > 1


def test_datagrams_that_a_guest_joined_are_cut_before_they_reach_the_router() -> None:
    """A guest's come without a count of segments, so that `gso_max_segs` does not hold for them."""
    inside(SENDER, partial(send_datagrams, 1))  # neighbours know each other from here on
    inside(SENDER, lambda: set_gso_segments("s0", 1))
    for cut in (False, True):
        inside(SENDER, partial(set_uso, "s0", on=not cut))
        before = counted()[0]
        inside(SENDER, send_as_a_guest)
        eventually(lambda: counted()[0] - before >= (200 if cut else 10))  # noqa: B023
        assert cut or counted()[0] - before < 100, "it joins nothing: there is nothing to test"


def test_a_router_whose_tenant_has_gro_chain_packets_is_set_right() -> None:
    """`gro_max_size` bounds what GRO merges, not what it chains (`rx-gro-list`)."""
    inside(ROUTER, lambda: forwarding.enable(("r0", "r1")))
    assert stands()
    inside(ROUTER, lambda: set_gro_list("r0", on=True))
    assert forwarded_datagrams() < 200, "GRO chains nothing, or there is nothing to test"
    assert not stands()

    inside(ROUTER, lambda: forwarding.enable(("r0", "r1")))
    assert forwarded_datagrams() >= 200


def stands() -> bool:
    following = Following(("r0", "r1"))
    return inside(ROUTER, lambda: forwarding.stands(following.current().values()))


def forwarded_datagrams() -> int:
    """Send 200 datagrams, which arrive in bursts of 20; return in how many packets they leave."""
    first = counted()[1]
    send_in_bursts(10)
    counts = [-1]

    def still() -> bool:
        counts.append(counted()[1] - first)
        return counts[-1] == counts[-2]

    eventually(still)
    return counts[-1]


def test_whatever_joins_packets_is_captured_switched_off_and_put_back() -> None:
    inside(ROUTER, lambda: set_gro_list("r0", on=True))
    inside(SENDER, lambda: set_uso("s0", on=True))
    before = inside(ROUTER, lambda: forwarding.capture(("r0",)))
    assert (before[0].gro_list, before[0].peer_uso) == (True, True)
    inside(ROUTER, lambda: forwarding.enable(("r0",)))
    assert not inside(ROUTER, lambda: gro_list("r0"))
    assert not inside(SENDER, lambda: uso("s0"))
    inside(ROUTER, lambda: forwarding.put_back(before))
    assert inside(ROUTER, lambda: gro_list("r0"))
    assert inside(SENDER, lambda: uso("s0"))


def send_as_a_guest() -> None:
    """Send 200 datagrams of UDP, joined by 20, as a virtual machine's network card would."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        out.bind(("s0", 0))
        mac = neighbour("10.9.1.1")
        payload = bytes(20 * 100)
        ip = ipv4_packet(udp_datagram(payload))
        frame = mac + out.getsockname()[4] + b"\x08\0" + ip
        checksum, start, offset = 1, 34, 6  # VIRTIO_NET_HDR_F_NEEDS_CSUM
        headers = 14 + 20 + 8
        head = struct.pack("=BBHHHH", checksum, GSO_UDP_L4, headers, 100, start, offset)
        for _ in range(10):
            out.send(head + frame)


def neighbour(address: str) -> bytes:
    lines = Path("/proc/thread-self/net/arp").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{address} "))
    return bytes.fromhex(line.split()[3].replace(":", ""))


def ipv4_packet(datagram: bytes) -> bytes:
    ends = socket.inet_aton("10.9.1.2") + socket.inet_aton("10.9.2.2")
    length = 20 + len(datagram)
    header = struct.pack("!BBHHHBBH", 0x45, 0, length, 1, 0, 64, socket.IPPROTO_UDP, 0) + ends
    return header[:10] + struct.pack("!H", 0xFFFF ^ folded(header)) + header[12:] + datagram


def udp_datagram(payload: bytes) -> bytes:
    """Return a datagram whose checksum is of the pseudo header alone: the card does the rest."""
    length = 8 + len(payload)
    ends = socket.inet_aton("10.9.1.2") + socket.inet_aton("10.9.2.2")
    pseudo = ends + struct.pack("!HH", socket.IPPROTO_UDP, length)
    return struct.pack("!HHHH", 5000, 9, length, folded(pseudo)) + payload


def folded(data: bytes) -> int:
    """Return the ones' complement sum of 16-bit words (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def send_datagrams(times: int = 50) -> None:
    """Send datagrams of UDP, each of 20 joined."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 100)
        for _ in range(times):
            out.sendto(bytes(2000), ("10.9.2.2", 9))


def send_in_bursts(times: int) -> None:
    """Send datagrams joined by 20 that arrive one by one; a veth has room for 256 packets."""
    before = counted()[0]
    for burst in range(1, times + 1):
        inside(SENDER, partial(send_datagrams, 1))
        eventually(lambda: counted()[0] - before >= 20 * burst)  # noqa: B023


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
