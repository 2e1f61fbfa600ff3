"""Wire ports of three switches over a star under overload: what a lossless star never loses."""

import os

import pytest
from rigs.zovn_rig import address, build, serial
from rigs.zovn_rig import frame as bare_frame
from rigs.zovn_wire_rig import CLASSES, PREFIX, TRUSTING, Wired, map_of, passing

from lab.fabric.star import StarFabric
from lab.traffic.star import Buffers, Starred, lossless

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(180),
]
RATE_BPS = 10_000_000
SINK_BPS = 4_000_000
FRAMES, LENGTH, CLASS = 700, 1_000, 3
ROOM, HEADROOM = 400_000, 350_000
"""The headroom is for 0.28 s: so long switches may stand still on a busy machine."""
SOURCE, SINK = 0, 1


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def numbered(sender: int, number: int) -> bytes:
    """Return a frame of a sender to the sink."""
    serial_number = FRAMES * sender + number
    return bare_frame(
        address(10 + sender), address(SINK), serial_number, LENGTH, tag=CLASS << 13 | 7
    )


def switches(fabric: StarFabric) -> list[Wired]:
    """Return a switch on each host, with a wire; the sink is on the first one."""
    stations = {address(SINK): fabric.hosts[0].address}
    stations |= {address(10 + n): fabric.hosts[n].address for n in (1, 2)}
    found = []
    for number, host in enumerate(fabric.hosts):
        rig = Wired([TRUSTING, TRUSTING], CLASSES, sent=64, received=64)
        port = rig.wire(
            host.name, "eth0", host.address, map_of(stations), TRUSTING, rate_bps=RATE_BPS
        )
        where = SINK if number == 0 else port
        rig.switch.fix(where, 7, address(SINK))
        found.append(rig)
    return found


class Overload:
    """Two senders that send as their rings allow, and the sink."""

    def __init__(self, fabric: StarFabric) -> None:
        self.fabric, self.sent, self.received = fabric, 0, 0
        self.got: list[int] = []
        self.sink, *self.senders = self.rigs = switches(fabric)
        self.left = {rig: list(range(FRAMES)) for rig in self.senders}

    def run(self) -> Starred:
        """Send all frames, and wait until each one is delivered or lost."""
        passing(*self.rigs, until=self._is_known)
        self.got.clear()
        passing(*self.rigs, until=self._is_sent)
        passing(*self.rigs, until=lambda: self.sent == self._ended())
        return self.fabric.counts()

    def dropped(self) -> int:
        """Return what the switches dropped."""
        return sum(sum(rig.counters(SOURCE).drops.values()) for rig in self.senders)

    def beyond(self) -> int:
        """Return what the sink's wire had no room for."""
        return self.sink.counters(next(iter(self.sink.wires))).beyond

    def _is_known(self) -> bool:
        """Send from both, one frame after the other, until ARP has found the sink's host."""
        if self.sent != self._ended():
            return False
        if {one // FRAMES for one in self.got} == {0, 1}:
            return True
        for sender, rig in enumerate(self.senders):
            self.sent += rig.ports[SOURCE].send(numbered(sender, 0))
        return False

    def _is_sent(self) -> bool:
        self._receive()
        for sender, (rig, left) in enumerate(self.left.items()):
            while left and rig.ports[SOURCE].send(numbered(sender, left[0])):
                self.sent += 1
                left.pop(0)
        return not any(self.left.values())

    def _ended(self) -> int:
        """Return how many frames were delivered or lost so far, of all that were ever sent."""
        self._receive()
        return self.received + self.fabric.counts().lost() + self.dropped() + self.beyond()

    def _receive(self) -> None:
        fresh = self.sink.ports[SINK].receive_all()
        self.received += len(fresh)
        self.got += map(serial, fresh)


def overloaded(buffers: Buffers) -> tuple[Overload, Starred, list[int]]:
    """Return what two senders left, the star's counts, and what came of each sender in order."""
    with StarFabric([SINK_BPS, RATE_BPS, RATE_BPS], buffers, prefix=PREFIX) as fabric:
        overload = Overload(fabric)
        counts = overload.run()
        return overload, counts, overload.got


def check_order(got: list[int]) -> None:
    for sender in range(2):
        mine = [one for one in got if one // FRAMES == sender]
        assert mine == sorted(set(mine))


def test_wires_lose_nothing_over_a_lossless_star() -> None:
    overload, counts, got = overloaded(lossless(ROOM, HEADROOM))
    check_order(got)
    assert sorted(got) == list(range(2 * FRAMES))
    assert (counts.lost(), overload.beyond()) == (0, 0)
    assert all(counts.ports[port].xoff_sent[CLASS] > 0 for port in ("h2", "h3"))
    for rig in overload.senders:
        assert rig.counters(next(iter(rig.wires))).pauses > 0


def test_wires_lose_over_a_lossy_star_at_its_output() -> None:
    overload, counts, got = overloaded(Buffers(ROOM))
    check_order(got)
    dropped = counts.ports["h1"].dropped[CLASS]
    assert counts.lost() == dropped > 0
    assert len(got) + dropped + overload.beyond() == 2 * FRAMES
