"""The calibration: the paper's method gives the paper's numbers, and finds what it was given."""

import math
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.__main__ import calibrated, with_calibration
from benchmarks.evaluation.calibration import (
    Calibration,
    Equation,
    Step,
    fit,
    load,
    model,
    rising,
    save,
)
from benchmarks.evaluation.catalogue import EXPERIMENTS
from benchmarks.evaluation.machine import this_machine
from benchmarks.evaluation.xtc import calibrate
from benchmarks.evaluation.xtc.calibrate import PERCENTS, alternating
from models import parse_host
from xtc.control.law import DEAD_BEAT, PI, PaperLaw
from xtc.control.laws import law_named

PAPER = Equation(0.0915, 63.0051, 78.14, 1.39, 0.9899)
MAP = ((5.0, 16e3), (10.0, 32e3), (20.0, 65e3), (50.0, 98e3))


def calibration(equation: Equation = PAPER) -> Calibration:
    return Calibration(125e3, MAP, equation)


def played(a: float, b: float) -> list[Step]:
    """Return the samples of a host that follows Eq. 1 exactly."""
    kpps, steps = 40.0, []
    for percent, _ in zip(cycle((2.0, 30.0, 5.0, 50.0, 10.0)), range(60), strict=False):
        kpps = a * kpps + b * math.log10(percent)
        steps.append(Step(percent, kpps))
    return steps


def test_the_papers_equation_gives_the_papers_gains() -> None:
    host = parse_host(model(calibration()).encode(), "evaluation")
    for name, gains in (("pi", PI), ("dead-beat", DEAD_BEAT)):
        law = law_named(name, host)
        assert isinstance(law, PaperLaw)
        assert law.gains.kp == pytest.approx(gains.kp, abs=1e-6)
        assert law.gains.ki == pytest.approx(gains.ki, abs=1e-6)
        assert law.gains.dead_zone == 0.1


def test_the_law_of_choice_has_a_smallest_cap_of_three_percent() -> None:
    law = law_named("dead-beat-min3", parse_host(model(calibration()).encode(), "evaluation"))
    assert isinstance(law, PaperLaw)
    assert law.gains.min_cap == 0.03


@given(st.floats(0.0, 0.8), st.floats(5.0, 200.0))
def test_the_fit_finds_the_host_that_made_the_samples(a: float, b: float) -> None:
    found = fit(played(a, b), 60.0)
    assert found.a == pytest.approx(a, abs=1e-6)
    assert found.b == pytest.approx(b, rel=1e-6)
    assert found.r_squared == pytest.approx(1.0)


@given(st.floats(-0.9, -0.05), st.floats(5.0, 200.0))
def test_a_lag_below_zero_is_left_out_of_the_fit(a: float, b: float) -> None:
    steps = played(a, b)
    found = fit(steps, 60.0)
    caps = np.log10([step.percent for step in steps[1:]])
    slope, _ = np.polyfit(caps, [step.kpps for step in steps[1:]], 1)
    assert found.a == 0.0
    assert found.b == pytest.approx(slope)
    assert found.r_squared < 1.0


def test_a_fit_without_data_is_refused() -> None:
    with pytest.raises(ValueError, match="at least three"):
        fit([Step(10.0, 1.0)], 60.0)
    falling = [Step(p, k) for p, k in ((1.0, 9.0), (2.0, 8.0), (5.0, 4.0), (9.0, 3.0), (20.0, 1.0))]
    with pytest.raises(ValueError, match="does not rise"):
        fit(falling, 60.0)


def test_another_cpu_is_calibrated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = replace(calibration(), cpu=this_machine().cpu)
    monkeypatch.setattr(calibrate, "measure", lambda **_: here)
    save(replace(here, cpu="another"), tmp_path / "calibration.json")
    assert calibrated(tmp_path, quick=True) == here
    monkeypatch.delattr(calibrate, "measure")
    assert calibrated(tmp_path, quick=True) == here, "it was saved"


def test_without_a_calibration_the_others_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(calibrate, "measure")
    able, known = with_calibration(EXPERIMENTS, tmp_path, quick=True)
    assert known is None
    assert able == tuple(one for one in EXPERIMENTS if not one.calibrated)
    assert with_calibration(able, tmp_path, quick=True) == (able, None)


def test_rates_are_scaled_by_one_factor_there_and_back() -> None:
    here = calibration()
    assert here.scale == pytest.approx(1.0)
    assert here.paper_kpps(here.pps(20.0)) == pytest.approx(20.0)


def test_the_fixed_cap_is_read_from_the_map() -> None:
    assert calibration().fixed_percent(32e3) == pytest.approx(10.0)
    assert calibration().fixed_percent(8e3) == pytest.approx(2.5)


@given(st.lists(st.tuples(st.floats(1, 100), st.floats(0, 1e6)), min_size=1))
def test_a_map_of_caps_never_falls(points: list[tuple[float, float]]) -> None:
    found = rising(points)
    assert [rate for _, rate in found] == sorted(rate for _, rate in found)
    assert len(found) == len(points)


def test_caps_alternate_and_none_is_left_out() -> None:
    assert sorted(alternating(PERCENTS)) == sorted(PERCENTS)
    assert alternating((1, 2, 3, 4, 5)) == (1, 3, 2, 4, 5)


def test_a_calibration_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "raw" / "calibration.json"
    assert load(path) is None
    save(calibration(), path)
    assert load(path) == calibration()
