"""Further offered rates: measured at caps of the curve, told apart from it and compared with it."""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import msgspec
import pytest
from training_rig import METADATA, Router, Sender, router, swept_under

from common.units import format_rate
from models import HostModel, ThroughputCurve
from training.design.gains import design
from training.errors import RecordingError
from training.fit.fit import fit
from training.fit.loads import in_words, load_effects
from training.recording.recording import Recording, Sample, read_csv
from training.recording.sweep_model import LOAD_SAMPLES
from training.report.report import report
from training.sweep.sweep import Progress
from training.sweep.watch import MeasureError

RATES = (100e3, 40e3, 200e3)
"""The curve's, one that a few caps forward, and one that is twice what the router can."""


def hinge(noise: float = 0.0, seed: int = 0) -> Router:
    curve = ThroughputCurve(((0.5, 80e3), (2.0, 80e3)))
    host = HostModel(name="h", measured_curve=curve, cap_floor=0.001, cap_ceiling=2.0)
    return Router(host, noise=noise, seed=seed)


def loaded(recording: Recording) -> list[Sample]:
    return [s for s in recording.samples if s.phase == "load"]


def test_each_further_rate_is_measured_at_caps_of_the_curve(tmp_path: Path) -> None:
    simulated = hinge()
    sender = Sender(simulated)
    recording = swept_under(sender, simulated, tmp_path / "sweep.csv", RATES)
    assert sender.rates == list(RATES)
    steady = {s.cap for s in recording.samples if s.phase == "steady"}
    for rate in RATES[1:]:
        caps = {s.cap for s in loaded(recording) if s.offered_pps == rate}
        assert len(caps) == 3
        assert caps <= steady
        assert max(caps, key=float) == max(cap for cap in steady if cap)  # type: ignore[arg-type]
    assert {s.offered_pps for s in loaded(recording)} == set(RATES[1:])
    assert {s.offered_pps for s in recording.samples if s.phase != "load"} == {RATES[0]}


def test_they_come_last_and_every_other_sample_is_there(tmp_path: Path) -> None:
    simulated = hinge()
    recording = swept_under(Sender(simulated), simulated, tmp_path / "sweep.csv", RATES)
    order = [phase for phase, _ in groupby(recording.samples, lambda s: s.phase)]
    assert order[-1] == "load"
    assert order.count("load") == 1
    assert len({s.cap for s in recording.samples if s.phase == "held_out"}) == 5


@pytest.mark.parametrize(("toll", "expected"), [(1.0, 1.0), (0.9, 0.9)])
def test_a_load_that_costs_throughput_shows_it_within_its_error(
    tmp_path: Path, toll: float, expected: float
) -> None:
    simulated = hinge(noise=0.01)
    sender = Sender(simulated, heavy=150e3, toll=toll)
    light, heavy = load_effects(swept_under(sender, simulated, tmp_path / "sweep.csv", RATES))
    assert (light.offered_pps, heavy.offered_pps) == (40e3, 200e3)
    assert heavy.ratio is not None
    assert heavy.error is not None
    assert 0.001 < heavy.error < 0.02
    assert abs(heavy.ratio - expected) < 4 * heavy.error
    assert [point.starved for point in heavy.points] == [False] * 3
    assert light.ratio is not None
    assert light.error is not None
    assert abs(light.ratio - 1) < 4 * light.error


def test_the_error_of_the_ratio_is_about_its_scatter(tmp_path: Path) -> None:
    found = []
    for seed in range(12):
        simulated = hinge(noise=0.02, seed=seed)
        path = tmp_path / f"{seed}.csv"
        (effect,) = load_effects(swept_under(Sender(simulated), simulated, path, RATES[::2]))
        found.append(((effect.ratio or 0.0) - 1, effect.error or 0.0))
    scatter = (sum(miss**2 for miss, _ in found) / len(found)) ** 0.5
    assert 0.4 < scatter / (sum(error for _, error in found) / len(found)) < 2.0


