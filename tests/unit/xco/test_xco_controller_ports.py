"""The strategy `gcc`: what hosts may share of a port that is reported, in simulated time."""

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_controller_rig import MASTER, Node, node_library
from xco_controller_scenes import EPOCH, MS, Scene, loop_file
from xco_counters_rig import GBPS, Counters

from xco.laws.budget import DEFAULT, Budget, PortPeriod, observed, shared_bps
from xco.protocol.keys import derive
from xco.protocol.messages import Flag, Header, Mode, Port, Report, Status, Waiting
from xco.protocol.wire import AGENT, Welcome, authenticated, encode
from xco.topology.shapes import dumbbell, star_topology

AIM, SWITCH, SINK = 0.98, 4, 3
SETTINGS: dict[str, object] = {"strategy": "gcc", "pace": AIM, "silence": "30s", "drop": "60s"}
"""Hosts are not taken for silent."""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(
        tmp_path, star_topology(4, "1Gbps"), strategy="gcc", pace=AIM, silence="30s", drop="60s"
    )
    made.join()
    yield made
    made.node.close()


@pytest.fixture
def port(scene: Scene) -> Counters:
    """The port towards the receiver, reported by it; two hosts send."""
    for host in (0, 1):
        scene.report(host, SINK)
    return Counters(scene, SWITCH, SINK, SINK)


def granted(scene: Scene) -> float:
    """Return what the two senders may send together, as a share of the link."""
    for host in (0, 1):
        scene.report(host, SINK)
    scene.run_until(scene.now_ns + 2 * MS)
    return sum(scene.hosts[host].directive.permits[0].rate_bps for host in (0, 1)) / GBPS


def test_a_port_that_is_not_reported_counts_as_the_topology_states(scene: Scene) -> None:
    for host in (0, 1):
        scene.report(host, SINK)
    assert granted(scene) == pytest.approx(AIM, rel=1e-3)
    assert scene.hosts[0].directive.mode is Mode.RATE


def test_foreign_traffic_is_left_out(scene: Scene, port: Counters) -> None:
    port.run(300, used=0.98, coordinated=0.68)
    assert granted(scene) == pytest.approx(AIM - 0.3, abs=0.01)
    port.run(300, used=0.7, coordinated=0.7)
    assert granted(scene) == pytest.approx(AIM, rel=1e-3)


def test_shares_stay_equal(scene: Scene, port: Counters) -> None:
    port.run(300, used=0.98, coordinated=0.68)
    granted(scene)
    rates = [scene.hosts[host].directive.permits[0].rate_bps for host in (0, 1)]
    assert rates[0] == pytest.approx(rates[1], rel=1e-6)


def test_a_port_slower_than_stated_is_found_by_its_marks(scene: Scene, port: Counters) -> None:
    port.run(100, used=0.5, coordinated=0.5, marked=1.0)
    assert granted(scene) == pytest.approx(AIM * 0.5, abs=0.01)


def test_marks_of_bursts_take_nothing(scene: Scene, port: Counters) -> None:
    port.run(300, used=0.5, coordinated=0.5, marked=0.5)
    assert granted(scene) == pytest.approx(AIM, rel=1e-3)


def test_marks_that_were_lost_on_the_way_are_in_the_next_message(
    scene: Scene, port: Counters
) -> None:
    port.run(10, used=0.5, coordinated=0.5)
    port.run(200, used=0.98, coordinated=0.68, period_ms=100)
    assert granted(scene) == pytest.approx(AIM - 0.3, abs=0.01)


def test_a_message_that_comes_twice_or_late_changes_nothing(scene: Scene, port: Counters) -> None:
    port.run(300, used=0.98, coordinated=0.68)
    old = port.message()
    port.run(10, used=0.98, coordinated=0.68)
    before = granted(scene)
    for _ in range(3):
        scene.say(old)
    assert granted(scene) == before
    assert scene.node.counters["dropped_late"] == 3


