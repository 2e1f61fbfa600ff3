"""A marking port in real namespaces: what it marks, what it counts, what a killed one leaves."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest
from support.waiting import eventually

from lab.errors import BadRequestError, LabError, ProgramError
from lab.fabric.fabric import Fabric
from lab.fabric.plan import DATA_INTERFACE, FabricHost
from lab.marking.terms import Marking
from lab.plan import namespace
from lab.system import namespaces

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(120),
]

SLOW_BPS = 2_000
"""A frame takes four seconds, so that a queue stands during a test."""
BUFFER_BYTES = 40_000
UNSERVED = 1e-7
"""Share of a port of 1 Gb/s at which a frame takes a minute."""
PAYLOAD, FRAME, FRAME_6 = 958, 1000, 1000 + 20
BURST = 3
"""So many frames pass a shaper after a pause, or wait in its place."""
PORT, IP_RECVTOS, IPV6_RECVTCLASS = 4002, 13, 66
NOT_ECT, ECT_1, ECT_0, CE = range(4)
FAMILIES = pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def slow() -> Iterator[Fabric]:
    """A port whose queue does not move."""
    with Fabric(f"m{os.getpid()}") as fabric:
        yield fabric.incast(1, SLOW_BPS, BUFFER_BYTES)


@pytest.fixture
def fast() -> Iterator[Fabric]:
    """A port whose queue is empty when a packet comes."""
    with Fabric(f"n{os.getpid()}") as fabric:
        yield fabric.incast(1, "1Gbps", BUFFER_BYTES)


def ends(fabric: Fabric) -> tuple[FabricHost, FabricHost]:
    return fabric.senders[0], fabric.receivers[0]


def marked(fabric: Fabric) -> "tuple[int, int, int]":
    """Return packets, capable ones and marks at the receiver's port."""
    found = fabric.marked("s1", fabric.receivers[0].name)
    return found.packets, found.capable, found.marks


def with_ipv6(fabric: Fabric) -> None:
    """Give both hosts an IPv6 address, and each other as neighbours."""
    sender, receiver = ends(fabric)
    for host, other in ((sender, receiver), (receiver, sender)):
        name = namespace(fabric.prefix, host.name)
        keys = {"disable_ipv6": 0, "accept_dad": 0, "router_solicitations": 0}
        namespaces.write_sysctls(
            name, {f"ipv6/conf/{DATA_INTERFACE}/{key}": value for key, value in keys.items()}
        )
        for words in (
            ("address", "add", f"fd78::{host.index}/64", "nodad"),
            ("neighbour", "replace", f"fd78::{other.index}", "lladdr", other.mac),
        ):
            command = ["ip", "-n", name, "-6", *words, "dev", DATA_INTERFACE]
            subprocess.run(command, check=True)


def pair(fabric: Fabric, family: socket.AddressFamily = socket.AF_INET) -> Pair:
    """A socket of the sender, and one of the receiver that tells types of service."""
    sender, receiver = ends(fabric)
    six = family is socket.AF_INET6
    if six:
        with_ipv6(fabric)
    address = f"fd78::{receiver.index}" if six else receiver.address

    def create(host: str) -> socket.socket:
        made = socket.socket(family, socket.SOCK_DGRAM)
        made.settimeout(10.0)
        if host:
            made.bind((host, PORT))
        return made

    out = fabric.inside(sender, lambda: create(""))
    to = fabric.inside(receiver, lambda: create(address))
    level, option = (
        (socket.IPPROTO_IPV6, IPV6_RECVTCLASS) if six else (socket.IPPROTO_IP, IP_RECVTOS)
    )
    to.setsockopt(level, option, 1)
    out.connect((address, PORT))
    return out, to