def test_what_less_load_holds_back_says_nothing_of_the_host(tmp_path: Path) -> None:
    simulated = hinge()
    light, _ = load_effects(
        swept_under(Sender(simulated), simulated, tmp_path / "sweep.csv", RATES)
    )
    starved = [point for point in light.points if point.starved]
    assert [point.ratio for point in starved] == [pytest.approx(0.5)]
    assert light.ratio == pytest.approx(1.0)
    recording = read_csv(tmp_path / "sweep.csv")
    rest = [s for s in recording.samples if s.phase != "load" or s.cap == starved[0].cap]
    alone = load_effects(Recording(recording.metadata, tuple(rest)))[0]
    assert (alone.ratio, alone.error) == (None, None)


def test_where_the_curves_own_load_held_it_back_more_says_nothing(tmp_path: Path) -> None:
    simulated = hinge()
    rates = (60e3, 200e3)
    (more,) = load_effects(swept_under(Sender(simulated), simulated, tmp_path / "s.csv", rates))
    assert [point.starved for point in more.points] == [False, False, True]
    assert more.points[-1].ratio == pytest.approx(80 / 60, rel=0.05)
    assert more.ratio == pytest.approx(1.0, abs=0.01)


def test_caps_that_the_curve_does_not_know_are_left_out() -> None:
    steady = [Sample(at=n, cap=0.1 * n, throughput_pps=1e3 * n, visit=n) for n in range(1, 4)]
    beyond = Sample(at=9, cap=0.7, throughput_pps=5e3, offered_pps=9e3, phase="load", visit=9)
    (effect,) = load_effects(Recording(METADATA, (*steady, beyond)))
    assert effect.points == ()
    assert load_effects(Recording(METADATA, tuple(steady))) == ()
    assert load_effects(Recording(METADATA, (beyond,)))[0].points == ()


def test_no_load_sample_changes_the_fit(tmp_path: Path) -> None:
    simulated = hinge(noise=0.01)
    sender = Sender(simulated, heavy=150e3, toll=0.5)
    recording = swept_under(sender, simulated, tmp_path / "sweep.csv", RATES)
    rest = tuple(s for s in recording.samples if s.phase != "load")
    assert len(rest) < len(recording.samples)
    found = fit(recording)
    assert msgspec.structs.replace(found, loads=()) == fit(Recording(recording.metadata, rest))


def test_fit_and_report_tell_what_a_heavier_load_does(tmp_path: Path) -> None:
    simulated = hinge(noise=0.01)
    sender = Sender(simulated, heavy=150e3, toll=0.5)
    recording = swept_under(sender, simulated, tmp_path / "sweep.csv", RATES)
    found = fit(recording)
    assert [effect.offered_pps for effect in found.loads] == sorted(RATES[1:])
    page = report(recording, found, design(0.1, found.eq1.b.value, period_s=1.0))
    assert "Other offered loads" in page
    for effect in found.loads:
        assert format_rate(effect.offered_pps) in page
        assert in_words(effect) in page


@pytest.mark.parametrize("before", [1, 60, -30, -15, -5, -1])
def test_an_interrupted_sweep_goes_on_among_its_rates(tmp_path: Path, before: int) -> None:
    whole = swept_under(Sender(r := hinge()), r, tmp_path / "whole.csv", RATES)
    path, simulated = tmp_path / "sweep.csv", hinge()
    simulated.breaks_after = before if before > 0 else r.samples + before
    with pytest.raises(InterruptedError):
        swept_under(Sender(simulated), simulated, path, RATES)
    kept = read_csv(path).samples
    simulated.breaks_after = None
    again = swept_under(Sender(simulated), simulated, path, RATES).samples
    assert again[: len(kept)] == kept
    places = {(s.offered_pps, s.cap) for s in again if s.phase == "load"}
    assert places == {(s.offered_pps, s.cap) for s in loaded(whole)}
    assert all(two.at >= one.at for one, two in pairwise(again))


