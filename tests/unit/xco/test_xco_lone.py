"""Turns that are extended while no other host wants their links, in simulated time."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_controller_scenes import MS, US, Scene, Speaker

from xco.protocol.messages import Directive, Flag, Message, Mode
from xco.topology.graph import Topology
from xco.topology.shapes import dumbbell, star_topology

LEAD, GUARD, SLICE, LONGEST = 200 * US, 30 * US, 2 * MS, 25 * MS
NewScene = Callable[..., Scene]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[NewScene]:
    """Make scenes in which all hosts have joined."""
    opened: list[Scene] = []

    def new(topology: Topology | None = None, **settings: object) -> Scene:
        opened.append(Scene(tmp_path, topology or star_topology(4, "1Gbps"), **settings))
        opened[-1].join()
        return opened[-1]

    yield new
    for one in opened:
        one.node.close()


def alone(star: Scene) -> Directive:
    """Have host 0 send alone until its turn goes on, and return the first directive of it."""
    star.report(0, 3)
    first = star.hosts[0].directive
    star.run_until(first.end_ns - LEAD)
    assert star.hosts[0].directive.end_ns == star.now_ns + LONGEST
    return first


def test_who_sends_alone_goes_on_in_the_same_turn(scene: NewScene) -> None:
    star = scene()
    first = alone(star)
    longer = star.hosts[0].directive
    assert (longer.start_ns, longer.permits) == (first.start_ns, first.permits)


def test_it_is_renewed_when_half_of_it_has_passed(scene: NewScene) -> None:
    star = scene()
    alone(star)
    renewed = star.now_ns + LONGEST // 2
    for _ in range(3):
        star.run_until(star.now_ns + LONGEST // 6 + 1)
        star.report(0, 3)
    assert star.hosts[0].directive.end_ns == renewed + LONGEST
    assert star.node.counters["slices_extended"] == 2
    assert star.node.counters["slices_started"] == 1


def test_no_turn_lasts_longer_than_half_of_the_silence(scene: NewScene) -> None:
    star = scene(silence="30ms")
    star.report(0, 3)
    star.run_until(star.hosts[0].directive.end_ns - LEAD)
    assert star.hosts[0].directive.end_ns == star.now_ns + 15 * MS


@pytest.mark.parametrize("settings", [{"policy": "published"}, {"strategy": "hybrid"}])
def test_where_others_may_cut_in_at_any_time_a_turn_is_a_slice(
    scene: NewScene, settings: dict[str, str]
) -> None:
    star = scene(**settings)
    star.report(0, 3)
    star.run_until(star.now_ns + SLICE)
    assert star.hosts[0].directive.end_ns <= star.now_ns + SLICE


def test_who_wants_two_destinations_is_not_alone(scene: NewScene) -> None:
    star = scene()
    star.report(0, 2, 3)
    star.run_until(star.now_ns + SLICE)
    assert star.node.counters["slices_extended"] == 0


def test_a_link_with_room_for_two_is_shared_by_two_that_go_on(scene: NewScene) -> None:
    six = scene(dumbbell(3, 3, "1Gbps", "2Gbps"))
    six.report(0, 3)
    six.report(1, 4)
    six.run_until(six.now_ns + SLICE)
    assert [six.hosts[host].directive.end_ns > six.now_ns + 10 * MS for host in (0, 1)] == [
        True
    ] * 2
    six.report(2, 5)
    assert all(six.hosts[host].directive.end_ns == six.now_ns + SLICE for host in (0, 1))


def test_a_competitor_makes_it_a_slice_and_follows_it(scene: NewScene) -> None:
    star = scene()
    alone(star)
    star.now_ns += MS
    star.report(1, 3)
    cut = star.hosts[0].directive
    assert cut.end_ns == star.now_ns + SLICE
    star.report(0, 3)  # it has heard that
    star.run_until(cut.end_ns)
    assert star.hosts[1].directive.start_ns == cut.end_ns + GUARD


def test_nobody_starts_in_what_was_taken_back_before_that_was_heard(scene: NewScene) -> None:
    star = scene()
    alone(star)
    granted = star.hosts[0].directive
    star.report(1, 3)
    star.run_until(star.now_ns + 2 * SLICE)
    assert star.hosts[1].directive.start_ns == granted.end_ns + GUARD


def test_it_starts_earlier_once_that_was_heard(scene: NewScene) -> None:
    star = scene()
    alone(star)
    star.report(1, 3)
    star.run_until(star.now_ns + 2 * SLICE)
    star.report(0, 3)
    turn = star.hosts[1].directive
    assert (turn.start_ns, turn.end_ns) == (star.now_ns + LEAD, star.now_ns + LEAD + SLICE)


def test_it_leaves_what_a_host_uses_that_has_fallen_back(scene: NewScene) -> None:
    star = scene()
    alone(star)
    whole = star.hosts[0].directive.permits[0].rate_bps
    star.report(1, flags=Flag.FELL_BACK)
    assert star.hosts[0].directive.end_ns == star.now_ns + SLICE
    star.run_until(star.now_ns + 2 * SLICE)
    assert star.hosts[0].directive.permits[0].rate_bps < whole


def test_who_gives_up_frees_its_links_at_once(scene: NewScene) -> None:
    star = scene()
    alone(star)
    star.now_ns += MS
    star.report(0, gave_up=star.hosts[0].directive.header.sequence)
    star.report(1, 3)
    assert star.hosts[1].directive.start_ns == star.now_ns


class Deaf(Speaker):
    """A host that reads its directives late."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker.host, speaker.digest, first_sequence=1000)
        self.welcomes, self.heard = speaker.welcomes, list(speaker.heard)
        self.waiting: list[Message] = []
        self.turns: dict[int, int] = {}

    def hear(self, message: Message) -> None:
        self.waiting.append(message)

    def catch_up(self) -> None:
        """Hear all that waits; a later directive moves the end of a turn that it is for."""
        for message in self.waiting:
            super().hear(message)
            if isinstance(message, Directive) and message.mode is Mode.SLICE:
                self.turns[message.start_ns] = message.end_ns
        self.waiting.clear()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["hears", "wants", "wants nothing", "time"]),
            st.integers(0, 2),
            st.integers(1, 6_000),
        ),
        min_size=4,
        max_size=60,
    )
)
def test_hosts_that_hear_late_never_send_at_once(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        star = Scene(Path(folder), star_topology(4, "1Gbps"))
        star.join()
        hosts = [Deaf(speaker) for speaker in star.hosts]
        star.hosts[:] = hosts
        star.report(0, 3)
        star.run_until(star.now_ns + 3 * MS)
        hosts[0].catch_up()  # it is alone, and goes on
        for what, host, microseconds in steps:
            if what == "time":
                star.run_until(star.now_ns + microseconds * US)
            elif what == "hears":
                hosts[host].catch_up()
            else:
                star.report(host, *([3] if what == "wants" else []))
        star.node.close()
    for one, other in combinations(hosts, 2):
        for start, end in one.turns.items():
            assert all(end <= begin or start >= stop for begin, stop in other.turns.items())
