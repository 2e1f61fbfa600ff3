"""When turns start on links that several hosts share, in simulated time."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xco_controller_scenes import MS, US, Scene

from xco.protocol.messages import Mode
from xco.topology.graph import Topology
from xco.topology.shapes import dumbbell

LEAD, GUARD = 200 * US, 30 * US
TWO_OF_THREE = dumbbell(3, 3, "1Gbps", "2Gbps")
"""Hosts 0 to 2 send to 3 to 5 over a link with room for two of them."""
NewScene = Callable[..., Scene]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[NewScene]:
    """Make scenes in which all hosts have joined."""
    opened: list[Scene] = []

    def new(topology: Topology = TWO_OF_THREE, **settings: object) -> Scene:
        opened.append(Scene(tmp_path, topology, **settings))
        opened[-1].join()
        return opened[-1]

    yield new
    for one in opened:
        one.node.close()


def test_a_turn_starts_at_once_next_to_one_that_is_renewed(scene: NewScene) -> None:
    six = scene(policy="published")
    six.report(0, 3)
    first = six.hosts[0].directive
    six.run_until(first.end_ns - LEAD // 2)
    assert six.hosts[0].directive.start_ns == first.end_ns
    six.report(1, 4)
    assert six.hosts[1].directive.start_ns == six.now_ns


def test_a_turn_waits_for_the_one_that_it_takes_the_place_of(scene: NewScene) -> None:
    six = scene()
    six.report(0, 3)
    six.run_until(six.now_ns + MS)
    six.report(1, 4)
    six.report(2, 5)
    first = six.hosts[0].directive
    six.run_until(first.end_ns - LEAD)
    third = six.hosts[2].directive
    assert (third.mode, third.start_ns) == (Mode.SLICE, first.end_ns + GUARD)


def test_turns_that_end_together_are_followed_by_two(scene: NewScene) -> None:
    six = scene(dumbbell(4, 4, "1Gbps", "2Gbps"))
    for host in range(4):
        six.report(host, 4 + host)
    end = six.hosts[0].directive.end_ns
    six.run_until(end - LEAD)
    assert [six.hosts[host].directive.start_ns for host in (2, 3)] == [end + GUARD] * 2
