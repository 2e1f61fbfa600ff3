"""The whole of XCo on real packets: four UDP senders, a shallow port, the real programs."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.xco_mix import unequal
from benchmarks.xco_rig import XcoRig, rig
from lab.fabric import Fabric
from lab.traffic import roles
from lab.traffic.counts import MessagesReceived, shares_bps
from lab.traffic.program import Traffic

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

CORE = Path(__file__).parents[2] / "xco" / "core"
LINK_BPS = 100_000_000
SENDERS = 4
WINDOW_S = 0.8
STRAYS = 20
"""Packets lost in two seconds, of 16,000: where a loop slept through a slice of 2 ms."""
CARRIED_PPS = LINK_BPS / 8 / 1514
"""Full-sized frames that the port carries a second."""
UNCOORDINATED_S = 2.5
"""Longer than a spell in which one of four happens to get through (7 to 60 Mb/s in 0.8 s)."""
FALLBACK = 0
"""How gates stand, as a coordinator publishes it (xco/coordinator.py)."""


@pytest.fixture(scope="module")
def _core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build the programs apart from what others build."""
    folder = tmp_path_factory.mktemp("core")
    command = ["make", "-s", "-C", str(CORE), f"BUILD={folder}"]
    subprocess.run(command, check=True, capture_output=True, timeout=50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XCO_CORE", str(folder))
        yield


@pytest.fixture(scope="module")
def xco(_core: None) -> Iterator[XcoRig]:
    with Fabric(f"x{os.getpid()}") as fabric:
        fabric.incast(SENDERS, LINK_BPS, buffer_bytes=32_000)
        with rig(fabric) as made:
            yield made.go("timeslice")


@pytest.fixture
def sink(xco: XcoRig) -> Iterator[Traffic[MessagesReceived]]:
    """All senders send messages of 64 KB as fast as they get."""
    fabric = xco.fabric
    with ExitStack() as stack:
        sink = stack.enter_context(roles.sink_messages(fabric.place(fabric.receivers[0])))
        to = fabric.receivers[0].address
        for host in fabric.senders:
            stack.enter_context(roles.send_messages(fabric.place(host), to))
        time.sleep(0.3)
        yield sink


def shares(sink: Traffic[MessagesReceived], seconds: float = WINDOW_S) -> list[float]:
    """Return what each source got through, in whole messages."""
    before = sink.counts()
    time.sleep(seconds)
    return list(shares_bps(before, sink.counts()).values())


def modes(xco: XcoRig) -> set[int]:
    return {xco.host_counters(host)["mode"] for host in xco.fabric.senders}


def test_coordinated_senders_lose_nothing_and_share_alike(
    xco: XcoRig, sink: Traffic[MessagesReceived]
) -> None:
    before = xco.fabric.drops()
    got = shares(sink, 2.0)
    assert xco.fabric.drops() - before <= STRAYS
    assert sum(got) > 0.7 * LINK_BPS
    assert len(got) == SENDERS
    assert unequal(got) < 0.15


def test_a_sender_alone_whose_slices_are_renewed_keeps_to_its_pace(xco: XcoRig) -> None:
    fabric = xco.fabric
    to = fabric.receivers[0]
    with ExitStack() as stack:
        sink = stack.enter_context(roles.sink_messages(fabric.place(to)))
        stack.enter_context(roles.send_messages(fabric.place(fabric.senders[0]), to.address))
        time.sleep(0.3)
        before = fabric.drops()
        got = shares(sink, 1.2)
        assert fabric.drops() - before <= 2, "no queue stands at the port"
    assert 0.8 * LINK_BPS < sum(got) < LINK_BPS


def test_without_coordination_the_same_traffic_loses_most_messages(xco: XcoRig) -> None:
    fabric = xco.fabric
    xco.go("uncoordinated")
    try:
        with ExitStack() as stack:
            sink = stack.enter_context(roles.sink_messages(fabric.place(fabric.receivers[0])))
            for host in fabric.senders:
                to = fabric.receivers[0].address
                stack.enter_context(roles.send_messages(fabric.place(host), to))
            time.sleep(0.3)
            before = fabric.drops()
            got = shares(sink, UNCOORDINATED_S)
            assert fabric.drops() - before > CARRIED_PPS * UNCOORDINATED_S, "most are lost"
            assert sum(got) < 0.6 * LINK_BPS
    finally:
        xco.go("timeslice")


def test_traffic_goes_on_without_the_controller_and_comes_back_under_it(
    xco: XcoRig, sink: Traffic[MessagesReceived]
) -> None:
    xco.kill_controller()
    xco.wait_until(lambda: modes(xco) == {FALLBACK}, "all hosts fell back")
    before = xco.fabric.drops()
    got = shares(sink)
    assert sum(got) > 0.6 * LINK_BPS
    assert unequal(got) < 0.3
    assert xco.fabric.drops() - before < 50, "safe shares congest nothing"
    xco.start_controller()
    xco.wait_until(xco.joined, "all hosts are under control again")
    slices = xco.controller_counters()["slices_started"]
    assert unequal(shares(sink)) < 0.2
    assert xco.controller_counters()["slices_started"] > slices + 50


@pytest.mark.parametrize("killed", ["loop", "guard"])
def test_traffic_goes_on_unshaped_when_a_coordinator_is_killed(
    xco: XcoRig, sink: Traffic[MessagesReceived], killed: str
) -> None:
    host = xco.fabric.senders[0]
    guard = xco.coordinator(host)
    children = Path(f"/proc/{guard.pid}/task/{guard.pid}/children").read_text().split()
    os.kill(int(children[0]) if killed == "loop" else guard.pid, signal.SIGKILL)
    guard.wait(3)
    xco.wait_until(lambda: "htb" not in root_of(xco), "the gates are gone")
    before = sink.counts().sources[host.address].bytes
    sent = xco.fabric.inside(host, sent_bytes)
    time.sleep(WINDOW_S)
    assert xco.fabric.inside(host, sent_bytes) - sent > 0.5 * LINK_BPS / 8 * WINDOW_S
    assert sink.counts().sources[host.address].bytes >= before
    xco.start_coordinator(host)
    xco.wait_until(xco.joined, "all hosts are under control again")
    time.sleep(0.5)  # for what it had sent unshaped to arrive
    assert unequal(shares(sink)) < 0.3


def root_of(xco: XcoRig) -> str:
    """Return the first sender's queues, as tc shows them."""
    command = ["tc", "-n", Path(xco.fabric.netns(xco.fabric.senders[0])).name, "qdisc", "show"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sent_bytes() -> int:
    """Return the bytes that eth0 has sent, from /proc/net/dev of the calling thread."""
    lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    row = next(line for line in lines if line.strip().startswith("eth0:"))
    return int(row.partition(":")[2].split()[8])


def test_a_coordinator_with_nothing_to_do_sleeps(xco: XcoRig) -> None:
    host = xco.fabric.receivers[0]
    time.sleep(0.3)  # for what the traffic before has left to go away
    before = xco.host_counters(host)
    time.sleep(WINDOW_S)
    after = xco.host_counters(host)
    woken, told = (after[key] - before[key] for key in ("wakes", "reports"))
    assert told > 0
    assert woken < 8 * told, "beyond reports, directives and a look each, nothing wakes it"
