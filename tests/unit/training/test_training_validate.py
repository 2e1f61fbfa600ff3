"""Validation: the daemon's own loop on a simulated host, against what the model predicted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from training_rig import CONFIG

from common.clock import FakeClock
from models import HostModel, ThroughputCurve, Uncertainty, dump_host, paper_host
from training.design.validate import (
    Outcome,
    hold_of,
    judged,
    outcome,
    periods_of,
    predict,
    setpoints_of,
    settling,
    validate,
)
from training.errors import OptionError
from training.sweep.targets import Site, configured_site
from training.sweep.watch import Stop, Stopped

TRAINED = CONFIG + 'model = "{0}/plant.toml"\n'


@contextmanager
def site_of(folder: Path, plant: HostModel, stop: Stop | None = None) -> Iterator[Site]:
    """A simulated host that behaves as one model says, whatever the loop is told."""
    (folder / "plant.toml").write_text(dump_host(plant))
    (folder / "xtc.toml").write_text(TRAINED.format(folder))
    with configured_site(folder / "xtc.toml", None, None, stop or Stop(), FakeClock(100.0)) as site:
        yield site


def scaled(host: HostModel, factor: float) -> HostModel:
    """Return a host that is so many times as fast below its offered load."""
    offered = host.curve.offered or host.curve.top
    points = [(cap, min(rate * factor, offered)) for cap, rate in host.curve.points]
    return replace(host, measured_curve=ThroughputCurve(tuple(points), offered))


def test_a_true_model_predicts_what_happens(tmp_path: Path) -> None:
    model, told = paper_host(), []
    with site_of(tmp_path, model) as site:
        found = validate(site, model, [20e3, 60e3], hold=20, watcher=lambda *now: told.append(now))
        assert site.journal.ledger.entries == {}
        assert site.journal.ledger.leases == {}
        assert site.open_actuator(site.plan.spec, None).applied() is None
    assert [one.setpoint_pps for one in found] == [20e3, 60e3]
    for one in found:
        assert one.cap_error is not None
        assert abs(one.cap_error) < 0.02
        assert one.fact.settling_s == one.predicted.settling_s
        assert abs(one.fact.mean_error) < 0.01
        assert one.problems == ()
    assert len(told) == 40
    assert told[-1][2] == 0


def test_a_forecast_has_the_noise_and_the_doubt_of_its_model() -> None:
    known = Uncertainty(0.06, 0.03, 0.0, ((0.01, 3e3, 3.4e3), (0.6, 97e3, 99e3)), (97e3, 99e3))
    model = replace(paper_host(), uncertainty=known)
    found = predict(model, model, 32e3, samples=40, period=1.0)
    plain = predict(model, paper_host(), 32e3, samples=40, period=1.0)
    assert found.relative_rmse == pytest.approx(0.06, abs=0.03)
    assert plain.relative_rmse < 0.01
    assert found.caps is not None
    assert 0.8 * found.cap < found.caps[0] < found.cap < found.caps[1] < 1.3 * found.cap
    assert plain.caps is None


def test_a_wrong_model_is_found_out(tmp_path: Path) -> None:
    model = paper_host()
    with site_of(tmp_path, scaled(model, 0.7)) as site:
        found = validate(site, model, [30e3], hold=20, watcher=lambda *_: None)[0]
    assert found.cap_error == pytest.approx(0.7 - 1, abs=0.05)
    assert abs(found.fact.mean_error) < 0.02  # the loop corrects what the model did not know
    (problem,) = found.problems
    assert "the model is of another host, or this one has changed" in problem


def test_without_the_model_the_loop_learns_by_itself(tmp_path: Path) -> None:
    model = paper_host()
    with site_of(tmp_path, model) as site:
        found = validate(site, model, [20e3], hold=20, watcher=lambda *_: None, trained=False)[0]
    assert abs(found.fact.mean_error) < 0.02
    assert found.fact.settling_s is not None


def test_a_stopped_validation_leaves_nothing_capped(tmp_path: Path) -> None:
    stop = Stop()

    def watcher(_setpoint: float, _rate: float | None, left: int) -> None:
        stop.asked = left <= 10

    with site_of(tmp_path, paper_host(), stop) as site:
        with pytest.raises(Stopped):
            validate(site, paper_host(), [20e3], hold=20, watcher=watcher)
        assert site.open_actuator(site.plan.spec, None).applied() is None
        assert site.journal.ledger.entries == {}


def test_what_is_predicted_comes_from_the_plant_it_is_asked_for() -> None:
    model = paper_host()
    found = predict(model, model, 32e3, samples=30, period=1.0)
    assert found.cap == pytest.approx(0.1)
    assert found.settling_s is not None
    assert found.settling_s <= 2
    slow = predict(model, replace(model, delay_samples=2), 32e3, samples=30, period=1.0)
    assert slow.settling_s is None or slow.settling_s >= 2


def test_setpoints_are_those_given_or_shares_of_the_top() -> None:
    assert setpoints_of(paper_host(), [5e3]) == [5e3]
    assert setpoints_of(paper_host(), []) == pytest.approx([9.8e3, 29.4e3, 49e3, 68.6e3, 88.2e3])


def test_a_setpoint_above_the_top_is_refused_with_the_top() -> None:
    top = paper_host().curve.top
    assert setpoints_of(paper_host(), [top]) == [top]
    with pytest.raises(OptionError) as caught:
        setpoints_of(paper_host(), [20e3, 900e6])
    assert caught.value.option == "--setpoint"
    assert "900 Mp/s is above the top of paper, 98 kp/s" in str(caught.value)
    assert "give 98000 or less" in caught.value.fix


def test_the_periods_left_fall_by_one_a_period_also_where_setpoints_are_alike(
    tmp_path: Path,
) -> None:
    lefts: list[int] = []
    with site_of(tmp_path, paper_host()) as site:
        goals = [20e3, 20e3, 20e3]
        validate(site, paper_host(), goals, hold=15, watcher=lambda *now: lefts.append(now[2]))
    each = periods_of(1, 15)
    expected = [14 - done + each * after for after in (2, 1, 0) for done in range(15)]
    assert lefts == expected


def test_a_hold_too_short_to_judge_is_refused() -> None:
    assert hold_of(15.0, 1.0, "15s") == 15
    assert hold_of(15 * 0.07, 0.07, "1.05s") == 15
    for typed in (0.0, 1.0, 14.9):
        with pytest.raises(OptionError, match="less than 15 periods of 1 s") as caught:
            hold_of(typed, 1.0, f"{typed:g}s")
        assert caught.value.fix == "give 15s or more"


def test_no_short_hold_is_made_longer_in_silence(tmp_path: Path) -> None:
    with site_of(tmp_path, paper_host()) as site, pytest.raises(OptionError, match="--hold: 14s"):
        validate(site, paper_host(), [20e3], hold=14, watcher=lambda *_: None)


def test_what_is_predicted_at_another_period_has_the_lag_of_that_period() -> None:
    slow = replace(paper_host(), lag=0.9, pi=None, dead_beat=None)
    second = predict(None, slow, 50e3, samples=40, period=1.0)
    late = predict(None, slow, 50e3, samples=40, period=60.0)
    at_once = predict(None, replace(slow, lag=0.0), 50e3, samples=40, period=60.0)
    assert second.settling_s is None or second.settling_s > 2.0
    assert late.settling_s == at_once.settling_s
    assert late.relative_rmse == pytest.approx(at_once.relative_rmse, abs=0.01)


def test_settling_counts_from_the_first_cap() -> None:
    assert settling([98.0] + [50.0] * 12, 50.0) == 1
    assert settling([98.0, 20.0, 20.0] + [50.0] * 10, 50.0) == 3
    assert settling([98.0] * 20, 50.0) is None
    assert settling([50.0] * 5, 50.0) is None


def test_an_outcome_is_of_the_settled_part() -> None:
    found = outcome([98.0, 20.0, 20.0] + [50.0] * 10, [None, 0.1, 0.3] + [0.2] * 10, 50.0, 0.5)
    assert found.settling_s == 1.0
    assert found.cap == pytest.approx(0.2)
    assert found.mean_error == 0.0
    assert found.relative_rmse == 0.0


@pytest.mark.parametrize(
    ("fact", "problems"),
    [
        (Outcome(0.114, 1.0, 0.049, 0.1), 0),
        (Outcome(0.1, 1.0, 0.051, 0.1), 1),
        (Outcome(0.12, 1.0, 0.0, 0.1), 1),
        (Outcome(0.08, None, -0.3, 0.1), 2),
        (Outcome(None, 1.0, 0.0, 0.1), 1),
    ],
)
def test_a_setpoint_passes_or_fails(fact: Outcome, problems: int) -> None:
    found = judged(20e3, Outcome(0.1, 1.0, 0.0, 0.0), fact)
    assert len(found.problems) == problems


@pytest.mark.parametrize(("cap", "passes"), [(0.13, True), (0.14, False), (0.08, False)])
def test_a_model_that_says_how_unsure_it_is_fails_beyond_that(cap: float, *, passes: bool) -> None:
    predicted = Outcome(0.1, 1.0, 0.0, 0.0, caps=(0.095, 0.135))
    assert (judged(20e3, predicted, Outcome(cap, 1.0, 0.0, 0.1)).problems == ()) is passes
