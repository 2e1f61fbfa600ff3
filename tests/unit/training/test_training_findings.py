"""What a fit found is said in words that are true of it: range, threshold, and why Eq. 1 misses."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from test_training_fit import CAPS, Sweep, plant, swept
from typer.testing import CliRunner

from common.units import PacketsPerSecond
from models import bundled_host
from training.cli.main import app
from training.design.gains import design
from training.design.host_model import b_of, lag_of
from training.fit.fit import Fit, fit
from training.recording.recording import Recording, read_csv
from training.report.summary import (
    cautions,
    measured_range,
    plain_words,
    threshold_doubt,
    why_missed,
)
from xtc.simulation.plant import Plant

LAB = Path(__file__).parents[3] / "notebooks" / "data" / "lab-user-space.csv"


def said(found: Fit, recording: Recording) -> list[str]:
    return cautions(recording, found, design(lag_of(found), b_of(found)))


def test_below_its_smallest_cap_a_curve_is_told_to_be_a_guess() -> None:
    """A host of Eq. 1 forwards nothing up to a cap of 1.8 %; the line to zero says otherwise."""
    log = plant("log")
    sweep = Sweep(log)
    recording = sweep.whole()
    kept = tuple(s for s in recording.samples if s.cap is None or s.cap >= 0.04)
    found = fit(Recording(recording.metadata, kept))
    smallest = found.points[0]
    below = 0.5 * smallest.cap
    assert found.curve.throughput(below) > 2 * log.curve.throughput(below)
    words = measured_range(found)
    assert "from 4% to 100%" in words
    assert f"no setpoint below {smallest.smoothed_pps / 1e3:.3g} kp/s" in words
    assert words in plain_words(found)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("host", ["hinge", "paper"])
def test_where_throughput_is_proportional_the_line_to_zero_is_trusted(host: str, seed: int) -> None:
    words = measured_range(swept(host, 0.0, 0.03, seed=seed))
    assert "agrees with what was" in words
    assert "no setpoint" not in words


def test_a_smallest_cap_that_forwards_nothing_is_named() -> None:
    sweep = Sweep(plant("log"))
    recording = sweep.whole()
    silent = tuple(
        replace(s, throughput_pps=0.0) if s.cap == CAPS[0] else s for s in recording.samples
    )
    assert "forwards nothing" in measured_range(fit(Recording(recording.metadata, silent)))


def test_a_threshold_is_doubted_where_the_sweep_did_not_reach_it() -> None:
    assert threshold_doubt(swept("hinge", 0.0)) == ""
    slow = Sweep(Plant(bundled_host("hinge").curve, PacketsPerSecond(2e5))).whole()
    rising = tuple(s for s in slow.samples if s.cap is None or s.cap <= 0.6)
    assert "still rises" in threshold_doubt(fit(Recording(slow.metadata, rising)))


def test_an_uncapped_router_that_forwards_more_than_any_cap_lets_it_is_told() -> None:
    """As where a cap moves the forwarding to one thread: more cap would not help."""
    recording = Sweep(plant("hinge"), noise=0.01).whole()
    faster = tuple(
        replace(s, throughput_pps=1.4 * s.throughput_pps) if s.cap is None else s
        for s in recording.samples
    )
    metadata = msgspec.structs.replace(recording.metadata, offered_pps=400e3)
    found = fit(Recording(metadata, faster))
    assert found.cap_threshold < CAPS[-1]
    assert "uncapped, it forwards" in threshold_doubt(found)
    assert "still rises" not in " ".join(plain_words(found))
    assert any("uncapped, it forwards" in words for words in said(found, recording))


def test_where_the_line_is_to_blame_for_a_low_r_squared_it_is_said() -> None:
    recording = Sweep(plant("hinge"), noise=0.02).whole()
    (words,) = [w for w in said(fit(recording), recording) if "Eq. 1 explains" in w]
    assert "no straight line over log(cap)" in words
    assert "noise" not in words


def test_where_noise_is_to_blame_the_line_is_not() -> None:
    recording = Sweep(plant("log"), noise=0.15, seed=4).whole()
    (words,) = [w for w in said(fit(recording), recording) if "Eq. 1 explains" in w]
    assert "noise, which no model predicts" in words
    assert "straight line" not in words


def test_a_real_sweep_of_a_hinge_is_fitted_and_explained() -> None:
    """Its router uses one CPU at most: a noisy cap at the top once put the threshold at 200 %."""
    found = fit(read_csv(LAB))
    assert (found.threshold_above, found.cap_threshold) == (1.1, 1.43)
    assert found.threshold_reached
    assert found.top.low <= 249e3 <= found.top.high, "what the uncapped router forwards"
    missed = found.eq1.missed
    assert missed.line > 5 * (missed.noise + missed.drift)
    assert "more than chance" in why_missed(found)


def test_the_steps_of_that_sweep_show_that_its_host_did_not_keep_its_speed() -> None:
    """Its step visits at 110 % forward 201 to 243 kp/s."""
    found = fit(read_csv(LAB)).variation
    assert found is not None
    assert found.sure
    assert found.low < 0.05 < found.high
    assert found.span == pytest.approx(0.18, abs=0.02)


def test_fit_prints_in_one_line_why_eq1_misses() -> None:
    result = CliRunner().invoke(app, ["fit", str(LAB)])
    assert result.exit_code == 0, result.output
    (line,) = [row for row in result.stdout.splitlines() if row.startswith("Eq. 1")]
    assert why_missed(fit(read_csv(LAB))) in line
    (curve,) = [row for row in result.stdout.splitlines() if row.startswith("curve")]
    assert "from 2.2% to 200%" in curve
