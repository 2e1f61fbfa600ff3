"""Frames that are lost while the kernel exchanges an interface's queues are counted, and said."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator

import pytest
from support.inconclusive import inconclusive
from support.waiting import PATIENCE_S

from benchmarks.xco.gates.rig import DEEP_ROOM_BYTES, Capture, Rig, rig
from xco.coordinator.status import status
from xco.protocol.wire import Mode, Waiting

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
COUNTED_SINCE = (6, 11)
"""The first Linux that counts what it drops during an exchange."""
SMALL = 60
"""Bytes of a datagram that waits for no gate."""
PACKETS_PER_S, PACKETS = 5_000, 30_000


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcoxl") as made:
        yield made


def said(bench: Rig) -> int:
    """Return how many frames were lost, by the log."""
    lines = re.findall(r"e0: (\d+) frames were lost while its queues", bench.log.read_text())
    return sum(map(int, lines))


def take(capture: Capture, numbers: set[int]) -> None:
    numbers.update(number for _, number, _ in capture.take())


def live(bench: Rig, capture: Capture, numbers: set[int]) -> None:
    """Start a coordinator, and end it."""
    before = bench.log.read_text().count("gates stand")
    # the largest share, so that nothing waits: what begins to wait during an exchange is not said
    running = bench.start(bench.config(bypass_share=0.5))
    while bench.log.read_text().count("gates stand") == before:
        take(capture, numbers)
    running.process.terminate()
    assert running.process.wait(PATIENCE_S) == 0


def test_what_an_exchange_loses_of_traffic_that_goes_on_is_said(bench: Rig) -> None:
    """Both numbers are printed (-rP shows them)."""
    if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < COUNTED_SINCE:
        pytest.skip("this kernel does not count what it drops during an exchange")
    capture, numbers = bench.capture(), set[int]()
    sender = bench.send(rate=PACKETS_PER_S, size=SMALL, count=PACKETS)
    while sender.poll() is None:
        live(bench, capture, numbers)
        take(capture, numbers)
    take(capture, numbers)
    lost = PACKETS - len(numbers)
    if lost == 0:
        inconclusive("no frame was sent during an exchange")
    print(f"{lost} lost, {said(bench)} said")  # noqa: T201
    assert lost <= said(bench) <= lost + 10, "others may have been lost: the hosts' own frames"


def test_what_waits_in_queues_that_are_lost_is_counted_and_said(bench: Rig) -> None:
    stand_in, running = bench.stand_in(), bench.start(bench.config())
    stand_in.wait_for(lambda: stand_in.reports)
    bench.send(rate=PACKETS_PER_S, count=1_000, room=DEEP_ROOM_BYTES)
    stand_in.keep_until(lambda: held(stand_in.reports[-1].waiting) >= 500, Mode.CLOSED)
    least = held(stand_in.reports[-1].waiting)
    change = ["ip", "-n", bench.near, "link", "set", "e0", "mtu", "1400"]
    subprocess.run(change, check=True)
    stand_in.keep_until(lambda: running.statistics().values["remakes"] == 1, Mode.CLOSED)
    counted = status(running.config).counters["exchange_lost"]
    assert least <= counted <= 1_010
    assert said(bench) == counted


def held(waiting: Iterable[Waiting]) -> int:
    """Return how many frames wait, by a report."""
    return sum(entry.backlog_bytes for entry in waiting) // 1442
