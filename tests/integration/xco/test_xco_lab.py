"""The whole of XCo on real packets: four UDP senders, a shallow port, the real programs.

What coordination saves is judged against the same traffic without it, in the same run. A floor
holds for programs that have CPUs: where the kernel counts that one waited for them, it is open.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import rates
from support.inconclusive import inconclusive
from support.stalls import Stalls
from support.waiting import PATIENCE_S, eventually

from benchmarks.xco.mix import unequal
from benchmarks.xco.rig import XcoRig, rig
from lab.fabric.fabric import Fabric
from lab.fabric.plan import DATA_INTERFACE, FabricHost
from lab.traffic import roles
from lab.traffic.counts import MessagesReceived, MessagesSent, shares_bps
from lab.traffic.program import Traffic

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(180),
]

LINK_BPS = 100_000_000
SENDERS = 4
WINDOW_S = 1.0
STRAYS = 20
"""Packets lost in two seconds, of 16,000: where a loop slept through a slice of 2 ms."""
STRAY_SHARE = 0.1
"""Of what is lost without coordination: the most that a machine that stands still may cost."""
FRAME_BYTES = 1514
MOMENTS_BYTES, SLICES_BYTES = 212_992, 1 << 20
"""What may wait at a sender, as its kernel counts: for less than a slice, and for several. With the
latter, one that had no CPU for some milliseconds does not seem to have nothing to send.
"""
UNCOORDINATED_S = 2.5
"""Longer than a spell in which one of four happens to get through (7 to 60 Mb/s in 0.8 s)."""
FALLBACK = 0
"""How gates stand, as a coordinator publishes it (xco/coordinator/shell.py)."""


@dataclass(frozen=True)
class Seen:
    """What the network and the kernel counted over some time."""

    begun: float
    seconds: float
    goodput_bps: list[float]
    """Of each sender, in whole messages."""
    received: float
    """Packets that came through, at least over the time in which drops were counted."""
    drops: int
    lacked: float
    """The part of the time for which a program, the worst off, was ready and had no CPU."""

    @property
    def drops_per_s(self) -> float:
        return self.drops / self.seconds

    def check_floor(self, share: float) -> None:
        """Check that all senders together got a share of the link through.

        Raises:
            Inconclusive: they did not, and the programs' waiting for CPUs may explain that.
        """
        got = sum(self.goodput_bps) / LINK_BPS
        if got <= share < got + self.lacked:
            inconclusive(f"{got:.2f} of the link; programs had no CPU for {self.lacked:.2f}")
        assert got > share

    def check_alike(self, most: float) -> None:
        """Check that the senders' shares are alike.

        Raises:
            Inconclusive: they are not, and the programs' waiting for CPUs may explain that.
        """
        assert len(self.goodput_bps) == SENDERS
        apart = unequal(self.goodput_bps)
        if most <= apart < most + SENDERS * self.lacked:
            inconclusive(f"shares {apart:.2f} apart; programs had no CPU for {self.lacked:.2f}")
        assert apart < most

    def check_drops(self, stalls: Stalls, most: int, without: "Seen") -> None:
        """Check what was lost: strays on a machine that is on time, else a part of all."""
        if stalls.longest(self.begun, self.begun + self.seconds) == 0:
            assert self.drops <= most
        assert self.drops_per_s <= STRAY_SHARE * without.drops_per_s


class Crowd:
    """Senders of messages of 64 KB to one receiver, each as fast as it gets."""

    def __init__(
        self,
        xco: XcoRig,
        senders: Sequence[FabricHost],
        stack: ExitStack,
        waiting_bytes: int = MOMENTS_BYTES,
    ) -> None:
        fabric = xco.fabric
        to = fabric.receivers[0]
        self._fabric, self.senders = fabric, senders
        self.sink: Traffic[MessagesReceived] = stack.enter_context(
            roles.sink_messages(fabric.place(to))
        )
        self.sources: list[Traffic[MessagesSent]] = [
            stack.enter_context(
                roles.send_messages(fabric.place(host), to.address, buffer_bytes=waiting_bytes)
            )
            for host in senders
        ]
        eventually(lambda: len(self.sink.counts().sources) > 0)
        time.sleep(0.3)

    def watch(self, seconds: float) -> Seen:
        """Let time pass, and tell what was counted."""
        programs = [self.sink.pid, *(source.pid for source in self.sources)]
        begun, waited = time.monotonic(), [waited_s(pid) for pid in programs]
        before = self.sink.counts()
        wire = self._fabric.wire_bytes()
        drops = self._fabric.drops()
        time.sleep(seconds)
        dropped = self._fabric.drops() - drops
        received = (self._fabric.wire_bytes() - wire) / FRAME_BYTES
        shares = shares_bps(before, self.sink.counts())
        took = time.monotonic() - begun
        lacked = max(waited_s(pid) - then for pid, then in zip(programs, waited, strict=True))
        goodput = [shares.get(host.address, 0.0) for host in self.senders]
        return Seen(begun, took, goodput, received, dropped, lacked / took)


def waited_s(process: int) -> float:
    """Return for how long a process was ready to run and had no CPU, as the kernel counts it."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9


@pytest.fixture(scope="module")
def xco() -> Iterator[XcoRig]:
    with Fabric(f"x{os.getpid()}") as fabric:
        fabric.incast(SENDERS, LINK_BPS, buffer_bytes=32_000)
        with rig(fabric) as made:
            yield made


@pytest.fixture(scope="module")
def without(xco: XcoRig) -> Seen:
    """What becomes of the same traffic without coordination; leaves it coordinated."""
    xco.go("uncoordinated")
    with ExitStack() as stack:
        seen = Crowd(xco, xco.fabric.senders, stack).watch(UNCOORDINATED_S)
    xco.go("timeslice")
    return seen