def test_counters_that_restart_begin_again(scene: Scene, port: Counters) -> None:
    port.run(300, used=0.98, coordinated=0.68)
    port.bytes = port.coordinated = 0
    port.run(50, used=0.98, coordinated=0.68)
    assert granted(scene) == pytest.approx(AIM - 0.3, abs=0.02)
    assert scene.node.counters["ports_begun"] == 2


def test_more_bytes_than_the_link_carries_are_not_believed(scene: Scene, port: Counters) -> None:
    port.run(300, used=3.0, coordinated=0.5)
    assert granted(scene) == pytest.approx(AIM, rel=1e-3)
    assert scene.node.counters["ports_impossible"] > 20


def test_a_port_that_lies_leaves_the_guaranteed_part(scene: Scene, port: Counters) -> None:
    port.run(300, used=1.0, coordinated=0.0)
    assert granted(scene) == pytest.approx(0.05, abs=0.001)


def test_a_receiver_that_lies_takes_nothing_from_other_receivers(
    scene: Scene, port: Counters
) -> None:
    scene.report(2, 1)
    port.run(300, used=1.0, coordinated=0.0, marked=1.0)
    granted(scene)
    scene.report(2, 1)
    scene.run_until(scene.now_ns + 2 * MS)
    assert scene.hosts[2].directive.permits[0].rate_bps == pytest.approx(AIM * GBPS, rel=1e-3)


def test_a_silent_port_counts_as_the_topology_states_again(scene: Scene, port: Counters) -> None:
    port.run(300, used=0.98, coordinated=0.68)
    assert scene.node.counters["ports_known"] == 1
    scene.run_until(scene.now_ns + 3000 * MS)
    assert granted(scene) == pytest.approx(AIM, rel=1e-3)
    assert scene.node.counters["ports_known"] == 0


def test_a_host_counts_only_at_its_own_port(scene: Scene, port: Counters) -> None:
    port.reporter = 2
    datagram = bytearray(encode(replace(port.message(), ports=()), b"k" * 32))
    entry = struct.pack("<IIQQQQQQQ", SWITCH, SINK, 1, 0, 0, 0, 0, 0, 0)
    plain = bytes(datagram[:64]) + struct.pack("<HHI", 1, 0, 0) + entry
    scene.say(authenticated(plain, derive(MASTER, 2).up))
    assert scene.node.counters["dropped_malformed"] == 1
    assert scene.node.counters["ports_known"] == 0


def agent_welcomes(node: Node, now_ns: int, message: Port) -> list[Welcome]:
    node.receive(now_ns, encode(message, derive(MASTER, AGENT).up))
    node.advance(now_ns)
    return [one for one in node.take(now_ns) if isinstance(one, Welcome) and one.to == AGENT]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[tuple[Scene, Counters]]:
    """A dumbbell whose middle link is reported by an agent."""
    folder = tmp_path / "agent"
    folder.mkdir()
    topology = dumbbell(2, 2, "1Gbps", "1Gbps")
    made = Scene(folder, topology, **SETTINGS)
    made.join()
    nodes = topology.node_indices
    switches = [nodes[switch.name] for switch in topology.switches]
    yield made, Counters(made, switches[0], switches[1], AGENT)
    made.node.close()


def test_an_agent_is_answered_and_its_port_counts(agent: tuple[Scene, Counters]) -> None:
    scene, port = agent
    sent = 0
    for _ in range(60):
        scene.now_ns += 10 * MS
        sent += 340_000
        for host in (0, 1):
            waiting = (Waiting(host + 2, 10**6, 272_000, sent),)
            speaker = scene.hosts[host]
            scene.say(Report(speaker.header(scene.now_ns), Flag.NONE, 0, 0, waiting))
        port.bytes += 980_000  # of 1 250 000
        (welcome,) = agent_welcomes(scene.node, scene.now_ns, port.message())
        assert welcome.status is Status.JOINED
    rates = [scene.hosts[host].directive.permits[0].rate_bps for host in (0, 1)]
    assert sum(rates) / GBPS == pytest.approx(AIM - 0.24, abs=0.02)


