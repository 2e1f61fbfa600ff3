"""What the controller drops in the kernel, or before it checks the authenticator."""

import ctypes
import os
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from xco_controller_rig import MASTER, host_encode, node_library
from xco_controller_scenes import EPOCH, MS, Scene, loop_file

from xco.protocol.keys import derive
from xco.protocol.messages import (
    Directive,
    Flag,
    Header,
    Hello,
    Leave,
    Message,
    Mode,
    Port,
    PortCounts,
    Report,
    Status,
    Waiting,
)
from xco.protocol.wire import AGENT, CONTROLLER, VERSION, authenticated, encode
from xco.topology.shapes import star_topology

DROPPED, ANSWERED = 2, 1
HEADER = Header(1, EPOCH, 5, 6)
FULL = Report(HEADER, Flag.NONE, 0, 0, tuple(Waiting(host, 1, 1) for host in range(64)))
PORTS = Port(
    Header(AGENT, EPOCH, 5, 6),
    bytes(32),
    tuple(PortCounts(20, host, 1, 0, 0, 0, 0, 0) for host in range(16)),
)
OURS = Directive(Header(CONTROLLER, EPOCH, 1, 1), 0, Mode.CLOSED, 1, 0, 0, 0)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, star_topology(4, "1Gbps"))
    made.join()
    return made


def passed(*datagrams: bytes) -> list[bytes]:
    """Send datagrams to a socket with the filter; return those that arrive."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inner,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outer,
    ):
        inner.bind(("127.0.0.1", 0))
        assert node_library().xco_filter_attach(inner.fileno())
        for datagram in datagrams:
            outer.sendto(datagram, inner.getsockname())
        inner.setblocking(False)
        arrived = []
        while True:
            try:
                arrived.append(inner.recv(2000))
            except BlockingIOError:
                return arrived


@pytest.mark.parametrize(
    "message",
    [Hello(HEADER, bytes(32)), Leave(HEADER), Report(HEADER, Flag.NONE, 0, 0), FULL, PORTS],
    ids=("hello", "leave", "empty report", "full report", "ports"),
)
def test_the_kernel_lets_every_message_of_a_host_pass(message: Message) -> None:
    datagram = host_encode(message)
    assert passed(datagram) == [datagram]


@pytest.mark.parametrize(
    "change",
    [
        lambda good: good[:0],
        lambda good: b"noise" + good[:0],
        lambda good: b"YCO1" + good[4:],
        lambda good: good[:4] + b"\x02" + good[5:],
        lambda good: good[:4] + b"\x06" + good[5:],
        lambda good: good[:-20],
        lambda good: good + bytes(1281),
    ],
    ids=("empty", "noise", "magic", "welcome", "type", "short", "long"),
)
def test_the_kernel_drops_what_is_no_message_of_a_host(change: Callable[[bytes], bytes]) -> None:
    good = host_encode(Report(HEADER, Flag.NONE, 0, 0))
    assert passed(change(good), good) == [good]


def test_the_kernel_lets_another_version_pass_to_be_counted() -> None:
    good = host_encode(Report(HEADER, Flag.NONE, 0, 0))
    older = good[:5] + b"\x02" + good[6:]
    assert passed(older, good) == [older, good]


@pytest.mark.parametrize("kind", [Hello(HEADER, bytes(32)), Leave(HEADER)], ids=("hello", "leave"))
def test_the_kernel_knows_the_length_of_each_type(kind: Message) -> None:
    good = host_encode(kind)
    assert passed(good + b"\0", good[:-1], host_encode(OURS)) == []


def forged(sequence: int, host: int = 1, kind: int = Leave.kind) -> bytes:
    plain = struct.pack("<4sBBHQQQ", b"XCO1", kind, VERSION, host, EPOCH, sequence, 1)
    return authenticated(plain, bytes(32))


def test_a_turn_reads_so_many_messages_and_no_more(tmp_path: Path) -> None:
    path = str(loop_file(tmp_path, star_topology(4, "1Gbps"))).encode()
    library, problem = node_library(), ctypes.create_string_buffer(512)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    shell = ctypes.c_void_p(library.shim_shell_open(path, problem))
    try:
        own = socket.socket(fileno=os.dup(library.shim_shell_udp(shell)))
        with own, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            for number in range(300):
                out.sendto(forged(number), own.getsockname())
        assert [library.shim_shell_turn(shell) for _ in range(3)] == [128, 256, 300]
    finally:
        library.shim_shell_close(shell)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_what_is_not_later_is_dropped_before_its_authenticator(scene: Scene) -> None:
    assert [scene.say(forged(sequence)) for sequence in (0, 1, 2)] == [DROPPED] * 3
    counters = scene.node.counters
    assert counters["dropped_late"] == 1
    assert counters["dropped_duplicate"] == 1
    assert counters["dropped_forged"] == 1


def test_a_forged_sequence_holds_up_no_message_of_its_host(scene: Scene) -> None:
    scene.say(forged(2**64 - 1))
    scene.report(1, 3)
    assert scene.hosts[1].directive.mode is Mode.SLICE


def test_a_message_of_no_host_costs_no_authenticator(scene: Scene) -> None:
    assert scene.say(forged(9, host=4)) == DROPPED
    assert scene.say(forged(9, host=CONTROLLER)) == DROPPED
    assert scene.say(b"XCO1") == DROPPED
    counters = scene.node.counters
    assert (counters["dropped_unknown_host"], counters["dropped_direction"]) == (1, 1)
    assert (counters["dropped_malformed"], counters["dropped_forged"]) == (1, 0)


def test_a_host_of_a_larger_topology_is_told_in_its_own_key(scene: Scene) -> None:
    hello = Hello(Header(4, EPOCH, 5, 6), bytes(32))
    assert scene.node.receive(scene.now_ns, host_encode(hello)) == ANSWERED
    (answer,) = scene.node.take(scene.now_ns)
    assert getattr(answer, "status", None) is Status.UNKNOWN_HOST
    assert scene.say(encode(hello, derive(MASTER, 3).up)) == DROPPED


def test_many_copies_of_a_destination_take_nothing_from_others(tmp_path: Path) -> None:
    scene = Scene(tmp_path, star_topology(3, "1Gbps"), strategy="rate")
    scene.join()
    scene.report(0, 2)
    scene.report(1, 2)
    header = scene.hosts[1].header(scene.now_ns)
    plain = struct.pack("<4sBBHQQQ", b"XCO1", 3, VERSION, 1, EPOCH, header.sequence, scene.now_ns)
    body = struct.pack("<HHIQQQ", 0, 64, 0, 0, 0, 0) + struct.pack("<HHIIQ", 2, 0, 1000, 0, 0) * 64
    assert scene.say(authenticated(plain + body, derive(MASTER, 1).up)) == DROPPED
    scene.run_until(scene.now_ns + 20 * MS)
    assert scene.hosts[0].directive.permits[0].rate_bps > 400_000_000
