"""The simulator on cases whose answer is known: shares, losses, slices, fairness."""

import tracemalloc
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from xco.errors import ConfigError
from xco.simulate import Result, Scenario, run
from xco.simulate.traffic import Traffic, flows, halves, shuffled
from xco.topology.graph import Topology
from xco.topology.shapes import dumbbell, star_topology, tree_topology

COORDINATED = ("rate", "timeslice", "hybrid")


def incast(senders: int, *, tcp: int = 0) -> tuple[Topology, Traffic]:
    receiver = np.full(senders, senders)
    return star_topology(senders + 1, "1Gbps"), flows(np.arange(senders), receiver, tcp=tcp)


def uplink(senders: int) -> tuple[Topology, Traffic]:
    topology = dumbbell(senders, senders, "1Gbps", "10Gbps")
    return topology, flows(np.arange(senders), np.arange(senders) + senders)


def simulated(place: tuple[Topology, Traffic], strategy: str, **what: object) -> Result:
    topology, traffic = place
    scenario = Scenario(topology=topology, traffic=traffic, duration_ns=200_000_000)
    return run(replace(scenario, strategy=strategy, **what))


def same(result: Result) -> Result:
    """Leave out what differs between two runs of one scenario."""
    return msgspec.structs.replace(result, speed=None)


@pytest.mark.parametrize("senders", [1, 2, 3, 5, 16])
def test_greedy_senders_to_one_port_lose_all_but_one_share(senders: int) -> None:
    result = simulated(incast(senders), "uncoordinated", buffer_bytes=0)
    assert result.loss == pytest.approx(1 - 1 / senders, abs=1e-9)
    assert result.goodput_bps == pytest.approx(1e9)
    assert result.fairness == pytest.approx(1)


@pytest.mark.parametrize(
    ("senders", "loss"), [(1, 0.0), (9, 0.0), (10, 0.0), (11, 1 / 11), (13, 3 / 13)]
)
def test_an_uplink_of_ten_loses_what_is_more(senders: int, loss: float) -> None:
    result = simulated(uplink(senders), "uncoordinated", buffer_bytes=0)
    assert result.loss == pytest.approx(loss, abs=1e-9)
    assert result.layers[1].example == "left > right"
    assert result.layers[1].utilisation == pytest.approx(min(senders / 10, 1))


def test_a_buffer_takes_in_just_its_size() -> None:
    result = simulated(incast(2), "uncoordinated", buffer_bytes=64_000)
    assert result.queued_bytes == pytest.approx(64_000)
    assert result.sent_bytes - result.delivered_bytes - result.dropped_bytes == pytest.approx(
        64_000
    )


def test_the_papers_tree_loses_half_at_the_racks_and_nine_tenths_in_the_core() -> None:
    topology = tree_topology(2)
    result = simulated((topology, halves(topology)), "uncoordinated", buffer_bytes=0)
    assert [layer.links for layer in result.layers] == [200, 10, 1, 1, 10, 200]
    assert result.layers[1].loss == pytest.approx(0.5)
    assert result.layers[2].loss == pytest.approx(0.9)
    assert result.loss == pytest.approx(0.95)


@pytest.mark.parametrize("strategy", COORDINATED)
@pytest.mark.parametrize("place", [incast(5), uplink(13)], ids=["incast", "uplink"])
def test_coordination_loses_nothing_and_fills_the_link(
    place: tuple[Topology, Traffic], strategy: str
) -> None:
    result = simulated(place, strategy, buffer_bytes=1)
    assert result.dropped_bytes == pytest.approx(0, abs=1e-3)
    assert result.layers[1].utilisation > 0.99
    assert result.application_bps > 0.98 * result.goodput_bps


@pytest.mark.parametrize("strategy", COORDINATED)
def test_the_papers_tree_coordinated_loses_nothing_and_fills_the_core(strategy: str) -> None:
    topology = tree_topology(2)
    result = simulated((topology, halves(topology)), strategy, buffer_bytes=1)
    assert result.loss < 1e-9
    assert result.layers[2].utilisation > 0.99


def test_slices_are_shared_equally_among_equals() -> None:
    result = simulated(incast(5), "timeslice", duration_ns=1_000_000_000)
    assert result.fairness > 0.999
    assert result.starved_flows == 0


def test_the_published_algorithm_serves_everybody_too() -> None:
    result = simulated(incast(5), "timeslice", policy="published", engine="python")
    assert result.loss == 0
    assert result.starved_flows == 0
    assert result.layers[1].utilisation > 0.99


def test_one_flow_at_a_time_crosses_a_port_of_its_own_rate() -> None:
    result = simulated(incast(4), "timeslice", slice_ns=2_000_000, duration_ns=2_000_000)
    assert sorted(flow.goodput_bps for flow in result.flow) == pytest.approx([0, 0, 0, 1e9])


def test_rates_are_the_bottlenecks_share() -> None:
    result = simulated(uplink(13), "rate")
    shares = [flow.sent_bps for flow in result.flow]
    assert shares == pytest.approx([10e9 / 13] * 13)


def test_hybrid_fills_what_slices_leave() -> None:
    star = star_topology(4, "1Gbps")
    links = (*star.links[:3], type(star.links[3])("h4", "switch", 1_500_000_000))
    topology = Topology(star.switches, star.hosts, links)
    traffic = flows(np.arange(3), np.full(3, 3))
    strict = simulated((topology, traffic), "timeslice", policy="published", engine="python")
    filled = simulated((topology, traffic), "hybrid", policy="published", engine="python")
    assert strict.layers[1].utilisation == pytest.approx(2 / 3, abs=0.01)
    assert filled.layers[1].utilisation > 0.99
    assert filled.loss < 1e-9


