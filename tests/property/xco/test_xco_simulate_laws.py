"""Laws of the simulator, for any small tree and traffic: nothing is lost but what is counted."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import part

from xco.arrays import Floats, jain
from xco.simulate import Result, Scenario, run
from xco.simulate.coordination import RateLimits
from xco.simulate.engine import emitted
from xco.simulate.fill import equal_shares, max_min
from xco.simulate.messages import Messages
from xco.simulate.ports import Ports
from xco.simulate.routes import Routes, routes
from xco.simulate.scenario import Engine, Policy, Strategy
from xco.simulate.traffic import Traffic
from xco.simulate.windows import Windows
from xco.topology.graph import Paths, Topology
from xco.topology.shapes import tree_topology

CAPACITY = 125_000.0
ROUNDING = 1e-6
strategies = st.sampled_from(["uncoordinated", "rate", "timeslice", "hybrid"])
coordinated = st.sampled_from(["rate", "timeslice", "hybrid"])
choices = st.sampled_from(
    [("published", "native"), ("fair", "native"), ("fair", "native"), ("published", "python")]
)
Choice = tuple[Policy, Engine]


@st.composite
def places(draw: st.DrawFn, *, tcp: bool = True) -> tuple[Topology, Traffic]:
    """Draw a tree with slow or fast uplinks, and up to a dozen flows of all kinds in it."""
    rows, racks, hosts = (draw(st.integers(1, 3)) for _ in range(3))
    uplink = draw(st.sampled_from(["500Mbps", "1Gbps", "1500Mbps", "10Gbps"]))
    topology = tree_topology(rows, racks, max(hosts, 2), uplink=uplink)
    host = st.integers(0, len(topology.hosts) - 1)
    ends = st.tuples(host, host).filter(lambda pair: pair[0] != pair[1])
    rate = st.one_of(st.just(np.inf), st.floats(1e6, 2e9))
    drawn = draw(st.lists(st.tuples(ends, rate, st.booleans()), min_size=1, max_size=12))
    windowed = np.array([tcp and is_tcp for _, _, is_tcp in drawn])
    rates = np.where(windowed, np.inf, [rate for _, rate, _ in drawn])
    pairs = np.array([pair for pair, _, _ in drawn])
    return topology, Traffic(pairs[:, 0], pairs[:, 1], rates, windowed)


def simulated(
    place: tuple[Topology, Traffic], strategy: Strategy, choice: Choice, buffer: int, seed: int
) -> Result:
    topology, traffic = place
    policy, engine = choice
    scenario = Scenario(
        topology=topology,
        traffic=traffic,
        strategy=strategy,
        policy=policy,
        engine=engine,
        duration_ns=20_000_000,
        buffer_bytes=buffer,
        seed=seed,
    )
    return run(scenario)


def ways(topology: Topology, traffic: Traffic) -> Routes:
    paths = Paths(topology)
    ends = zip(traffic.source.tolist(), traffic.destination.tolist(), strict=True)
    return routes(paths.path(*pair) for pair in ends)


def directed(topology: Topology) -> Floats:
    capacities = [float(link.capacity_bps) for link in topology.links]
    return np.repeat(capacities, 2)


@settings(max_examples=part(40))
@given(places(), strategies, choices, st.integers(0, 200_000), st.integers(0, 9))
def test_every_byte_is_somewhere(
    place: tuple[Topology, Traffic], strategy: Strategy, choice: Choice, buffer: int, seed: int
) -> None:
    result = simulated(place, strategy, choice, buffer, seed)
    somewhere = result.delivered_bytes + result.dropped_bytes + result.queued_bytes
    assert result.sent_bytes == pytest.approx(somewhere, abs=ROUNDING)
    assert result.offered_bytes == pytest.approx(
        result.sent_bytes + result.waiting_bytes, abs=ROUNDING
    )
    assert all(-ROUNDING < layer.utilisation < 1 + ROUNDING for layer in result.layers)
    assert all(0 <= layer.loss <= 1 for layer in result.layers)
    begun = 8 * 65_536 * result.flows / 0.02  # of each flow a message may have begun before
    assert result.application_bps <= result.goodput_bps * (1 + ROUNDING) + begun
    assert 0 < result.fairness <= 1 + ROUNDING


@settings(max_examples=part(40))
@given(places(), coordinated, choices, st.integers(0, 9))
def test_senders_within_their_grants_lose_nothing(
    place: tuple[Topology, Traffic], strategy: Strategy, choice: Choice, seed: int
) -> None:
    result = simulated(place, strategy, choice, 1, seed)
    assert result.dropped_bytes < ROUNDING
    assert result.queued_bytes <= 1 * 6 * len(place[1])
    assert result.timeouts == 0


@settings(max_examples=part(60))
@given(places(tcp=False), st.data())
def test_ports_keep_their_bounds_in_every_slot(
    place: tuple[Topology, Traffic], data: st.DataObject
) -> None:
    topology, traffic = place
    way = ways(topology, traffic)
    room = directed(topology) * 1e-4 / 8
    buffer = np.full(len(room), data.draw(st.floats(0, 1e5)))
    ports = Ports(way, room, buffer)
    noise = np.random.default_rng(data.draw(st.integers(0, 99)))
    inside = 0.0
    for _ in range(data.draw(st.integers(1, 8))):
        sent = noise.random(len(traffic)) * data.draw(st.floats(0, 3 * CAPACITY))
        passage = ports.forward(sent)
        inside += float((sent - passage.delivered - passage.dropped).sum())
        assert inside == pytest.approx(ports.held, abs=ROUNDING)
        assert (passage.delivered >= 0).all()
        assert (passage.dropped >= 0).all()
        assert ((passage.kept >= 0) & (passage.kept <= 1)).all()
        for port in ports.stages:
            assert (port.held <= buffer[0] + ROUNDING).all()
    for port in ports.stages:
        assert (port.dropped <= port.arrived + ROUNDING).all()


@settings(max_examples=part(60))
@given(places(tcp=False), st.data())
def test_shares_never_exceed_a_link(place: tuple[Topology, Traffic], data: st.DataObject) -> None:
    topology, traffic = place
    way, capacity = ways(topology, traffic), directed(topology)
    senders = np.array([data.draw(st.booleans()) for _ in range(len(traffic))])
    given_rates = equal_shares(way, capacity, senders)
    assert (way.load(given_rates, len(capacity)) <= capacity * (1 + 1e-12)).all()
    assert ((given_rates > 0) == senders).all()
    limits = RateLimits(way, capacity)
    assert limits.rates(0, senders).tolist() == given_rates.tolist()
    before = limits.decisions
    limits.rates(1, senders)
    assert limits.decisions == before


@settings(max_examples=part(60))
@given(places(tcp=False), st.data())
def test_max_min_rates_are_held_by_a_full_link_that_gives_nobody_more(
    place: tuple[Topology, Traffic], data: st.DataObject
) -> None:
    topology, traffic = place
    way, capacity = ways(topology, traffic), directed(topology)
    senders = np.array([data.draw(st.booleans()) for _ in range(len(traffic))])
    rates = max_min(way, capacity, senders)
    load = way.load(rates, len(capacity))
    assert (load <= capacity * (1 + 1e-9)).all()
    assert (rates[~senders] == 0).all()
    for flow in np.flatnonzero(senders):
        path = way.hops[way.flow_of_hop == flow]
        full = [link for link in path if load[link] >= capacity[link] * (1 - 1e-9)]
        others = [rates[way.flow_of_hop[way.hops == link]].max() for link in full]
        assert any(other <= rates[flow] * (1 + 1e-9) for other in others)


@settings(max_examples=part(60))
@given(places(tcp=False))
def test_stages_rise_along_every_path(place: tuple[Topology, Traffic]) -> None:
    way = ways(*place)
    stage_of = {int(link): at for at, stage in enumerate(way.stages) for link in stage.links}
    for flow in range(len(way.offsets)):
        path = way.hops[way.flow_of_hop == flow].tolist()
        numbers = [stage_of[link] for link in path]
        assert numbers[0] == 0
        assert all(a < b for a, b in pairwise(numbers))


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e7)), min_size=1, max_size=12))
def test_a_host_sends_at_most_what_its_link_takes(wants: list[tuple[int, float]]) -> None:
    source = np.array([host for host, _ in wants])
    wanted = np.array([want for _, want in wants])
    sent = emitted(wanted, source, np.full(len(wants), CAPACITY))
    assert (sent <= wanted).all()
    for host in set(source.tolist()):
        total = wanted[source == host].sum()
        assert sent[source == host].sum() == pytest.approx(min(total, CAPACITY))


slots = st.lists(st.tuples(st.floats(0, 3e5), st.floats(0, 1)), min_size=1, max_size=30)


@given(slots, st.floats(1, 50))
def test_messages_arrive_whole_at_most_as_often_as_they_are_sent(
    drawn: list[tuple[float, float]], burst: float
) -> None:
    lossy, longer, clean = (Messages(1, 65_536, 1_500, b) for b in (1.0, burst, 1.0))
    for sent, kept in drawn:
        lossy.sent(np.array([sent]), np.array([kept]))
        longer.sent(np.array([sent]), np.array([kept]))
        clean.sent(np.array([sent]), np.ones(1))
    assert (
        clean.complete[0]
        == clean.whole[0]
        == pytest.approx(sum(s for s, _ in drawn) // 65_536, abs=1)
    )
    assert 0 <= lossy.whole[0] <= longer.whole[0] * (1 + 1e-9)
    assert longer.whole[0] <= longer.complete[0] * (1 + 1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_windows_stay_within_bounds_and_time_out_one_by_one(losses: list[float]) -> None:
    windows = Windows(np.array([True]), frame=1_500, timeout_slots=10, most=100_000)
    silent = 0
    for slot, loss in enumerate(losses):
        room = windows.room(slot)
        assert ((room == 0) | ((room >= 1_500) & (room <= 100_000))).all()
        silent = 0 if room[0] else silent + 1
        assert silent <= 10 << 6
        windows.answered(slot, room, room * (1 - loss), room * loss)
    assert windows.timeouts[0] <= len(losses)


@given(st.lists(st.floats(0, 1e10), min_size=1, max_size=50))
def test_jains_index_is_between_one_nth_and_one(values: list[float]) -> None:
    index = jain(np.array(values))
    assert 1 / len(values) - ROUNDING <= index <= 1 + ROUNDING
