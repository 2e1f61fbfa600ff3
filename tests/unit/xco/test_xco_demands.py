"""Pairs that are quiet: the controller gives others what they do not use."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from xco_controller_scenes import MS, Scene

from xco.protocol.messages import Mode
from xco.topology.shapes import star_topology

M = 10**6
PACED = 98 * M
GREEDY_MS = 500
HEARTBEAT_MS = 10
GOLD = {2: (100, 0)}
STRATEGIES: tuple[Mapping[str, object], ...] = (
    {"strategy": "rate", "max_min": True},
    {"strategy": "gcc"},
)
Open = Callable[[Mapping[str, object]], Scene]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Let a test make three hosts with 100 Mb/s each."""
    scenes: list[Scene] = []

    def make(settings: Mapping[str, object]) -> Scene:
        options = {"drop": "10s", "silence": "1s"} | dict(settings)
        scenes.append(Scene(tmp_path, star_topology(3, "100Mbps"), None, **options))
        scenes[-1].join()
        return scenes[-1]

    yield make
    for scene in scenes:
        scene.node.close()


def rates(scene: Scene) -> list[int]:
    """Return what the first two hosts may send to the third one."""
    return [
        {permit.destination: permit.rate_bps for permit in host.directive.permits}[2]
        for host in scene.hosts[:2]
    ]


def quiet_for(
    scene: Scene,
    milliseconds: int,
    kbps: int = 2000,
    promised: Mapping[int, tuple[int, int]] = GOLD,
) -> None:
    """Let the first host send a little for some time, and the second one all that it can."""
    end_ns = scene.now_ns + milliseconds * MS
    while scene.now_ns < end_ns:
        scene.report(0, 2, promised=promised, quiet={2: kbps})
        scene.report(1, 2)
        scene.run_until(min(end_ns, scene.now_ns + 5 * MS))


