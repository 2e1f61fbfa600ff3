"""How often rates are planned, and what keeps links free in between; in simulated time."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path

import pytest
from xco_controller_scenes import MS, US, Scene, Speaker
from xco_strategies.timeslice import Turn, congested

from xco.protocol.messages import Mode
from xco.topology.graph import Host, Link, Switch, Topology
from xco.topology.shapes import star_topology

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


def sent_by(host: Speaker, gave_up: dict[int, int], end_ns: int, way_ns: int) -> Iterator[Turn]:
    """Yield what a host sends that hears all `way_ns` late, given when it gave up what."""
    changes = [max(one.header.sent_ns + way_ns, one.start_ns) for one in host.heard]
    for index, (one, since) in enumerate(zip(host.heard, changes, strict=True)):
        own_end = min(one.end_ns or end_ns, gave_up.get(one.header.sequence, end_ns))
        until = min([own_end, *changes[index + 1 :]])
        for permit in one.permits:
            if since < until:
                yield Turn(host.host, permit.destination, permit.rate_bps, since, until)


OVERTAKEN = [142, 246, 272, 465, 491, 565, 750]
"""Seeds in which rates that were announced are overtaken by a turn that starts later."""


@pytest.mark.parametrize("way_ns", [0, LEAD])
@pytest.mark.parametrize("seed", [31, 69, 91, 143, 148, 217, 229, 368, *OVERTAKEN])
def test_turns_and_rates_beside_them_fit_into_each_link(
    scene: NewScene, seed: int, way_ns: int
) -> None:
    """Reports in a random order; directives follow each other before they are sent or begin."""
    draw = random.Random(seed)
    six = scene(SHARED, strategy="hybrid", preempt_after="100us", silence="1s", drop="10s")
    gave_up: dict[int, dict[int, int]] = defaultdict(dict)
    for _ in repeat(None, 60):
        six.run_until(six.now_ns + draw.choice([0, 0, 1, 5, 20, 50, 200, 1000]) * US)
        host = draw.randrange(6)
        now = six.hosts[host].directive
        sequence = free = 0
        if draw.random() < 0.4 and now.mode is Mode.SLICE and now.start_ns <= six.now_ns:
            sequence = now.header.sequence
            free = gave_up[host].setdefault(sequence, six.now_ns + draw.choice([0, 100, 700]) * US)
        group = draw.sample([other for other in range(6) if other != host], draw.randrange(4))
        six.report(host, *group, gave_up=sequence, free_ns=free)
    six.run_until(six.now_ns + 10 * MS)
    turns = [
        turn for host in six.hosts for turn in sent_by(host, gave_up[host.host], six.now_ns, way_ns)
    ]
    assert congested(SHARED, turns) == set()