def send(out: socket.socket, bits: int, payload: int = PAYLOAD) -> None:
    """Send a datagram with these ECN bits below a DSCP."""
    six = out.family is socket.AF_INET6
    level, option = (
        (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if six else (socket.IPPROTO_IP, socket.IP_TOS)
    )
    out.setsockopt(level, option, 0x28 | bits)
    out.send(bytes(payload))


def received(to: socket.socket) -> int:
    """Return the type of service of the next datagram."""
    data, [(_, _, value)], _, _ = to.recvmsg(2000, 100)
    assert data == bytes(PAYLOAD)
    return int.from_bytes(value, "little")


@FAMILIES
def test_nothing_is_marked_below_the_threshold(fast: Fabric, family: socket.AddressFamily) -> None:
    out, to = pair(fast, family)
    fast.mark(Marking(threshold=0.2))
    with out, to:
        for bits in (NOT_ECT, ECT_1, ECT_0, CE):
            send(out, bits)
            assert received(to) == 0x28 | bits
        packets, capable, marks = marked(fast)
    assert packets >= 4
    assert (capable, marks) == (3, 0)


@FAMILIES
def test_capable_packets_are_marked_above_the_threshold_and_others_never(
    fast: Fabric, family: socket.AddressFamily
) -> None:
    """A threshold of nothing is passed as soon as one packet waits: a burst at a full port."""
    out, to = pair(fast, family)
    frame = FRAME_6 if family is socket.AF_INET6 else FRAME
    fast.mark(Marking(threshold=0.0, phantom=UNSERVED))
    with out, to:
        send(out, ECT_0)
        for bits in (NOT_ECT, ECT_1, ECT_0, CE):
            send(out, bits)
        seen = [received(to) & CE for _ in range(5)]
        _, capable, marks = marked(fast)
        size = fast.marked("s1", fast.receivers[0].name).bytes
    assert seen == [ECT_0, NOT_ECT, CE, CE, CE]
    assert (capable, marks) == (4, 2)
    assert size >= 5 * frame


def test_the_real_queue_is_what_the_discipline_shows(slow: Fabric) -> None:
    sender_port = slow.receivers[0].name
    slow.mark(Marking(threshold=0.5))
    out, to = pair(slow)
    with out, to:
        for number in range(20):
            before = slow.port("s1", sender_port).backlog_bytes
            send(out, ECT_0)
            assert eventually(lambda sent=number + 1: marked(slow)[0] == sent)
            after = slow.port("s1", sender_port).backlog_bytes
            met = slow.marked("s1", sender_port).queued_bytes
            assert abs(met - before) <= FRAME
            assert abs(after - met - FRAME) <= FRAME
    assert after >= (20 - BURST - 1) * FRAME


def test_a_port_marks_where_its_real_queue_is_longer_than_the_threshold(slow: Fabric) -> None:
    slow.mark(Marking(threshold=0.2))
    out, to = pair(slow)
    with out, to:
        for number in range(BUFFER_BYTES // FRAME // 2):
            send(out, ECT_0 if number % 2 else NOT_ECT)
            assert eventually(lambda sent=number + 1: marked(slow)[0] == sent)
            queued = slow.marked("s1", slow.receivers[0].name).queued_bytes
            _, capable, marks = marked(slow)
            assert capable == (number + 1) // 2
            assert marks == 0 if queued <= 0.2 * BUFFER_BYTES else marks >= number % 2
    assert marks >= 2


def test_a_ramp_marks_some_between_its_ends(slow: Fabric) -> None:
    """At half of the ramp, all or none of 60 packets are marked once in 10 to the 15th."""
    slow.mark(Marking(threshold=0.0, all_above=1.0))
    out, to = pair(slow)
    frames = BUFFER_BYTES // FRAME // 2 + BURST
    with out, to:
        for _ in range(frames):
            send(out, NOT_ECT)
        for _ in range(60):
            send(out, ECT_0, payload=1)
        assert eventually(lambda: marked(slow)[0] == frames + 60)
    assert 0 < marked(slow)[2] < 60


def test_nothing_is_left_of_a_marker_that_is_killed(fast: Fabric) -> None:
    out, to = pair(fast)
    fast.mark(Marking(threshold=0.0, phantom=UNSERVED))
    with out, to:
        for _ in range(2):
            send(out, ECT_0)
        assert [received(to) & CE for _ in range(2)] == [ECT_0, CE]
        [running] = fast._markers.values()
        os.kill(running.pid, signal.SIGKILL)
        assert eventually(lambda: not running.alive)
        for _ in range(3):
            send(out, ECT_0)
        assert [received(to) & CE for _ in range(3)] == [ECT_0] * 3
        with pytest.raises(ProgramError, match="no longer runs"):
            marked(fast)


def test_a_port_that_does_not_mark_has_no_counts(fast: Fabric) -> None:
    fast.mark()
    assert marked(fast)[2] == fast.marks() == 0
    fast.unmark()
    with pytest.raises(LabError, match="call mark"):
        marked(fast)
    assert fast.marks() == 0


@pytest.mark.parametrize(
    "share", [{"threshold": 1.1}, {"all_above": 0.1}, {"phantom": 0.0}, {"phantom": 1.01}]
)
def test_shares_out_of_range_are_refused(share: dict[str, float]) -> None:
    with pytest.raises(BadRequestError):
        Marking(**share)
