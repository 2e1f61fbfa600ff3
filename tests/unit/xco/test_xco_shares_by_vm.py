"""Weights and guarantees of VMs, between hosts: what the controller makes of reports."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from xco_controller_scenes import MS, Scene

from xco.protocol.messages import Mode
from xco.topology.graph import Host, Link, Switch, Topology
from xco.topology.shapes import dumbbell, star_topology

PACED = 980_000_000
MOST = 2**16 - 1
ONE_SLOW = Topology(
    (Switch("s"),),
    tuple(Host(f"h{n}") for n in range(4)),
    tuple(Link(f"h{n}", "s", 10**8 if n == 1 else 10**9) for n in range(4)),
)
Promised = Mapping[int, tuple[int, int]]


def told(
    folder: Path, promised: Promised, capacity: str = "1Gbps", **settings: object
) -> list[int]:
    """Return what hosts may send to the last one, which reports weights and guarantees so."""
    hosts = len(promised)
    options = {"strategy": "rate", "max_min": True} | settings
    scene = Scene(folder, star_topology(hosts + 1, capacity), **options)
    try:
        scene.join()
        for host, pair in promised.items():
            scene.report(host, hosts, promised={hosts: pair})
        scene.run_until(scene.now_ns + MS)
        return [scene.hosts[host].directive.permits[0].rate_bps for host in promised]
    finally:
        scene.node.close()


@pytest.mark.parametrize(
    ("settings", "follow"),
    [
        ({"strategy": "rate"}, True),
        ({"strategy": "gcc"}, True),
        ({"strategy": "rate", "max_min": False}, False),
        ({"strategy": "gcc", "law": "published"}, False),
    ],
)
def test_rates_follow_the_weights_of_vms(
    tmp_path: Path, settings: Mapping[str, object], follow: bool
) -> None:
    rates = told(tmp_path, {0: (3, 0), 1: (1, 0)}, **settings)
    expected = [PACED // 4 * 3, PACED // 4] if follow else [rates[0]] * 2
    assert rates == expected


def test_a_guarantee_comes_first_and_the_rest_is_shared_by_weight(tmp_path: Path) -> None:
    rates = told(tmp_path, {0: (1, 500), 1: (2, 0), 2: (0, 0)})
    assert rates == [620_000_000, 240_000_000, 120_000_000]


def test_guarantees_above_a_link_are_scaled_down(tmp_path: Path) -> None:
    assert told(tmp_path, {0: (1, 900), 1: (1, 300)}) == [722_750_000, 257_250_000]


def test_a_guarantee_that_no_link_carries_leaves_the_others_half(tmp_path: Path) -> None:
    assert told(tmp_path, {0: (1, MOST), 1: (1, 980)}) == [490_000_000] * 2


def test_the_weight_of_a_host_multiplies_those_of_its_vms(tmp_path: Path) -> None:
    rates = told(tmp_path, {0: (2, 0), 1: (1, 0)}, weights={"h1": 4, "h2": 2})
    assert rates == [PACED // 5 * 4, PACED // 5]


def test_the_least_weight_gets_a_rate_which_is_a_limit(tmp_path: Path) -> None:
    rates = told(tmp_path, {0: (MOST, 0), 1: (0, 0)}, weights={"h1": 10**6})
    assert rates[1] > 0
    rates = told(tmp_path, {0: (MOST, MOST), 1: (0, 0)})
    assert rates[1] == PACED // 20 // (MOST + 1)


def test_a_report_with_another_weight_changes_the_directives(tmp_path: Path) -> None:
    scene = Scene(tmp_path, star_topology(3, "1Gbps"), strategy="rate", max_min=True)
    scene.join()
    for weight in (1, 3):
        scene.report(0, 2, promised={2: (weight, 0)})
        scene.report(1, 2)
        scene.run_until(scene.now_ns + 2 * MS)
        rates = [scene.hosts[host].directive.permits[0].rate_bps for host in (0, 1)]
        assert rates == [PACED // (weight + 1) * weight, PACED // (weight + 1)]
    scene.node.close()


def test_the_largest_weights_share_a_link(tmp_path: Path) -> None:
    most = {"h1": 10**6, "h2": 10**6}
    rates = told(tmp_path, {0: (MOST, 0), 1: (MOST, 0)}, weights=most)
    assert rates == pytest.approx([PACED // 2] * 2, rel=0.01)


def test_a_rate_that_rounds_to_nothing_is_still_a_limit(tmp_path: Path) -> None:
    rates = told(tmp_path, {0: (MOST, 0), 1: (1, 0)}, capacity="1Mbps", weights={"h1": 10**6})
    assert rates == [979_999, 1]


def test_a_large_weight_on_other_links_changes_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, star_topology(5, "1Gbps"), {"h3": 10**6}, strategy="gcc")
    scene.join()
    for host, to, weight in ((0, 4, 3), (1, 4, 1), (2, 3, MOST)):
        scene.report(host, to, promised={to: (weight, 0)})
    scene.run_until(scene.now_ns + MS)
    rates = [scene.hosts[host].directive.permits[0].rate_bps for host in range(3)]
    assert rates == [PACED // 4 * 3, PACED // 4, PACED]
    scene.node.close()


@pytest.mark.parametrize(
    ("senders", "each", "weights", "capacity_mbps"),
    [(10, 64, (240_000, 1), 100), (8, 8, (16, MOST), 100), (8, 8, (16, MOST), 50)],
)
def test_many_large_weights_leave_nothing_of_a_link(
    tmp_path: Path, senders: int, each: int, weights: tuple[int, int], capacity_mbps: int
) -> None:
    """All that two switches have between them is given out but for 1 bit/s of each pair."""
    slow = dumbbell(senders + 1, each, "1Gbps", f"{capacity_mbps}Mbps")
    of_host, of_vms = weights
    heavy = {f"s{number + 1}": of_host for number in range(senders)}
    receivers = range(senders + 1, senders + 1 + each)
    scene = Scene(tmp_path, slow, heavy, strategy="rate", max_min=True)
    scene.join()
    for host in range(senders):
        scene.report(host, *receivers, promised=dict.fromkeys(receivers, (of_vms, 0)))
    scene.report(senders, receivers[0])
    scene.run_until(scene.now_ns + 20 * MS)
    rates = [permit.rate_bps for host in scene.hosts for permit in host.directive.permits]
    assert len(rates) == senders * each + 1
    assert 0 <= capacity_mbps * 980_000 - sum(rates) < len(rates)
    scene.node.close()


@pytest.mark.parametrize("strategy", ["timeslice", "hybrid"])
def test_slices_and_the_rates_next_to_them_ignore_vms(tmp_path: Path, strategy: str) -> None:
    """The turn of a slow host leaves most of a link to the rates of two others."""
    heard = []
    for name, pair in (("with", (9, 500)), ("without", (0, 0))):
        folder = tmp_path / name
        folder.mkdir()
        scene = Scene(folder, ONE_SLOW, strategy=strategy, max_min=True, preempt_after="1s")
        scene.join()
        scene.report(1, 3)
        scene.report(0, 3, promised={3: pair})
        scene.report(2, 3)
        scene.run_until(scene.now_ns + MS)
        assert scene.hosts[1].directive.mode is Mode.SLICE
        assert bool(scene.hosts[0].directive.permits) == (strategy == "hybrid")
        heard.append([host.heard for host in scene.hosts])
        scene.node.close()
    assert heard[0] == heard[1]
