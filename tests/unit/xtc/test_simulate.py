"""The simulated run: repeatable, and its summary's definitions by hand."""

import math
from dataclasses import replace

import pytest

from common.units import CapFraction, PacketsPerSecond
from models import paper_host
from xtc.control.law import Bounds, Reason
from xtc.control.laws import law_named
from xtc.control.shielding import Shielding
from xtc.simulation.closed_loop import Scenario, SecondOfRun, run, summarise
from xtc.simulation.loads import Steps
from xtc.simulation.plant import Plant

TEN = Scenario(PacketsPerSecond(10.0))
HOST = paper_host()
PLANT = Plant(HOST.curve, PacketsPerSecond(100e3), HOST.lag)


def _samples(*throughputs: float) -> list[SecondOfRun]:
    return [SecondOfRun(t, y, 0.1, 0.1, Reason.ACT) for t, y in enumerate(throughputs)]


def _run(scenario: Scenario) -> list[SecondOfRun]:
    return run(PLANT, law_named("default", HOST), scenario)


def test_the_same_seed_gives_the_same_samples_and_another_does_not() -> None:
    noisy = Scenario(PacketsPerSecond(20e3), noise=0.05, seed=7)
    assert _run(noisy) == _run(noisy)
    assert _run(noisy) != _run(replace(noisy, seed=8))


def test_a_run_has_one_sample_a_second_from_the_start_cap_on() -> None:
    samples = _run(Scenario(PacketsPerSecond(20e3), duration=7, start_cap=CapFraction(0.05)))
    assert [s.t for s in samples] == list(range(7))
    assert samples[0].cap == 0.05
    assert samples[0].throughput_pps == pytest.approx(16e3)
    assert [s.cap for s in samples[1:]] == [s.next_cap for s in samples[:-1]]


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_a_delay_of_n_shows_a_cap_n_samples_later(delay: int) -> None:
    host = replace(HOST, delay_samples=delay)
    samples = run(
        PLANT, law_named("default", host), Scenario(PacketsPerSecond(50e3), delay=delay, duration=9)
    )
    moved = [s.t for s in samples if s.throughput_pps > 3300]
    assert moved[0] == 1 + delay


def test_whole_percents_are_what_is_in_force() -> None:
    scenario = Scenario(
        PacketsPerSecond(8e3), quantum=0.01, bounds=Bounds(CapFraction(0.01), CapFraction(1.0))
    )
    tenths = [s.cap * 1000 for s in _run(scenario)]
    assert tenths == pytest.approx([round(tenth) for tenth in tenths], abs=1e-6)
    assert any(round(tenth) % 10 for tenth in tenths)


def test_the_thief_comes_when_it_is_told() -> None:
    samples = _run(Scenario(PacketsPerSecond(20e3), stolen=0.15, stolen_from=30))
    assert samples[29].throughput_pps == pytest.approx(20e3, rel=0.002)
    drop = (1 - HOST.lag) * 0.15
    assert samples[30].throughput_pps == pytest.approx((1 - drop) * 20e3, rel=0.002)


def test_no_sample_exceeds_the_offered_load_or_is_negative() -> None:
    values = [s.throughput_pps for s in _run(Scenario(PacketsPerSecond(97e3), noise=2.0))]
    assert min(values) == 0.0
    assert max(values) <= 100e3


def test_what_the_shield_lets_by_is_its_rate_and_the_burst_in_any_window() -> None:
    """A flood that a router could forward all of: beside its shield nothing holds it at first."""
    free = replace(
        Scenario(PacketsPerSecond(20e3), start_cap=CapFraction(1.0), duration=30), shield=True
    )
    rate = Shielding().rate(free.promised).rate
    samples = _run(free)
    assert samples[0].throughput_pps == pytest.approx(rate + 4e3, rel=0.01)
    assert sum(s.throughput_pps for s in samples) <= 30 * rate + 4e3 + 1e-3
    alone = _run(replace(free, shield=False))
    assert alone[0].throughput_pps > 90e3
    assert alone[0].over_promise_packets == pytest.approx(alone[0].throughput_pps - 24e3)


