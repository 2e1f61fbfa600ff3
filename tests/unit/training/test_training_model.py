"""A trained host is a model file that the daemon reads back and holds routers with."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import msgspec
import pytest
from test_training_fit import Sweep, plant

from common.units import PacketsPerSecond
from models import dump_host, load_host
from training.design.expect import expected
from training.design.gains import design
from training.design.host_model import b_of, host_model, lag_of, uncertainty_of
from training.design.validate import setpoints_of
from training.fit.fit import fit
from training.fit.interval import Interval
from training.fit.levels import USUAL
from xtc.control.laws import NAMES, law_named
from xtc.simulation.closed_loop import Scenario, run, summarise

PLANT = plant("hinge", 0.2)
RECORDING = Sweep(PLANT, noise=0.02).whole()
FIT = fit(RECORDING)
MODEL = host_model(FIT, design(FIT.eq1.a.value, FIT.eq1.b.value), RECORDING.metadata)


def test_it_survives_its_file(tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text(dump_host(MODEL))
    read = load_host(tmp_path / "host.toml")
    assert read.lag == MODEL.lag == pytest.approx(0.2, abs=0.05)
    assert read.name == "simulated"
    assert read.pi == MODEL.pi
    assert read.curve.throughput(0.33) == pytest.approx(PLANT.curve.throughput(0.33), rel=0.05)


def test_its_file_says_how_well_the_curve_is_known(tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text(dump_host(MODEL))
    known = load_host(tmp_path / "host.toml").uncertainty
    assert known is not None
    assert known.noise == pytest.approx(0.02, abs=0.005)
    assert known.limited_by == FIT.limited_by == "load"
    top = PLANT.curve.top
    assert known.top[0] < top < known.top[1] < 1.05 * top
    assert 0.9 * top < load_host(tmp_path / "host.toml").promise < top
    inside = [low <= PLANT.curve.throughput(cap) <= high for cap, low, high in known.intervals]
    assert sum(inside) >= 0.8 * len(inside)


def test_a_host_of_unknown_changes_is_taken_to_be_like_most() -> None:
    known = uncertainty_of(msgspec.structs.replace(FIT, variation=None))
    assert (known.speed_sd, known.trend) == (USUAL, 0.0)


def test_its_file_keeps_the_period_of_the_sweep(tmp_path: Path) -> None:
    gains = design(lag_of(FIT), b_of(FIT), period_s=0.2)
    (tmp_path / "host.toml").write_text(dump_host(host_model(FIT, gains, RECORDING.metadata)))
    read = load_host(tmp_path / "host.toml")
    assert read.period == 0.2
    assert read.lag_at(0.2) == read.lag
    assert read.lag_at(1.0) == pytest.approx(read.lag**5)
    assert replace(read, pi=None).period == 0.2
    assert replace(read, pi=None, dead_beat=None).period == 1.0


def test_its_lag_is_the_one_that_was_found_as_far_as_a_host_can_have_it() -> None:
    """A pretest would make 0 of a lag of 0.15 in noise (17 of 40 sweeps did)."""
    lags = [
        lag_of(fit(Sweep(plant("hinge", 0.15), noise=0.1, seed=seed).whole())) for seed in range(20)
    ]
    assert min(lags) > 0.05
    assert fmean(lags) == pytest.approx(0.15, abs=0.02)
    assert lag_of(FIT) == FIT.eq1.a.value
    doubtful = msgspec.structs.replace(FIT.eq1, a=Interval(-0.02, -0.1, 0.06))
    assert lag_of(msgspec.structs.replace(FIT, eq1=doubtful)) == 0.0


def test_a_lag_that_is_not_there_makes_the_loop_slower_and_its_mean_worse() -> None:
    host = replace(MODEL, lag=0.0)
    setpoints = setpoints_of(host, [])
    right, wrong = (
        expected(host, law_named("default", replace(host, lag=lag)), setpoints, noise=0.08)
        for lag in (0.0, 0.06)
    )
    for told in (right, wrong):
        assert None not in [one.settling_samples for one in told]
    assert sum(r.settling_samples or 0 for r in right) < sum(w.settling_samples or 0 for w in wrong)
    assert fmean(abs(r.mean_error) for r in right) < fmean(abs(w.mean_error) for w in wrong)


def test_its_steady_line_is_the_one_that_was_measured() -> None:
    assert MODEL.log_model is not None
    assert MODEL.log_model.gain == pytest.approx(FIT.eq1.line.gain.value)
    assert MODEL.log_model.cap_threshold == FIT.cap_threshold


def test_the_b_that_gains_are_designed_from_is_that_of_its_file() -> None:
    recording = Sweep(plant("hinge", 0.2), noise=0.05).whole()
    found = fit(recording)
    gains = design(lag_of(found), b_of(found))
    line = host_model(found, gains, recording.metadata).log_model
    assert line is not None
    assert (line.a, line.b) == (gains.a, gains.b)
    assert line.gain == pytest.approx(found.eq1.line.gain.value)


def test_the_minimum_cap_of_dead_beat_is_the_smallest_useful_one() -> None:
    assert MODEL.dead_beat is not None
    assert MODEL.dead_beat.min_cap == FIT.smallest_useful_cap


def test_it_says_where_it_comes_from_and_how_good_it_is() -> None:
    assert "hinge" in MODEL.description
    assert "held out" in MODEL.description
    assert "caps from 2% to 100%" in MODEL.description


@pytest.mark.parametrize("law", NAMES)
def test_every_law_holds_the_host_that_it_was_trained_on(law: str) -> None:
    scenario = Scenario(PacketsPerSecond(60e3))
    summary = summarise(run(PLANT, law_named(law, MODEL), scenario), scenario)
    assert summary.mean_error <= (0.02 if law == "default" else 0.10)
