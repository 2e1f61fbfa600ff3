"""The three phases of the lab's dumbbell on real packets, with a port that marks."""

import os
from collections.abc import Iterator

import pytest

from benchmarks.xco.gcc_ways import WAYS, enter, lacks
from benchmarks.xco.phases import PHASES, Load, run
from benchmarks.xco.phases_judged import judge
from benchmarks.xco.rig import XcoRig, rig
from lab.fabric.fabric import Fabric

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(300),
]
PORT_BPS, BUFFER_BYTES, SENDERS, PHASE_S = 20_000_000, 60_000, 3, 1.0


@pytest.fixture
def xco() -> Iterator[XcoRig]:
    """Three senders, one more for mice, and a foreign one."""
    with Fabric(f"d{os.getpid()}") as fabric:
        fabric.incast(SENDERS + 2, PORT_BPS, BUFFER_BYTES)
        with rig(fabric, foreign=[fabric.senders[-1]]) as made:
            yield made


@pytest.mark.parametrize("name", WAYS)
def test_each_way_runs_its_three_phases(xco: XcoRig, name: str) -> None:
    way, said = WAYS[name], list[str]()
    if reason := lacks(way):
        pytest.skip(reason)
    mice, foreign = xco.fabric.senders[SENDERS:]
    load = Load(SENDERS, "udp", way.congestion, foreign, PORT_BPS // 5, mice, sequences=1)
    enter(xco, way, SENDERS)
    recording = run(xco.fabric, load, PHASE_S, said.append)
    found = judge(recording, PORT_BPS, 0.2)
    assert tuple(said) == PHASES
    assert found.phases_mbps[0] == 0
    assert found.used[1] > 0
    assert recording.samples[-1].bytes[1] > recording.samples[0].bytes[1]
    assert found.mice is not None
    assert way.marks or found.marks == 0


def test_a_port_that_floods_fill_marks_what_a_shim_makes_capable(xco: XcoRig) -> None:
    """Budgets prevent marks; a foreign flood through the same port leaves no room for them."""
    fabric = xco.fabric
    enter(xco, WAYS["gcc"], SENDERS)
    load = Load(SENDERS, foreign=fabric.senders[-1], foreign_bps=PORT_BPS)
    found = judge(run(fabric, load, PHASE_S), PORT_BPS)
    counts = fabric.marked("s1", fabric.receivers[0].name)
    assert 0 < found.marks <= counts.capable < counts.packets
    assert fabric.senders[-1] not in xco.hosts