def test_a_deep_bucket_is_sound_with_any_period() -> None:
    """A burst of five seconds, saved up by silence, passes at once, and no more than that."""
    deep = Scenario(
        PacketsPerSecond(20e3),
        burst=100e3,
        load=Steps([0.0, 10.0], [0.0, 100e3]),
        start_cap=CapFraction(1.0),
        shield=True,
        duration=40,
    )
    samples = _run(deep)
    assert [s.throughput_pps for s in samples[:10]] == [0.0] * 10
    rate = Shielding().rate(deep.promised).rate
    assert sum(s.throughput_pps for s in samples) <= 30 * rate + 100e3 + 1e-3
    assert sum(s.over_promise_packets for s in samples) <= 30 * (rate - 20e3) + 1e-3


def test_a_queue_bridges_what_is_short_of_cpu_for_a_moment() -> None:
    """Whole percents: 5 kp/s are half a second at 6.4 kp/s and half a second at 3.2."""
    whole = Scenario(
        PacketsPerSecond(5e3),
        quantum=0.01,
        bounds=Bounds(CapFraction(0.01), CapFraction(1.0)),
        shield=True,
    )
    without = summarise(_run(whole), whole)
    queued = replace(whole, queue=1000.0)
    settled = summarise(_run(queued), queued).settling_samples
    assert settled is not None
    assert settled <= 3
    assert (without.settling_samples or whole.duration) > 10 * settled


def test_settling_counts_the_samples_before_the_last_that_is_outside() -> None:
    summary = summarise(_samples(1, 10, 9.4, 9.6, 10.4, 10), TEN)
    assert (summary.settling_samples, summary.steady_from) == (3, 3)
    assert summary.mean_throughput_pps == pytest.approx(10.0)
    assert summary.mean_error == pytest.approx(0.0, abs=1e-12)
    assert summary.relative_rmse == pytest.approx(math.sqrt((0.16 + 0.16) / 3) / 10)


@pytest.mark.parametrize(("value", "settling"), [(9.5, 0), (10.5, 0), (9.49, None), (10.51, None)])
def test_the_band_is_5_percent_edges_included(value: float, settling: int | None) -> None:
    assert summarise(_samples(10, 10, value), TEN).settling_samples == settling


def test_noise_widens_the_band_by_three_sigmas() -> None:
    noisy = replace(TEN, noise=0.10)
    assert summarise(_samples(6.6, 13.4), noisy).settling_samples == 0
    assert summarise(_samples(6.6, 13.6), noisy).settling_samples is None


def test_a_loop_that_never_settles_is_judged_on_its_second_half() -> None:
    summary = summarise(_samples(1, 1, 20, 5), TEN)
    assert (summary.settling_samples, summary.steady_from) == (None, 2)
    assert summary.mean_throughput_pps == 12.5
    assert summary.mean_error == pytest.approx(0.25)
    assert summary.relative_rmse == pytest.approx(7.5 / 12.5)


def test_recovery_is_counted_from_the_disturbance_and_settling_ends_before_it() -> None:
    thief = replace(TEN, stolen=0.15, stolen_from=3)
    summary = summarise(_samples(1, 10, 10, 8, 9, 10, 10), thief)
    assert (summary.settling_samples, summary.recovery_samples) == (1, 2)
    lost = summarise(_samples(1, 10, 10, 8, 8), thief)
    assert (lost.settling_samples, lost.recovery_samples) == (1, None)


@pytest.mark.parametrize("start", [0, 5])
def test_a_thief_from_the_start_or_after_the_end_is_no_disturbance(start: int) -> None:
    thief = replace(TEN, stolen=0.15, stolen_from=start)
    assert summarise(_samples(10, 10, 8, 10, 10), thief).recovery_samples is None


def test_a_dead_router_has_no_relative_rmse() -> None:
    summary = summarise(_samples(0, 0, 0), TEN)
    assert (summary.mean_error, summary.relative_rmse) == (1.0, math.inf)
