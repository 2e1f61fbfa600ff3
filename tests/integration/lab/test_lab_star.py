"""A star in real namespaces: lossy it drops; lossless it loses nothing of hosts that obey."""

import os
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from star_rig import frame as tagged_frame
from star_rig import pfc_frame
from support.waiting import eventually

from lab.errors import BadRequestError, ProgramError
from lab.fabric.plan import DATA_INTERFACE
from lab.fabric.star import StarFabric, StarHost
from lab.plan import namespace
from lab.programs.processes import Place
from lab.system import namespaces
from lab.traffic import build
from lab.traffic.star import Buffers, Line, Starred, lossless, star

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(240),
]
PREFIX = f"g{os.getpid()}"
EVERYTHING, OUTGOING = 3, socket.PACKET_OUTGOING
PFC_HEAD = bytes.fromhex("0180c2000001")
SINK_BPS, HOST_BPS = 4_000_000, 20_000_000
FRAMES, LENGTH = 1_000, 1_000
ROOM, XOFF = 1_000_000, 50_000
"""Headroom for 0.38 s of a host's rate: so long the star may stand still on a busy machine."""
LOSSLESS = lossless(ROOM, ROOM - XOFF)


@pytest.fixture(scope="module", autouse=True)
def _sanitized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run the star with sanitizers."""
    path = tmp_path_factory.mktemp("star") / "traffic"
    build.compile_to(path, "-Werror", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "program", lambda: path)
        yield


@pytest.fixture
def made() -> Iterator[Callable[..., StarFabric]]:
    """Make stars that end with the test."""
    with ExitStack() as stack:
        yield lambda rates, buffers, **more: stack.enter_context(
            StarFabric(rates, buffers, prefix=PREFIX, **more)
        )


def opened(fabric: StarFabric, host: StarHost) -> socket.socket:
    """Return a socket for whole frames of a host."""

    def make() -> socket.socket:
        found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERYTHING))
        found.bind((DATA_INTERFACE, EVERYTHING))
        found.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
        found.setblocking(False)
        return found

    return fabric.inside(host, make)


def frame(
    to: StarHost, of: StarHost, number: int, priority: int = 0, length: int = LENGTH
) -> bytes:
    """Return a frame between two hosts."""
    ends = bytes.fromhex((to.mac + of.mac).replace(":", ""))
    return ends + tagged_frame(0, 0, number, priority, length)[12:]


def came(at: socket.socket) -> list[bytes]:
    """Return what a host has received, without what it has sent; the kernel has taken tags out."""
    found: list[bytes] = []
    while True:
        try:
            data, origin = at.recvfrom(10_000)
        except BlockingIOError:
            return found
        if origin[2] != OUTGOING:
            found.append(data)


def next_frames(at: socket.socket, count: int) -> list[bytes]:
    """Return the next frames that a host receives, at least so many."""
    found: list[bytes] = []

    def are_there() -> bool:
        found.extend(came(at))
        return len(found) >= count

    eventually(are_there)
    return found


@dataclass
class Sender:
    """Sends frames at a rate from a host, and obeys pauses of class 0 if it should."""

    socket: socket.socket
    frames: list[bytes]
    obeys: bool
    next_s: float = 0.0
    until_s: float = 0.0
    pauses: list[bytes] = field(default_factory=list)

    def work(self) -> None:
        """Hear pauses; send a frame if it is time. What was missed is not made up for."""
        for data in came(self.socket):
            if data[:6] == PFC_HEAD:
                self.pauses.append(data)
                vector, quanta = struct.unpack_from("!HH", data, 16)
                if self.obeys and vector & 1:
                    self.until_s = time.monotonic() + quanta * 512 / HOST_BPS
        now = time.monotonic()
        if self.frames and now >= max(self.next_s, self.until_s):
            self.next_s = max(now, self.next_s) + LENGTH * 8 / HOST_BPS
            self.socket.send(self.frames.pop(0))


def overload(fabric: StarFabric, *, obey: bool) -> tuple[list[int], Starred, list[Sender]]:
    """Let two hosts overload the line to the first; return what came, counts and senders.

    What came is the number of each frame, and its sender's in the last bit.
    """
    sink, *others = fabric.hosts
    with ExitStack() as stack:
        into = stack.enter_context(opened(fabric, sink))
        senders = []
        for bit, host in enumerate(others):
            frames = [frame(sink, host, 2 * number + bit) for number in range(FRAMES)]
            senders.append(Sender(stack.enter_context(opened(fabric, host)), frames, obey))
        while any(sender.frames for sender in senders):
            select.select([sender.socket for sender in senders], [], [], 100e-6)
            for sender in senders:
                sender.work()
        eventually(lambda: is_over(fabric.counts()))
        for sender in senders:
            sender.work()
        numbers = [int.from_bytes(data[14:18]) for data in came(into)]
        return numbers, fabric.counts(), senders


def is_over(counts: Starred) -> bool:
    """Return whether all frames came to the star, and none is held."""
    sink, *others = counts.ports.values()
    return not sink.held_bytes and sum(port.packets_in for port in others) == 2 * FRAMES


def check_order(numbers: Sequence[int]) -> None:
    """Check that no sender's frames were repeated or overtook each other."""
    for bit in (0, 1):
        mine = [number for number in numbers if number & 1 == bit]
        assert mine == sorted(set(mine))


