"""How often rates are planned, and what keeps links free in between; in simulated time."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xco_controller_scenes import MS, US, Scene

from xco.messages import Mode
from xco.topologies import star_topology
from xco.topology import Host, Link, Switch, Topology

LEAD = 200 * US
SHARED = Topology(
    (Switch("left"), Switch("right")),
    tuple(Host(f"h{index}") for index in range(6)),
    (
        Link("h0", "left", 10**9),
        Link("h1", "left", 10**9),
        Link("h2", "left", 5 * 10**8),
        *(Link(f"h{index}", "right", 10**9) for index in range(3, 6)),
        Link("left", "right", 15 * 10**8),
    ),
)
"""Hosts 0 to 2 send to 3 to 5; next to 0 or 1, the shared link has room for 2."""
NewScene = Callable[..., Scene]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[NewScene]:
    """Make scenes in which all hosts have joined."""
    opened: list[Scene] = []

    def new(topology: Topology, **settings: object) -> Scene:
        opened.append(Scene(tmp_path, topology, **settings))
        opened[-1].join()
        return opened[-1]

    yield new
    for one in opened:
        one.node.close()


@pytest.mark.parametrize(
    ("strategy", "on_demand"), [("timeslice", True), ("hybrid", False), ("hybrid", True)]
)
def test_a_new_turn_is_no_reason_to_plan_again_at_once(
    scene: NewScene, strategy: str, on_demand: bool
) -> None:
    many = scene(star_topology(40, "1Gbps"), strategy=strategy, on_demand=on_demand)
    for host in range(18):
        many.report(host, 39)
    many.run_until(many.now_ns + MS)
    before = many.node.counters
    for host in range(18):
        many.now_ns += US
        many.report(host, 20 + host)
    after = many.node.counters
    assert after["slices_started"] - before["slices_started"] >= 17
    assert after["plans_computed"] - before["plans_computed"] <= 1


def test_a_rate_beside_turns_ends_as_a_turn_needs_it_before_the_next_plan(scene: NewScene) -> None:
    six = scene(SHARED, strategy="hybrid")
    six.report(0, 3)
    six.report(1, 4)
    six.run_until(six.now_ns + MS)
    beside = six.hosts[1].directive
    assert (beside.mode, beside.permits[0].rate_bps) == (Mode.RATE, 490_000_000)
    six.report(1, 4)  # the plan is computed for this, and not again for what follows
    plans = six.node.counters["plans_computed"]
    six.report(2, 5)
    assert six.node.counters["plans_computed"] == plans
    assert six.hosts[2].directive.start_ns == six.now_ns
    closed = six.hosts[1].directive
    assert (closed.mode, closed.start_ns) == (Mode.CLOSED, six.now_ns)


def test_the_gap_between_plans_grows_with_what_they_cost(scene: NewScene) -> None:
    def plans(flows: int) -> int:
        many = scene(star_topology(40, "1Gbps"), strategy="rate")
        for host in range(40):
            many.report(host, *((host + 1 + other) % 40 for other in range(flows)))
        before = many.node.counters["plans_computed"]
        for host in [*range(40)] * 10:
            many.run_until(many.now_ns + 10 * US)
            many.report(host, *((host + 1 + other) % 40 for other in range(flows)))
        return many.node.counters["plans_computed"] - before

    assert plans(16) < plans(1) / 4