def test_unused_slices_go_to_those_who_wait() -> None:
    topology, greedy = incast(5)
    rates = np.array([50e6, 50e6, 50e6, np.inf, np.inf])
    traffic = Traffic(greedy.source, greedy.destination, rates, greedy.windowed)
    result = simulated((topology, traffic), "timeslice", duration_ns=1_000_000_000)
    slow = [flow.goodput_bps for flow in result.flow[:3]]
    assert result.layers[1].utilisation > 0.95
    assert slow == pytest.approx([50e6] * 3, rel=0.05)


def test_messages_collapse_while_the_link_stays_full() -> None:
    result = simulated(incast(2), "uncoordinated")
    assert result.goodput_bps > 0.99e9
    assert result.application_bps < 0.01 * result.goodput_bps


def test_longer_runs_of_losses_spare_messages() -> None:
    independent = simulated(uplink(11), "uncoordinated", burst=1.0)
    in_runs = simulated(uplink(11), "uncoordinated", burst=8.0)
    assert independent.loss == in_runs.loss
    assert 0 < independent.application_bps < in_runs.application_bps < in_runs.goodput_bps


def test_tcp_alone_fills_the_link_and_starves_beside_udp() -> None:
    alone = simulated(incast(5, tcp=5), "uncoordinated", duration_ns=800_000_000)
    beside = simulated(incast(5, tcp=4), "uncoordinated", duration_ns=800_000_000)
    assert alone.goodput_bps > 0.85e9
    tcp = sum(flow.goodput_bps for flow in beside.flow if flow.kind == "tcp")
    assert tcp < 0.1 * beside.goodput_bps
    assert beside.timeouts > 0


def test_tcp_keeps_its_share_in_timeslices() -> None:
    result = simulated(incast(5, tcp=3), "timeslice", duration_ns=800_000_000)
    assert result.timeouts == 0
    assert result.fairness > 0.98
    assert result.layers[1].utilisation > 0.9


def test_the_same_seed_gives_the_same_run_and_another_does_not() -> None:
    topology = tree_topology(1, 2, 4)
    traffic = shuffled(topology, rate_bps=3e8, seed=7)
    first, again = (simulated((topology, traffic), "timeslice", seed=7) for _ in range(2))
    other = simulated((topology, traffic), "timeslice", seed=8)
    assert same(first) == same(again)
    assert same(first) != same(other)


def test_memory_grows_with_flows_and_not_with_pairs_of_hosts() -> None:
    topology = tree_topology(10)
    traffic = halves(topology)
    tracemalloc.start()
    simulated((topology, traffic), "rate", duration_ns=2_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000 * len(topology.hosts)


@pytest.mark.parametrize(
    ("what", "key"),
    [
        ({"slot_ns": 0}, "slot"),
        ({"slot_ns": 300_000}, "slice"),
        ({"slice_ns": 100_000}, "slice"),
        ({"duration_ns": 0}, "seconds"),
        ({"frame_bytes": 0}, "frame"),
        ({"burst": float("nan")}, "burst"),
        ({"buffer_bytes": -1}, "buffer"),
        ({"engine": "python", "policy": "fair"}, "policy"),
    ],
)
def test_what_makes_no_sense_is_named(what: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        simulated(incast(2), "uncoordinated", **what)
    assert caught.value.key == key
    assert caught.value.fix


@pytest.mark.parametrize(("source", "destination"), [([], []), ([0], [0]), ([0], [9]), ([-1], [0])])
def test_flows_that_cannot_be_are_refused(source: list[int], destination: list[int]) -> None:
    traffic = flows(np.array(source, np.int64), np.array(destination, np.int64))
    with pytest.raises(ConfigError, match="traffic"):
        simulated((star_topology(3, "1Gbps"), traffic), "uncoordinated")


def test_an_odd_number_of_hosts_has_no_halves() -> None:
    with pytest.raises(ConfigError, match="halves"):
        halves(star_topology(3, "1Gbps"))


def frame_by_frame(rates: list[float], buffer: int, seconds: float) -> float:
    """Return the loss of a tail-drop port of 1 Gb/s, to which messages come at line rate."""
    noise, frame, frames = np.random.default_rng(1), 1_490, 44
    arrivals = []
    for rate in rates:
        period = frame * frames * 8 / rate
        begins = np.arange(noise.random() * period, seconds, period)
        arrivals.append((begins[:, None] + np.arange(frames) * frame * 8e-9).ravel())
    instants = np.sort(np.concatenate(arrivals))
    queued, before, lost = 0.0, 0.0, 0
    for instant in instants.tolist():
        queued = max(0.0, queued - (instant - before) * 1e9 / 8)
        before = instant
        if queued + frame > buffer:
            lost += 1
        else:
            queued += frame
    return lost / len(instants)


@pytest.mark.parametrize(
    ("rates", "buffer"),
    [([9e8, 9e8], 32_000), ([4e8, 5e8, 3e8], 32_000), ([4e8, 5e8, 3e8], 128_000)],
)
def test_slots_lose_what_a_port_loses_frame_by_frame(rates: list[float], buffer: int) -> None:
    topology, greedy = incast(len(rates))
    traffic = Traffic(greedy.source, greedy.destination, np.array(rates), greedy.windowed)
    times = {"slot_ns": 100_000, "slice_ns": 100_000, "duration_ns": 500_000_000}
    result = simulated((topology, traffic), "uncoordinated", buffer_bytes=buffer, **times)
    assert result.loss == pytest.approx(frame_by_frame(rates, buffer, 0.5), abs=0.03)
