"""Two sweeps compared: the common ratio holds the truth, and unlike curves are found."""

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from benchmarks.training.coverage import swept
from benchmarks.training.coverage_host import Case, SimulatedHost
from common.command import exit_code
from training.cli.main import TRAINING_CODES, app
from training.compare.gls import common_of
from training.compare.interpolate import interpolated
from training.compare.likeness import likeness_of
from training.compare.ratio import Ratio, ratio_of
from training.errors import RecordingError, UnfitError
from training.fit.fit import fit
from training.fit.interval import Interval
from training.recording.recording import Recording, read_csv, write_csv

USUAL = Case()


@cache
def recorded(case: Case, seed: int) -> Recording:
    return swept(SimulatedHost(case, seed))


@cache
def compared(a: Case, b: Case, seed: int = 0) -> Ratio:
    return ratio_of(recorded(a, seed), recorded(b, 1000 + seed))


def test_two_sweeps_of_one_host_are_the_same() -> None:
    ratio = compared(USUAL, USUAL)
    likeness = likeness_of(ratio)
    assert likeness.same
    assert ratio.common.low <= 1.0 <= ratio.common.high
    assert not ratio.lags_differ
    assert not ratio.delays_differ
    assert likeness.notes == ()


@pytest.mark.parametrize("sd", [0.0, 0.03])
def test_a_faster_host_is_never_the_same_and_its_ratio_is_known(sd: float) -> None:
    case = Case(visit_sd=sd)
    for seed in range(2):
        ratio = compared(case, replace(case, speed=1.2), seed)
        assert likeness_of(ratio).kind == "faster"
        assert ratio.common.low <= 1.2 <= ratio.common.high


def test_sweeps_of_other_packets_are_not_compared() -> None:
    one, other = recorded(Case(), 1), recorded(Case(), 2)
    sizes = [
        Recording(msgspec.structs.replace(each.metadata, packet_bytes=size), each.samples)
        for each, size in ((one, 64), (other, 1400))
    ]
    with pytest.raises(UnfitError, match="that is no ratio of hosts"):
        ratio_of(*sizes)


def test_samples_without_a_time_of_their_own_are_refused_and_no_crash() -> None:
    one = recorded(Case(), 1)
    same = tuple(replace(sample, at=1.0) for sample in one.samples)
    with pytest.raises(UnfitError):
        fit(Recording(one.metadata, same))


def test_a_curve_of_packets_of_two_sizes_is_refused() -> None:
    one = recorded(Case(), 1)
    mixed = tuple(replace(s, packet_bytes=64 + n % 2) for n, s in enumerate(one.samples))
    with pytest.raises(UnfitError, match="of packets of 64, 65 bytes"):
        fit(Recording(one.metadata, mixed))


def test_swapped_sweeps_give_the_inverse_ratio() -> None:
    a, b = recorded(USUAL, 0), recorded(replace(USUAL, speed=1.2), 1000)
    there, back = ratio_of(a, b), ratio_of(b, a)
    assert there.common.value * back.common.value == pytest.approx(1.0, abs=1e-3)
    assert likeness_of(back).kind == "slower"


def test_another_curve_is_found_and_where_it_differs() -> None:
    ratio = compared(USUAL, replace(USUAL, curve="logarithm"))
    likeness = likeness_of(ratio)
    assert likeness.kind == "another curve"
    assert likeness.words.startswith("another curve: the ratio goes from ")
    low, high = ratio.points[0].ratio.value, ratio.points[-1].ratio.value
    assert low > 1.5 * high


def test_a_bent_curve_interpolates_to_the_same_ratio_at_every_cap() -> None:
    curved = replace(USUAL, curve="logarithm")
    ratio = compared(curved, replace(curved, speed=1.2))
    assert any(point.interpolated for point in ratio.points)
    assert ratio.chance > 0.01
    assert likeness_of(ratio).kind == "faster"


def test_tops_limited_by_the_load_tell_nothing_of_the_hosts() -> None:
    loaded = replace(USUAL, loaded=0.5)
    ratio = compared(loaded, replace(loaded, speed=1.1))
    assert not ratio.top.tells
    assert ratio.common.low <= 1.1 <= ratio.common.high
    assert likeness_of(ratio).kind == "faster"
    assert any("the load limits the top of A" in note for note in likeness_of(ratio).notes)