@pytest.fixture
def crowd(xco: XcoRig, without: Seen) -> Iterator[Crowd]:
    """All senders send."""
    del without
    with ExitStack() as stack:
        yield Crowd(xco, xco.fabric.senders, stack)


def modes(xco: XcoRig) -> set[int]:
    return {xco.host_counters(host)["mode"] for host in xco.fabric.senders}


def test_without_coordination_the_same_traffic_loses_most_messages(without: Seen) -> None:
    if without.drops <= without.received and without.lacked > 0.25:
        inconclusive(f"programs had no CPU for {without.lacked:.2f} of the time: {without}")
    assert without.drops > without.received, "most are lost"
    # whole messages that arrive by luck, 4 to 75 % of the link in eight runs; coordinated: 95 %
    assert sum(without.goodput_bps) < 0.9 * LINK_BPS


def test_coordinated_senders_lose_nothing(without: Seen, crowd: Crowd, stalls: Stalls) -> None:
    seen = crowd.watch(2.0)
    seen.check_drops(stalls, STRAYS, without)
    assert sum(seen.goodput_bps) > sum(without.goodput_bps)
    seen.check_floor(0.7)
    seen.check_alike(0.5)


def test_coordinated_senders_share_alike(xco: XcoRig, without: Seen) -> None:
    with ExitStack() as stack:
        seen = Crowd(xco, xco.fabric.senders, stack, SLICES_BYTES).watch(2.0)
    assert seen.drops_per_s <= STRAY_SHARE * without.drops_per_s
    seen.check_floor(0.7)
    seen.check_alike(0.15)


def test_a_sender_alone_whose_slices_are_renewed_keeps_to_its_pace(
    xco: XcoRig, without: Seen, stalls: Stalls
) -> None:
    with ExitStack() as stack:
        alone = Crowd(xco, xco.fabric.senders[:1], stack)
        first = rates.read(lambda: xco.fabric.wire_bytes() * 8)
        seen = alone.watch(1.2)
        rate = rates.between(first, rates.read(lambda: xco.fabric.wire_bytes() * 8))
    assert rate.least < LINK_BPS
    seen.check_drops(stalls, 2, without)  # no queue stands at the port
    seen.check_floor(0.8)


def test_traffic_goes_on_without_the_controller_and_comes_back_under_it(
    xco: XcoRig, without: Seen, crowd: Crowd, stalls: Stalls
) -> None:
    xco.kill_controller()
    xco.wait_until(lambda: modes(xco) == {FALLBACK}, "all hosts fell back")
    seen = crowd.watch(WINDOW_S)
    xco.start_controller()
    xco.wait_until(xco.joined, "all hosts are under control again")
    slices = xco.controller_counters()["slices_started"]
    back = crowd.watch(WINDOW_S)
    eventually(lambda: xco.controller_counters()["slices_started"] > slices + 50)
    seen.check_drops(stalls, 50, without)  # safe shares congest nothing
    seen.check_floor(0.6)
    seen.check_alike(0.3)
    back.check_alike(0.2)


@pytest.mark.parametrize("killed", ["loop", "guard"])
def test_traffic_goes_on_unshaped_when_a_coordinator_is_killed(
    xco: XcoRig, crowd: Crowd, killed: str
) -> None:
    host, to = xco.fabric.senders[0], xco.fabric.receivers[0]
    guard = xco.coordinator(host)
    children = Path(f"/proc/{guard.pid}/task/{guard.pid}/children").read_text().split()
    os.kill(int(children[0]) if killed == "loop" else guard.pid, signal.SIGKILL)
    guard.wait(PATIENCE_S)
    xco.wait_until(lambda: "htb" not in root_of(xco), "the gates are gone")
    with roles.capture(xco.fabric.place(to), DATA_INTERFACE) as captured:
        source = crowd.sources[0].pid
        waited = waited_s(source)
        rate = rates.watch(lambda: xco.fabric.inside(host, sent_bytes) * 8, WINDOW_S)
        lacked = (waited_s(source) - waited) / rate.seconds
        eventually(lambda: host.address in captured.counts().sources)  # it still arrives
    xco.start_coordinator(host)
    xco.wait_until(xco.joined, "all hosts are under control again")
    time.sleep(0.5)  # for what it had sent unshaped to arrive
    back = crowd.watch(WINDOW_S)
    if rate.most <= 0.5 * LINK_BPS and lacked > 0.25:
        inconclusive(f"{rate}; its sender had no CPU for {lacked:.2f} of the time")
    assert rate.most > 0.5 * LINK_BPS, "gated it would have a quarter"
    back.check_alike(0.3)


def root_of(xco: XcoRig) -> str:
    """Return the first sender's queues, as tc shows them."""
    command = ["tc", "-n", Path(xco.fabric.netns(xco.fabric.senders[0])).name, "qdisc", "show"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sent_bytes() -> int:
    """Return the bytes that eth0 has sent, from /proc/net/dev of the calling thread."""
    lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    row = next(line for line in lines if line.strip().startswith("eth0:"))
    return int(row.partition(":")[2].split()[8])


@pytest.mark.usefixtures("without")
def test_a_coordinator_with_nothing_to_do_sleeps(xco: XcoRig) -> None:
    host = xco.fabric.receivers[0]
    time.sleep(0.3)  # for what the traffic before has left to go away
    before = xco.host_counters(host)
    eventually(lambda: xco.host_counters(host)["reports"] >= before["reports"] + 100)
    after = xco.host_counters(host)
    woken, told = (after[key] - before[key] for key in ("wakes", "reports"))
    assert woken < 8 * told, "beyond reports, directives and a look each, nothing wakes it"
