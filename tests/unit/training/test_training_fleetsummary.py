"""Relative speeds are those of the simulated hosts; the median host and the sentences follow."""

import itertools
import math
import random
from pathlib import Path

import msgspec
import pytest
from training_fleet_rig import CPU, metadata, swept_host

from benchmarks.training.coverage_host import Case
from training.compare.relative import relative_speed
from training.fit.fit import Fit, fit
from training.fleet.summary import HostFit, Summary, cpu_kind, fitted, median_host, summarize
from training.recording.recording import Recording

SPEEDS = {"edge-1": 1.0, "edge-2": 1.01, "edge-3": 0.99, "edge-9": 0.86}
OTHER = "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    folder = tmp_path_factory.mktemp("fleet")
    found = {
        name: swept_host(folder, name, speed=speed, seed=seed)
        for seed, (name, speed) in enumerate(SPEEDS.items())
    }
    found["xen-1"] = swept_host(folder, "xen-1", cpu=OTHER, speed=0.5)
    found["short"] = swept_host(folder, "short", case=Case(samples=12))
    return found


@pytest.fixture(scope="module")
def fits(recordings: dict[str, Recording]) -> dict[str, HostFit | str]:
    return {name: fitted(recording) for name, recording in recordings.items()}


@pytest.fixture(scope="module")
def summary(recordings: dict[str, Recording], fits: dict[str, HostFit | str]) -> Summary:
    return summarize(recordings, fits)


def known(fits: dict[str, HostFit | str], *names: str) -> dict[str, HostFit]:
    return {name: one for name in names if isinstance(one := fits[name], HostFit)}


def of(
    recordings: dict[str, Recording], fits: dict[str, HostFit | str], *names: str
) -> tuple[str, ...]:
    return summarize(
        {name: recordings[name] for name in names}, {name: fits[name] for name in names}
    ).findings


def test_each_speed_is_a_multiple_of_the_median_hosts(summary: Summary) -> None:
    rows = {row.name: row for row in summary.hosts}
    assert list(rows) == sorted(rows)
    assert {rows[name].reference for name in SPEEDS} == {"edge-1"}
    assert rows["edge-1"].speed is None
    for name in ("edge-2", "edge-3", "edge-9"):
        speed = rows[name].speed
        assert speed is not None
        assert speed.value == pytest.approx(SPEEDS[name], abs=0.015)
        assert speed.low <= SPEEDS[name] <= speed.high


def test_a_host_that_differs_surely_is_named_and_no_other(summary: Summary) -> None:
    (finding,) = summary.findings
    assert finding.startswith("edge-9 is 14 % slower than the 3 others with the same CPU (95 %: 0.")


def test_of_two_hosts_the_slower_is_named_against_the_other(
    recordings: dict[str, Recording], fits: dict[str, HostFit | str]
) -> None:
    (finding,) = of(recordings, fits, "edge-3", "edge-9")
    assert finding.startswith("edge-9 is 13 % slower than edge-3, the only other with the same CPU")
    assert of(recordings, fits, "edge-1", "edge-2") == ()


def test_hosts_of_another_cpu_are_not_compared(summary: Summary) -> None:
    (row,) = [row for row in summary.hosts if row.name == "xen-1"]
    assert (row.reference, row.speed) == (None, None)
    assert row.top_pps is not None


def test_a_refused_fit_keeps_its_row_with_the_reason(summary: Summary) -> None:
    (row,) = [row for row in summary.hosts if row.name == "short"]
    assert row.verdict.startswith("refused: steady samples at")
    assert (row.usable, row.top_pps, row.noise, row.variation) == (False, None, None, None)


def test_the_summary_is_json(summary: Summary) -> None:
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


def test_how_many_cpus_there_are_makes_no_other_kind() -> None:
    two, four = (
        Recording(msgspec.structs.replace(metadata("a"), cpu=f"{count}x {CPU}"), ())
        for count in (2, 4)
    )
    assert cpu_kind(two) == cpu_kind(four) == CPU


@pytest.mark.parametrize("names", list(itertools.permutations(("edge-2", "edge-3", "edge-9"))))
def test_the_median_host_is_the_one_in_the_middle(
    fits: dict[str, HostFit | str], names: tuple[str, ...]
) -> None:
    assert median_host(known(fits, *names)) == "edge-3"


def swept_fit(folder: Path, case: Case, seed: int) -> tuple[float, Fit]:
    speed = random.Random(seed).uniform(0.7, 1.3)
    return speed, fit(swept_host(folder, f"h{seed}", speed=speed, case=case, seed=seed))


@pytest.mark.parametrize(
    "case",
    [
        Case("logarithm", noise=0.02),
        Case("power law", visit_sd=0.02, lag=0.3),
        Case(drift_sd=0.05),
    ],
    ids=["logarithm", "power law", "drift"],
)
def test_intervals_hold_the_true_ratio(case: Case, tmp_path: Path) -> None:
    hosts = [swept_fit(tmp_path, case, seed) for seed in range(6)]
    held = []
    for (speed, one), (other_speed, other) in itertools.combinations(hosts, 2):
        ratio, reverse = relative_speed(one, other), relative_speed(other, one)
        assert ratio is not None
        assert reverse is not None
        assert math.isclose(ratio.value * reverse.value, 1.0)
        assert math.isclose(ratio.low * reverse.high, 1.0)
        held.append(ratio.low <= speed / other_speed <= ratio.high)
    assert sum(held) >= len(held) - 1


def test_two_hosts_without_common_caps_have_no_ratio(
    fits: dict[str, HostFit | str],
) -> None:
    (found,) = known(fits, "edge-1").values()
    low = msgspec.structs.replace(found.fit, threshold_above=found.fit.points[1].cap)
    assert relative_speed(found.fit, low) is None