def test_a_rate_is_added_to_a_finished_file_and_nothing_else_is_measured(tmp_path: Path) -> None:
    path, simulated = tmp_path / "sweep.csv", hinge()
    before = swept_under(Sender(simulated), simulated, path, RATES[:1]).samples
    after = swept_under(Sender(simulated), simulated, path, RATES[::2]).samples
    assert after[: len(before)] == before
    assert {(s.phase, s.offered_pps) for s in after[len(before) :]} == {("load", RATES[2])}
    samples = simulated.samples
    swept_under(Sender(simulated), simulated, path, RATES[::2])
    assert simulated.samples == samples


def test_another_rate_of_the_curve_is_refused(tmp_path: Path) -> None:
    path, simulated = tmp_path / "sweep.csv", hinge()
    swept_under(Sender(simulated), simulated, path, RATES[::2])
    with pytest.raises(RecordingError, match="offered_pps: the file is of 100000"):
        swept_under(Sender(simulated), simulated, path, (200e3, 100e3))


@pytest.mark.parametrize("samples", [40, 60, 100, 200, 250])
@pytest.mark.parametrize("rates", [1, 3])
@pytest.mark.parametrize("name", ["paper", "hinge", "log"])
def test_the_budget_holds_the_curve_and_every_rate(
    tmp_path: Path, name: str, rates: int, samples: int
) -> None:
    simulated, told = router(name, noise=0.01), list[Progress]()
    top = simulated.plant.offered
    asked = [top, *(top * (2 + n) for n in range(rates))]
    budget = samples + LOAD_SAMPLES * rates
    recording = swept_under(
        Sender(simulated), simulated, tmp_path / "s.csv", asked, samples=budget, watcher=told.append
    )
    assert simulated.samples <= budget
    assert len({s.cap for s in recording.samples if s.phase == "steady"}) >= 5
    assert len({s.visit for s in recording.samples if s.phase == "step"}) >= 3
    assert {s.offered_pps for s in loaded(recording)} == set(asked[1:])
    assert all(0 <= p.done_s + p.left_s <= budget + 1 for p in told)
    assert told[-1].left_s < 15


def test_a_rate_that_does_not_arrive_ends_the_sweep_with_the_curve_whole(tmp_path: Path) -> None:
    path, simulated = tmp_path / "sweep.csv", hinge()
    with pytest.raises(MeasureError, match=r"150 kp/s arrive where 200 kp/s were asked for"):
        swept_under(Sender(simulated, most=150e3), simulated, path, RATES)
    recording = read_csv(path)
    assert {s.offered_pps for s in loaded(recording)} == {40e3}
    assert fit(recording).top_pps == pytest.approx(80e3, rel=0.01)


def changed_after(count: int, change: Callable[[], None], simulated: Router) -> None:
    """Have something happen once so many samples were taken."""
    sample = simulated.sample

    def counting() -> object:
        if simulated.samples == count:
            change()
        return sample()

    simulated.sample = counting  # type: ignore[method-assign, assignment]


def test_the_sample_in_which_the_source_ended_is_not_kept(tmp_path: Path) -> None:
    path, simulated = tmp_path / "sweep.csv", hinge()
    sender = Sender(simulated)
    changed_after(30, sender.stop, simulated)
    with pytest.raises(MeasureError, match="the source: ended by itself"):
        swept_under(sender, simulated, path, RATES)
    assert simulated.samples == 31
    assert read_csv(path).samples[-1].at <= 30


def test_rates_may_be_the_curves_own_as_a_control(tmp_path: Path) -> None:
    simulated = hinge(noise=0.01)
    (control,) = load_effects(
        swept_under(Sender(simulated), simulated, tmp_path / "s.csv", (100e3, 100e3))
    )
    assert control.ratio == pytest.approx(1, abs=0.03)


def test_effects_survive_json() -> None:
    steady = [Sample(at=n, cap=0.1 * n, throughput_pps=1e3 * n, visit=n) for n in range(1, 4)]
    load = replace(steady[0], at=9, phase="load", offered_pps=9e3, throughput_pps=900.0, visit=9)
    effects = load_effects(Recording(METADATA, (*steady, load)))
    (found,) = msgspec.json.decode(msgspec.json.encode(effects))
    assert found["ratio"] == pytest.approx(0.9)
    assert found["points"][0]["starved"] is False