@pytest.mark.parametrize("settings", STRATEGIES)
def test_a_pair_for_which_nothing_waits_leaves_what_it_does_not_use(
    opened: Open, settings: Mapping[str, object]
) -> None:
    scene = opened(settings)
    quiet_for(scene, GREEDY_MS)
    assert rates(scene) == [PACED * 100 // 101, PACED // 101]
    quiet_for(scene, HEARTBEAT_MS)
    assert rates(scene) == [4 * M, PACED - 4 * M]


def test_what_waits_once_makes_a_pair_greedy_for_half_a_second(opened: Open) -> None:
    scene = opened(STRATEGIES[1])
    quiet_for(scene, GREEDY_MS + HEARTBEAT_MS)
    scene.report(0, 2, promised=GOLD)
    scene.run_until(scene.now_ns + 2 * MS)
    quiet_for(scene, GREEDY_MS - 3)
    assert rates(scene) == [PACED * 100 // 101, PACED // 101]
    quiet_for(scene, HEARTBEAT_MS)
    assert rates(scene) == [4 * M, PACED - 4 * M]


def test_a_pair_ceases_to_be_greedy_without_news(opened: Open) -> None:
    scene = opened(STRATEGIES[0])
    quiet_for(scene, 5)
    scene.run_until(scene.now_ns + (GREEDY_MS - 6) * MS)
    assert rates(scene) == [PACED * 100 // 101, PACED // 101]
    scene.run_until(scene.now_ns + (HEARTBEAT_MS + 2) * MS)
    assert rates(scene) == [4 * M, PACED - 4 * M]


def test_what_waits_makes_a_silent_host_greedy_for_as_long_as_it_counts(opened: Open) -> None:
    scene = opened(STRATEGIES[0])
    scene.report(0, 2, promised=GOLD)
    scene.report(1, 2)
    scene.run_until(scene.now_ns + (GREEDY_MS + 2 * HEARTBEAT_MS) * MS)
    assert rates(scene) == [PACED * 100 // 101, PACED // 101]


def test_a_quiet_pair_has_what_no_other_wants(opened: Open) -> None:
    scene = opened(STRATEGIES[1])
    for _ in range(3):
        scene.report(0, 2, quiet={2: 2000})
        scene.run_until(scene.now_ns + GREEDY_MS // 2 * MS)
    assert [permit.rate_bps for permit in scene.hosts[0].directive.permits] == [PACED]


def test_a_guarantee_counts_as_far_as_it_is_demanded(opened: Open) -> None:
    scene = opened(STRATEGIES[0])
    quiet_for(scene, GREEDY_MS + HEARTBEAT_MS, promised={2: (1, 50)})
    assert rates(scene) == [4 * M, PACED - 4 * M]


def test_a_demand_that_still_fits_is_no_news(opened: Open) -> None:
    scene = opened(STRATEGIES[0])
    quiet_for(scene, GREEDY_MS + HEARTBEAT_MS, kbps=10_000)
    told = len(scene.hosts[1].heard)
    for kbps in (9_000, 10_000, 8_000):
        quiet_for(scene, 5, kbps)
        assert rates(scene) == [16 * M, PACED - 16 * M]
    assert len(scene.hosts[1].heard) <= told + 2  # heartbeats
    quiet_for(scene, 5, 2_000)
    assert rates(scene) == [4 * M, PACED - 4 * M]
    quiet_for(scene, 5, 2_100)
    assert rates(scene) == [4 * M + 150_000, PACED - 4 * M - 150_000]


@pytest.mark.parametrize(("away_ms", "greedy"), [(100, False), (GREEDY_MS, True)])
def test_a_pair_that_was_away_for_long_is_new(opened: Open, away_ms: int, greedy: bool) -> None:
    scene = opened(STRATEGIES[0])
    quiet_for(scene, GREEDY_MS + HEARTBEAT_MS)
    scene.report(0)
    scene.run_until(scene.now_ns + away_ms * MS)
    assert scene.hosts[0].directive.mode is Mode.CLOSED
    quiet_for(scene, 5)
    assert rates(scene)[0] == (PACED * 100 // 101 if greedy else 4 * M)


def test_a_host_that_joins_again_is_new(opened: Open) -> None:
    scene = opened(STRATEGIES[0])
    quiet_for(scene, GREEDY_MS + HEARTBEAT_MS)
    scene.say(scene.hosts[0].hello(scene.now_ns))
    quiet_for(scene, 5)
    assert rates(scene) == [PACED * 100 // 101, PACED // 101]


def test_new_pairs_take_the_places_of_those_that_were_not_reported_longest(
    tmp_path: Path,
) -> None:
    """A report has 64 at most, and so many are remembered."""
    scene = Scene(tmp_path, star_topology(130, "100Mbps"), strategy="gcc", drop="10s", silence="1s")
    scene.join([0, 1])
    early, late = range(2, 66), range(65, 129)
    scene.report(0, *early, quiet=dict.fromkeys(early, 100))
    scene.run_until(scene.now_ns + (GREEDY_MS - 1) * MS)
    scene.report(0, *late, quiet=dict.fromkeys(late, 100))
    scene.report(1, 65, 128)
    scene.run_until(scene.now_ns + HEARTBEAT_MS * MS)
    told = {permit.destination: permit.rate_bps for permit in scene.hosts[0].directive.permits}
    assert 1_150_000 <= told.pop(65) < 1_150_000 + len(late)  # and what rounding leaves
    assert len(set(told.values())) == 1
    scene.node.close()


@pytest.mark.parametrize(
    "settings",
    [{"strategy": "rate"}, {"strategy": "gcc", "law": "published"}],
)
def test_the_papers_equal_shares_know_no_demands(
    opened: Open, settings: Mapping[str, object]
) -> None:
    scene = opened(settings)
    quiet_for(scene, 20)
    before = rates(scene)
    quiet_for(scene, GREEDY_MS + HEARTBEAT_MS)
    assert rates(scene) == before