@pytest.mark.parametrize(
    ("change", "status"),
    [({"epoch": EPOCH - 1}, Status.HELLO_FIRST), ({"digest": bytes(32)}, Status.TOPOLOGY_DIFFERS)],
)
def test_an_agent_that_knows_another_epoch_or_topology_is_answered_why(
    agent: tuple[Scene, Counters], change: dict[str, object], status: Status
) -> None:
    scene, port = agent
    for name, value in change.items():
        setattr(port, name, value)
    (welcome,) = agent_welcomes(scene.node, scene.now_ns, port.message())
    assert (welcome.status, welcome.header.epoch) == (status, EPOCH)
    assert scene.node.counters["received_ports"] == 0


def test_an_agents_repeated_message_is_not_counted_again(agent: tuple[Scene, Counters]) -> None:
    scene, port = agent
    message = port.message()
    for _ in range(3):
        agent_welcomes(scene.node, scene.now_ns, message)
    assert scene.node.counters["ports_begun"] == 1


def test_a_port_outside_the_tree_is_counted_and_nothing_else(
    agent: tuple[Scene, Counters],
) -> None:
    scene, port = agent
    port.ends = (0, 1)
    agent_welcomes(scene.node, scene.now_ns, port.message())
    assert scene.node.counters["ports_unknown"] == 1
    assert scene.node.counters["ports_known"] == 0


def test_a_flood_of_forged_port_messages_costs_no_state(tmp_path: Path) -> None:
    node = Node(loop_file(tmp_path, star_topology(4, "1Gbps"), strategy="gcc"))
    forged = Port(Header(AGENT, EPOCH, 1, 1), bytes(32), ())
    assert node.receive(1000 * MS, encode(forged, bytes(32))) == 2
    assert node.counters["dropped_forged"] == 1
    node.close()


class Known(ctypes.Structure):
    """struct xco_budget."""

    _fields_ = (
        ("capacity_bps", ctypes.c_double),
        ("foreign_bps", ctypes.c_double),
        ("calm_s", ctypes.c_double),
        ("stood", ctypes.c_uint32),
    )


class Seen(ctypes.Structure):
    """struct xco_budget_period."""

    _fields_ = tuple(
        (name, ctypes.c_double)
        for name in ("seconds", "bits", "coordinated_bits", "packets", "marks", "drops")
    )


SHARES = st.floats(0.0, 1.2)
PERIODS = st.lists(
    st.tuples(st.floats(0.002, 1.0), SHARES, SHARES, st.floats(0.0, 1.0), st.integers(0, 1)),
    max_size=30,
)


@given(PERIODS)
def test_the_compiled_law_is_that_of_python(
    periods: list[tuple[float, float, float, float, int]],
) -> None:
    library = node_library()
    library.xco_budget_shared.restype = ctypes.c_double
    library.xco_budget_begin.restype = Known
    nominal, aim = ctypes.c_double(GBPS), ctypes.c_double(DEFAULT.aim)
    known, expected = library.xco_budget_begin(nominal), Budget(GBPS)
    for seconds, used, ours, marked, drops in periods:
        bits = used * GBPS * seconds
        numbers = seconds, bits, ours * bits, bits / 12_000, marked * bits / 12_000, float(drops)
        library.xco_budget_observe(ctypes.byref(known), ctypes.byref(Seen(*numbers)), nominal)
        expected = observed(expected, PortPeriod(*numbers), GBPS, DEFAULT)
        found = library.xco_budget_shared(ctypes.byref(known), nominal, aim)
        assert found == pytest.approx(shared_bps(expected, GBPS, DEFAULT), rel=1e-9)