def rates() -> list[int]:
    return [SINK_BPS, HOST_BPS, HOST_BPS]


def test_a_lossy_star_drops_under_overload(made: Callable[..., StarFabric]) -> None:
    small = Buffers(100_000)  # overflows even if the senders are at an eighth of their rate
    numbers, counts, senders = overload(made(rates(), small), obey=True)
    check_order(numbers)
    assert counts.lost() == counts.ports["h1"].dropped[0] > 0
    assert len(numbers) + counts.lost() == 2 * FRAMES
    assert not any(sender.pauses for sender in senders)


def test_a_lossless_star_loses_nothing_of_hosts_that_obey(made: Callable[..., StarFabric]) -> None:
    numbers, counts, senders = overload(made(rates(), LOSSLESS), obey=True)
    check_order(numbers)
    assert counts.lost() == 0
    assert len(numbers) == 2 * FRAMES
    for sender, port in zip(senders, (counts.ports["h2"], counts.ports["h3"]), strict=True):
        assert XOFF < port.most_bytes[0] <= ROOM
        assert port.xoff_sent[0] >= port.xon_sent[0] > 0
        assert sum(port.xoff_sent[1:]) == 0
        assert len(sender.pauses) == port.xoff_sent[0] + port.xon_sent[0]


def test_a_host_that_does_not_obey_overflows_its_own_room(made: Callable[..., StarFabric]) -> None:
    small = lossless(100_000, 50_000)
    numbers, counts, _ = overload(made(rates(), small), obey=False)
    check_order(numbers)
    assert counts.ports["h2"].overflowed[0] > 0
    assert counts.ports["h1"].dropped == (0,) * 8
    assert len(numbers) + counts.lost() == 2 * FRAMES


def test_a_pause_on_the_line_byte_by_byte(made: Callable[..., StarFabric]) -> None:
    fabric = made([1_000_000] * 3, lossless(50_000, 48_000, classes=[5]))
    sink, source, _ = fabric.hosts
    with opened(fabric, source) as sender:
        for number in range(5):
            sender.send(frame(sink, source, number, priority=5))
        pauses = next_frames(sender, 2)
    port = namespace(fabric.prefix, "s1")
    own = namespaces.configure(port, lambda ip: ip.link("get", ifname="h2")[0].get("address"))
    head = "0180c2000001" + own.replace(":", "") + "8808" + "0101" + "0020"
    for sent, quanta in zip((pauses[0], pauses[-1]), ("ffff", "0000"), strict=True):
        times = ["0000"] * 8
        times[5] = quanta
        assert sent.hex() == (head + "".join(times)).ljust(120, "0")