def test_lags_of_unlike_periods_are_compared_at_one_period() -> None:
    slow = recorded(replace(USUAL, lag=0.6), 0)
    half = msgspec.structs.replace(slow.metadata, period_s=2.0)
    samples = tuple(replace(sample, at=2 * sample.at) for sample in slow.samples)
    ratio = ratio_of(slow, Recording(half, samples))
    assert ratio.b.lag.value == pytest.approx(ratio.a.lag.value**0.5, abs=0.01)
    assert ratio.lags_differ
    assert any("the period differs" in note for note in likeness_of(ratio).notes)


@pytest.mark.parametrize(
    ("common", "chance", "kind"),
    [
        (Interval(1.0, 0.96, 1.04), 0.5, "same"),
        (Interval(1.0, 0.92, 1.08), 0.5, "unclear"),
        (Interval(1.02, 0.98, 1.06), 0.5, "unclear"),
        (Interval(1.01, 1.005, 1.015), 0.5, "faster"),
        (Interval(0.8, 0.7, 0.9), 0.5, "slower"),
        (Interval(1.0, 0.96, 1.04), 0.001, "another curve"),
    ],
)
def test_the_verdict_follows_the_interval(common: Interval, chance: float, kind: str) -> None:
    ratio = msgspec.structs.replace(
        compared(USUAL, USUAL), common=common, chance=chance, top=_top(common)
    )
    assert likeness_of(ratio).kind == kind


def test_one_slope_with_another_top_is_no_same_host() -> None:
    here = compared(USUAL, USUAL)
    other = msgspec.structs.replace(here, top=_top(Interval(1.5, 1.45, 1.55)))
    assert likeness_of(other).kind == "another top"


def _top(ratio: Interval) -> Any:
    return msgspec.structs.replace(compared(USUAL, USUAL).top, ratio=ratio)


@settings(max_examples=25, deadline=None)
@given(
    shared=st.floats(0.001, 0.2),
    own=st.floats(0.001, 0.05),
    count=st.integers(2, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_an_error_that_all_caps_share_is_not_averaged_away(
    shared: float, own: float, count: int, seed: int
) -> None:
    values = np.random.default_rng(seed).normal(0.3, own, count)
    covariance = own**2 * np.eye(count) + shared**2
    common = common_of(values, covariance, 20.0)
    assert common.error == pytest.approx(math.hypot(shared, own / math.sqrt(count)), rel=0.01)
    assert common.value == pytest.approx(float(values.mean()), abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(power=st.floats(0.2, 1.5), scale=st.floats(1e3, 1e6), cap=st.floats(0.05, 0.8))
def test_a_power_law_is_interpolated_exactly(power: float, scale: float, cap: float) -> None:
    caps = (0.05, 0.1, 0.3, 0.8)
    logs = np.log(scale) + power * np.log(np.array(caps))
    found = interpolated(caps, logs, [cap, 0.1])
    assert found.logs[0] == pytest.approx(math.log(scale) + power * math.log(cap), abs=1e-9)
    assert found.doubt.max() < 1e-9
    assert found.weights.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert found.covariance(0.01 * np.eye(4))[1, 1] == pytest.approx(0.01)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The same host twice, and a faster one."""
    cases = ((USUAL, 0), (USUAL, 1000), (replace(USUAL, speed=1.2), 1000))
    for number, (case, seed) in enumerate(cases):
        write_csv(recorded(case, seed), tmp_path / f"{number}.csv")
    return tmp_path / "0.csv", tmp_path / "1.csv", tmp_path / "2.csv"


def ran(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def test_the_exit_code_is_that_of_diff(files: tuple[Path, Path, Path]) -> None:
    first, again, faster = files
    assert ran(first, again).exit_code == 0
    result = ran(first, faster, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["verdict"] == "faster"
    assert not found["same"]
    assert found["common"]["low"] <= 1.2 <= found["common"]["high"]
    assert found["tops_tell"]
    assert len(found["points"]) >= 5


def test_people_get_a_table_and_a_page(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = ran(files[0], files[2], "--output", page)
    assert result.stdout.splitlines()[-1].startswith("B is 1.")
    assert "common" in result.stdout
    assert "<svg" in page.read_text()
    assert "at every cap" in page.read_text()


def test_a_file_that_supports_no_fit_is_no_difference(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    whole = read_csv(files[0])
    write_csv(Recording(whole.metadata, whole.samples[:10]), tmp_path / "short.csv")
    for bad in (tmp_path / "short.csv", tmp_path / "absent.csv"):
        error = ran(files[0], bad).exception
        assert isinstance(error, RecordingError)
        assert error.path == str(bad)
        assert exit_code(error, TRAINING_CODES) == 2
