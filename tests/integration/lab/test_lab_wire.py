"""A wire in real namespaces: its rate, delay and buffer, both ways, and frames as they were."""

import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from support.waiting import eventually

from lab.errors import BadRequestError, ProgramError
from lab.programs.processes import Place
from lab.system import namespaces
from lab.system.links import turn_offloads_off
from lab.traffic.cable import wire
from lab.traffic.counts import Line, Wired
from lab.traffic.program import Traffic

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(120),
]
LEFT, MIDDLE, RIGHT = (f"w{part}{os.getpid()}" for part in "lmr")
PLACE = Place(namespaces.path(MIDDLE))
OTHER = 0x88B5
"""An Ethernet type for experiments, which the kernel leaves alone."""
HEADER = bytes.fromhex("020000000002 020000000001")
PFC = bytes.fromhex("0180c2000001 020000000001 8808 0101")


@pytest.fixture(autouse=True, scope="module")
def _ends() -> Iterator[None]:
    """Two ends, and a namespace between them that holds both interfaces of a wire."""
    for name in (LEFT, MIDDLE, RIGHT):
        namespaces.create(name)
    for name, port in ((LEFT, "left"), (RIGHT, "right")):
        command = ["ip", "-n", MIDDLE, "link", "add", port, "type", "veth", "peer", "e0"]
        subprocess.run([*command, "netns", name], check=True)
        for where, end in ((MIDDLE, port), (name, "e0")):
            turn_offloads_off(where, end)
            subprocess.run(["ip", "-n", where, "link", "set", end, "up"], check=True)
    yield
    for name in (LEFT, MIDDLE, RIGHT):
        namespaces.remove(name)


def opened(name: str) -> socket.socket:
    """Return a socket for whole frames at an end."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        made.bind(("e0", 3))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        made.settimeout(10)
        return made

    return namespaces.inside(name, make)


@pytest.fixture
def left() -> Iterator[socket.socket]:
    with opened(LEFT) as made:
        yield made


@pytest.fixture
def right() -> Iterator[socket.socket]:
    with opened(RIGHT) as made:
        yield made


def frame(number: int, length: int = 1000) -> bytes:
    return (HEADER + struct.pack("!HI", OTHER, number)).ljust(length, b"\0")


def received(at: socket.socket, count: int) -> list[bytes]:
    """Return the next frames that an end receives, without those that it has sent."""
    found: list[bytes] = []
    while len(found) < count:
        data, origin = at.recvfrom(10_000)
        if origin[2] != socket.PACKET_OUTGOING:
            found.append(data)
    return found


def line(running: Traffic[Wired], of: str, holds: Callable[[Line], bool]) -> Line:
    """Return one direction's counts once something holds for them."""
    assert eventually(lambda: holds(running.counts().lines[of])), running.counts()
    return running.counts().lines[of]


def test_frames_pass_both_ways_in_order(left: socket.socket, right: socket.socket) -> None:
    with wire(PLACE, "left", "right", rate_bps=10**9, buffer_bytes=10**6):
        for sender, receiver in ((left, right), (right, left)):
            sent = [frame(number, 60 + number) for number in range(50)]
            for each in sent:
                sender.send(each)
            assert received(receiver, 50) == sent


def test_a_frame_is_late_by_the_delay(left: socket.socket, right: socket.socket) -> None:
    with wire(PLACE, "left", "right", rate_bps=10**9, delay_s=0.05, buffer_bytes=10**6):
        begun = time.monotonic()
        left.send(frame(1))
        received(right, 1)
        assert time.monotonic() - begun >= 0.05


def test_frames_take_the_time_of_their_bits(left: socket.socket, right: socket.socket) -> None:
    with wire(PLACE, "left", "right", rate_bps=1_000_000, buffer_bytes=10**6):
        begun = time.monotonic()
        for number in range(20):
            left.send(frame(number))
        received(right, 20)
        assert time.monotonic() - begun >= 20 * 8 * 1000 / 1e6


def test_a_full_buffer_drops_and_the_wire_stops_no_sender(
    left: socket.socket, right: socket.socket
) -> None:
    with wire(PLACE, "left", "right", rate_bps=100_000, buffer_bytes=5_000) as running:
        for number in range(50):
            left.send(frame(number))
        counts = line(running, "left", lambda found: found.packets + found.dropped == 50)
        assert [each[14:18] for each in received(right, 5)] == [
            struct.pack("!I", number) for number in range(5)
        ], "the first ones have room"
        assert 30 <= counts.dropped <= 45
        assert counts.missed == counts.refused == 0
        assert counts.bytes == counts.packets * 1000
        assert running.counts().lines["right"].packets == 0


def test_vlan_tags_stay_in_frames(left: socket.socket, right: socket.socket) -> None:
    tagged = HEADER + struct.pack("!HHH", 0x8100, 5 << 13 | 7, OTHER) + bytes(80)
    right.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
    with wire(PLACE, "left", "right", rate_bps=10**9, buffer_bytes=10**6) as running:
        left.send(tagged)
        data, control, _, _ = right.recvmsg(2000, 100)
        status, _, _, _, _, tag, kind = struct.unpack("IIIHHHH", control[0][2])
        assert data == tagged[:12] + tagged[16:], "the kernel shows the tag apart"
        assert (status & 0x10 != 0, tag, kind) == (True, 5 << 13 | 7, 0x8100)
        counts = line(running, "left", lambda found: found.packets == 1)
        assert counts.bytes == len(tagged)


def test_pfc_frames_pass_those_that_wait_and_count_by_class(
    left: socket.socket, right: socket.socket
) -> None:
    quanta = [0xFFFF, 0, 0, 0xFFFF, 0, 0, 0, 0]
    pause = (PFC + struct.pack("!9H", 0b1001, *quanta)).ljust(60, b"\0")
    resume = (PFC + struct.pack("!9H", 0b1000, *([0] * 8))).ljust(60, b"\0")
    with wire(PLACE, "left", "right", rate_bps=100_000, buffer_bytes=10**6) as running:
        for number in range(5):
            left.send(frame(number))
        left.send(pause)
        left.send(resume)
        counts = line(running, "left", lambda found: sum(found.resumed) > 0)
        assert counts.paused == (1, 0, 0, 1, 0, 0, 0, 0)
        assert counts.resumed == (0, 0, 0, 1, 0, 0, 0, 0)
        first = received(right, 7)
        assert first.index(pause) < first.index(frame(4)), "four frames wait for 320 ms"


@pytest.mark.parametrize(
    "wrong", [{"rate_bps": 0}, {"delay_s": 1.1}, {"buffer_bytes": 0}, {"delay_s": -0.1}]
)
def test_values_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    given = {"rate_bps": 1, "buffer_bytes": 1} | wrong
    with pytest.raises(BadRequestError, match=next(iter(wrong))):
        wire(PLACE, "left", "right", **given)  # type: ignore[arg-type]


def test_an_interface_that_does_not_exist_is_named() -> None:
    with pytest.raises(ProgramError, match="nowhere"):
        wire(PLACE, "left", "nowhere", rate_bps=1, buffer_bytes=1)
