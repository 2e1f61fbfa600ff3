"""Step responses as measured lie about the line of the lag and delay that hosts really have."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.fit.fit import Fit, fit
from training.fit.interval import Interval
from training.recording.recording import Metadata, Phase, Recording, Sample
from training.report.responses import LEAST_CHANGE, WAY, Responses, responses_of

CAPS = (0.05, 0.6, 0.1, 0.45, 0.2, 0.9, 0.3, 0.15)
TOP = 60e3


def rate(cap: float) -> float:
    """Return what a hinge forwards at a cap, in packets/s."""
    return min(1e5 * cap, TOP)


def plan(steps: int) -> Iterator[tuple[float, Phase]]:
    """Yield cap and phase of each visit in turn."""
    for cap in CAPS * 2:
        yield cap, "steady"
    for number in range(steps):
        yield (0.15, 0.5)[number % 2], "step"
    for number in range(4):
        yield (0.5, 0.5001)[number % 2], "step"


def swept(
    lag: float, delay: int, *, noise: float = 0.0, seed: int = 0, dwell: int = 10
) -> Recording:
    """Return a sweep of a simulated host; the first samples of a steady visit are settling."""
    chance, samples = random.Random(seed), list[Sample]()
    ordered, state = [rate(CAPS[0])] * (delay + 1), rate(CAPS[0])
    for visit, (cap, phase) in enumerate(plan(8)):
        for number in range(dwell):
            ordered.append(rate(cap))
            state = lag * state + (1 - lag) * ordered[-1 - delay]
            seen = state * (1 + noise * chance.gauss(0, 1))
            now: Phase = "settling" if phase == "steady" and number < dwell - 3 else phase
            at, binding = float(len(ordered)), rate(cap) < TOP
            samples.append(
                Sample(at=at, cap=cap, throughput_pps=seen, phase=now, visit=visit, binding=binding)
            )
    return Recording(Metadata(host="simulated", offered_pps=TOP), tuple(samples))


@cache
def followed(
    lag: float, delay: int, noise: float = 0.0, seed: int = 0
) -> tuple[Recording, Fit, Responses]:
    recording = swept(lag, delay, noise=noise, seed=seed)
    found = fit(recording)
    return recording, found, responses_of(recording, found)


def truth(lag: float, delay: int, samples: int) -> float:
    return 0.0 if samples <= delay else 1 - lag ** (samples - delay)


@settings(max_examples=12, deadline=None)
@given(lag=st.sampled_from([0.0, 0.3, 0.6]), delay=st.integers(0, 2))
def test_without_noise_each_response_is_that_of_the_host(lag: float, delay: int) -> None:
    _, _, found = followed(lag, delay)
    assert len(found.steps) >= 12
    for step in found.steps:
        for point in step.points:
            assert point.share == pytest.approx(truth(lag, delay, point.samples), abs=2e-3)
            assert found.way(point.samples).value == pytest.approx(point.share, abs=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_fitted_line_goes_through_the_data_within_the_noise(seed: int) -> None:
    """A lag of 0.6 and a delay of 2: the mean over all changes has a known standard error."""
    noise = 0.02
    _, _, found = followed(0.6, 2, noise, seed)
    assert found.delay == 2
    for samples in range(1, 11):
        at = [
            (point.share, noise * max(step.before_pps, step.after_pps))
            for step in found.steps
            for point in step.points
            if point.samples == samples
        ]
        assert len(at) >= 7
        sizes = [abs(step.after_pps - step.before_pps) for step in found.steps]
        error = max(one for _, one in at) / min(sizes) / math.sqrt(len(at))
        mean = float(np.mean([share for share, _ in at]))
        assert mean == pytest.approx(found.way(samples).value, abs=3 * error)
        assert mean == pytest.approx(truth(0.6, 2, samples), abs=3 * error)


def test_the_band_holds_the_truth_and_is_in_order() -> None:
    _, _, found = followed(0.6, 2, 0.02)
    assert found.way(0) == found.way(2) == Interval(0.0, 0.0, 0.0)
    for samples in range(3, 12):
        way = found.way(samples)
        assert way.low < way.value < way.high
        assert way.low - 0.02 <= truth(0.6, 2, samples) <= way.high + 0.02
    until = found.until()
    assert until.low < until.value < until.high
    assert until.value == pytest.approx(2 - 1 / math.log(0.6), abs=0.3)
    assert found.way(until.value).value == pytest.approx(WAY)


def test_tiny_changes_are_left_out() -> None:
    recording, _, found = followed(0.6, 2, 0.02)
    tiny = {sample.visit for sample in recording.samples if sample.cap == 0.5001}
    assert len(tiny) == 2
    assert tiny & {step.visit for step in found.steps} == set()
    assert found.left_out >= 2
    for step in found.steps:
        change = abs(step.after_pps - step.before_pps)
        assert change > LEAST_CHANGE * max(step.before_pps, step.after_pps)


def test_noise_hides_more_changes_than_silence() -> None:
    quiet, noisy = followed(0.3, 0)[2], followed(0.3, 0, 0.1)[2]
    assert len(noisy.steps) < len(quiet.steps)
    assert len(noisy.steps) + noisy.left_out == len(quiet.steps) + quiet.left_out


def test_only_samples_that_follow_a_change_are_shown() -> None:
    recording, _, found = followed(0.3, 1)
    phases = {sample.at: sample.phase for sample in recording.samples}
    steady = [step for step in found.steps if phases[step.at] == "settling"]
    assert all(len(step.points) == 7 for step in steady)
    assert all(step.points[0].samples == 1 for step in found.steps)
    assert all(step.cap_before != step.cap_after for step in found.steps)
    assert found.longest == 10


def test_an_outlier_is_no_part_of_a_response() -> None:
    recording = swept(0.3, 0, noise=0.01)
    stray = next(s for s in reversed(recording.samples) if s.phase == "step" and s.cap == 0.15)
    samples = tuple(
        replace(s, throughput_pps=3 * s.throughput_pps) if s is stray else s
        for s in recording.samples
    )
    spoilt = Recording(recording.metadata, samples)
    refitted = fit(spoilt)
    assert stray.at in {one.at for one in refitted.outliers}
    shown = responses_of(spoilt, refitted)
    ends = [point for step in shown.steps for point in step.points if point.samples > 6]
    assert all(abs(point.share - 1) < 0.1 for point in ends)


def of(lag: tuple[float, float, float], delay: int) -> str:
    return Responses(Interval(*lag), delay, 0.5, (), 0).words


def test_the_sentence_reads_the_figure() -> None:
    assert of((0.6, 0.5, 0.7), 2) == (
        "The host is 63% of the way 4.0 samples after a change of cap (95 %: 3.4 to 4.8; a sample "
        "is 0.5 s); for 2 samples nothing changes."
    )
    assert of((0.1, 0.0, 0.2), 0) == (
        "The host is 90% of the way 1 sample after a change of cap (95 %: 80% to 100%; a sample "
        "is 0.5 s)."
    )
    assert of((-0.1, -0.2, 0.1), 1) == (
        "The host is 100% of the way 2 samples after a change of cap (95 %: 90% to 100%; a sample "
        "is 0.5 s); for 1 sample nothing changes."
    )


def test_where_nothing_was_followed_there_is_nothing_to_draw() -> None:
    recording, found, _ = followed(0.0, 0)
    steady = tuple(s for s in recording.samples if s.phase == "steady")
    empty = responses_of(Recording(recording.metadata, steady), found)
    assert (empty.steps, empty.left_out, empty.longest) == ((), 0, 0)
    assert msgspec.to_builtins(empty)["steps"] == ()