def test_a_star_obeys_pauses_of_a_host_by_class(made: Callable[..., StarFabric]) -> None:
    fabric = made(["1Mbps"] * 2, lossless(10**6, 10**5, [3]))
    sink, source = fabric.hosts
    with opened(fabric, sink) as into, opened(fabric, source) as sender:
        stop = [0xFFFF if each == 3 else 0 for each in range(8)]  # for 33 s
        into.send(pfc_frame(stop, 1 << 3))
        eventually(lambda: fabric.counts().ports["h1"].xoff_received[3])
        for number, priority in enumerate((3, 4)):
            sender.send(frame(sink, source, number, priority, 100))
        assert [data[14:18] for data in next_frames(into, 1)] == [struct.pack("!I", 1)]
        assert fabric.counts().ports["h1"].held_bytes == 100
        into.send(pfc_frame([0] * 8, 1 << 3))
        assert [data[14:18] for data in next_frames(into, 1)] == [struct.pack("!I", 0)]
        port = fabric.counts().ports["h1"]
    assert port.xon_received == (0, 0, 0, 1, 0, 0, 0, 0)
    assert 0 < port.paused_ns[3] < 0xFFFF * 512 * 1000


def test_hosts_find_each_other_and_talk_over_tcp(made: Callable[..., StarFabric]) -> None:
    fabric = made(["100Mbps"] * 3, Buffers(200_000), delay_s=0.001)
    one, other, _ = fabric.hosts
    flush = [
        "ip",
        "-n",
        fabric.netns(one),
        "neighbour",
        "flush",
        "dev",
        DATA_INTERFACE,
        "nud",
        "all",
    ]
    subprocess.run(flush, check=True)
    body = bytes(range(256)) * 1_000
    with fabric.inside(other, lambda: socket.create_server((other.address, 5000))) as listener:
        made_here = fabric.inside(one, lambda: socket.create_connection((other.address, 5000), 30))
        with made_here as client, listener.accept()[0] as server:
            client.sendall(body)
            client.shutdown(socket.SHUT_WR)
            assert b"".join(iter(lambda: server.recv(1 << 16), b"")) == body
    assert fabric.counts().ports["h1"].floods >= 1, "it asked for the address"


def test_nothing_is_left_behind() -> None:
    with StarFabric(["1Mbps"] * 2, Buffers(10_000), prefix=PREFIX) as fabric:
        switch = fabric.switch
        assert namespaces.named(PREFIX) == [f"{PREFIX}-{name}" for name in ("h1", "h2", "s1")]
    assert not namespaces.named(PREFIX)
    assert not switch.alive


PLACE = Place("/proc/self/ns/net")
LO = Line("lo", ["02:00:00:00:00:01"], 1_000)


@pytest.mark.parametrize(
    ("field", "lines", "buffers"),
    [
        ("lines", [], Buffers(1)),
        ("rate_bps", [Line("lo", [], 0)], Buffers(1)),
        ("delay_s", [Line("lo", [], 1, 2.0)], Buffers(1)),
        ("bytes", [LO], Buffers(0)),
        ("lossless", [LO], Buffers(1, [8])),
        ("xoff_bytes", [LO], Buffers(1, xoff_bytes=2)),
        ("xon_bytes", [LO], Buffers(9, xoff_bytes=5, xon_bytes=6)),
        ("quanta", [LO], Buffers(9, quanta=0)),
    ],
)
def test_values_out_of_range_are_refused(
    field: str, lines: Sequence[Line], buffers: Buffers
) -> None:
    with pytest.raises(BadRequestError, match=field):
        star(PLACE, lines, buffers)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ([Line("nowhere", [], 1)], "nowhere"),
        ([Line("lo", ["02:00"], 1)], "02:00"),
        ([Line("lo", ["02:00:00:00:00:01=eth7"], 1)], "eth7"),
    ],
)
def test_what_the_program_refuses_is_named(lines: Sequence[Line], named: str) -> None:
    with pytest.raises(ProgramError, match=named):
        star(PLACE, lines, Buffers(1_000))


def test_headroom_above_the_room_is_refused() -> None:
    with pytest.raises(BadRequestError, match="room_for_late"):
        lossless(1_000, 1_000)
