"""Laws of the simulator on random small networks: conservation, order, and no loss where Z is."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zovn.simulate.engine import run
from zovn.simulate.results import Result
from zovn.simulate.scenario import (
    ALGORITHMS,
    MODES,
    Buffers,
    Fabric,
    Flow,
    Queries,
    Scenario,
    Tcp,
)

FOLDER = Path(__file__).parents[3] / "zovn" / "core" / "simulate"
VIRTUAL = frozenset({"host_to_vm", "host_to_chassis"})


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    subprocess.run(["make", "-s", "-C", FOLDER], check=True, timeout=60)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    pods = draw(st.integers(1, 2))
    return Fabric(
        pods=pods,
        chassis=pods * draw(st.integers(1, 2)),
        servers=draw(st.integers(2, 4)),
        vms=draw(st.integers(1, 3)),
        aggregations=draw(st.integers(1, 2)),
        cores=draw(st.integers(1, 2)),
        vm_bps=draw(st.sampled_from([5e9, 10e9, 40e9])),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    fabric = draw(fabrics())
    vms = st.tuples(
        st.integers(0, fabric.chassis * fabric.servers - 1), st.integers(0, fabric.vms - 1)
    )
    ends = draw(st.lists(st.tuples(vms, vms), min_size=1, max_size=25))
    return Scenario(
        mode=draw(st.sampled_from(MODES)),
        fabric=fabric,
        buffers=Buffers(
            virtual_queue=draw(st.integers(5, 64)),
            port=draw(st.integers(22_000, 60_000)),
            blocking=draw(st.booleans()),
        ),
        tcp=Tcp(
            algorithm=draw(st.sampled_from(ALGORITHMS)),
            restart_idle=draw(st.booleans()),
            initial_window=draw(st.integers(1, 46)),
        ),
        queries=Queries(count=0),
        flows=tuple(
            draw(flows(source, destination))
            for source, destination in ends
            if source != destination
        ),
        seed=draw(st.integers(0, 99)),
    )


@st.composite
def flows(draw: st.DrawFn, source: tuple[int, int], destination: tuple[int, int]) -> Flow:
    return Flow(
        source=source,
        destination=destination,
        size=draw(st.integers(1, 200_000)),
        start_s=draw(st.floats(0, 1e-3)),
        traffic_class=draw(st.integers(0, 1)),
        datagrams=draw(st.booleans()),
    )


def lossless(scenario: Scenario, place: str) -> bool:
    return scenario.mode[0 if place in VIRTUAL else 1] == "Z"


def check_conservation(scenario: Scenario, result: Result) -> None:
    sent = result.segments_sent + result.datagrams_sent
    assert sent == result.segments_received + result.datagrams_received + result.drops
    assert result.left == 0
    complete = [time is not None for time in result.flow_s]
    assert complete == [not flow.datagrams for flow in scenario.flows]


@given(scenarios())
def test_all_arrives_or_was_dropped_where_loss_is_allowed(scenario: Scenario) -> None:
    result = run(scenario)
    check_conservation(scenario, result)
    assert result.overruns == 0
    assert not any(lossless(scenario, place) for place in result.dropped)


@given(scenarios())
def test_what_is_not_dropped_is_not_reordered(scenario: Scenario) -> None:
    result = run(scenario)
    if result.drops == 0:
        assert result.reordered == 0
    if scenario.mode == "ZZ":
        assert result.drops == 0
        assert result.recoveries == 0
