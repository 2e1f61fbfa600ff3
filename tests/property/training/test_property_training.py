"""What holds of fits and designs of every host: files survive, gains place their poles."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from concave_loop import Case, cases
from hypothesis import example, given
from hypothesis import strategies as st
from support.damage import damaged

from common.units import CapFraction, PacketsPerSecond, Seconds
from models import ThroughputCurve
from training.design.gains import gains_of, largest_gain, placed, poles_of
from training.errors import DesignError, RecordingError, UnfitError
from training.fit.dynamics import dynamics_of
from training.fit.eq1 import steady_line
from training.fit.fit import fit
from training.fit.means import means_of
from training.fit.points import curve_of, points_of
from training.fit.shape import compare
from training.recording.recording import (
    PHASES,
    Metadata,
    Phase,
    Recording,
    Sample,
    csv_head,
    csv_row,
    is_sized,
    parse_csv,
)
from xtc.simulation.plant import Plant, advanced, settled

SWEPT = (0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
RATES = st.floats(0.0, 1e9)
SAMPLES = st.builds(
    Sample,
    at=st.floats(0.0, 1e6),
    cap=st.none() | st.floats(1e-6, 1024.0),
    throughput_pps=RATES,
    offered_pps=st.none() | RATES,
    used=st.none() | st.floats(0.0, 1024.0),
    binding=st.none() | st.booleans(),
    phase=st.sampled_from(PHASES),
    visit=st.integers(0, 10_000),
    packet_bytes=st.none() | st.integers(14, 65_549),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
METADATA = st.builds(
    Metadata,
    host=TEXTS.filter(bool),
    cpu=TEXTS,
    period_s=st.floats(1e-3, 3600.0),
    offered_pps=st.none() | st.floats(1.0, 1e9),
    packet_bytes=st.none() | st.integers(14, 65_549),
)


RECORDINGS = st.builds(
    lambda metadata, samples: Recording(
        metadata, tuple(sorted(samples, key=lambda sample: sample.at))
    ),
    METADATA,
    st.lists(SAMPLES, max_size=10),
)


def written(recording: Recording) -> str:
    sized = is_sized(recording)
    rows = (csv_row(sample, sized=sized) for sample in recording.samples)
    return csv_head(recording.metadata, sized=sized) + "".join(rows)


@given(RECORDINGS)
def test_every_recording_reads_back_as_written(recording: Recording) -> None:
    assert parse_csv(written(recording), "a.csv") == recording


@given(damaged(RECORDINGS.map(written)))
def test_whatever_a_file_holds_it_is_read_or_refused(text: str) -> None:
    try:
        found = parse_csv(text, "a.csv")
    except RecordingError:
        return
    assert parse_csv(written(found), "a.csv") == found


@given(METADATA, st.lists(SAMPLES, max_size=40))
def test_whatever_was_recorded_it_is_fitted_or_refused_with_what_to_measure(
    metadata: Metadata, samples: list[Sample]
) -> None:
    ordered = tuple(sorted(samples, key=lambda sample: sample.at))
    with suppress(UnfitError):
        fit(Recording(metadata, ordered))


def swept(
    case: Case, lag: float, caps: Sequence[float], dwell: int, phase: Phase = "step"
) -> list[Sample]:
    router = Plant(case.curve, PacketsPerSecond(5 * case.curve.top), lag)
    state, samples = settled(router, CapFraction(caps[0])), list[Sample]()
    for visit, cap in enumerate(caps):
        for _ in range(dwell):
            state = advanced(router, state, [CapFraction(cap)], Seconds(1.0))
            samples.append(
                Sample(
                    at=float(len(samples)),
                    cap=cap,
                    throughput_pps=state.throughput,
                    phase=phase,
                    visit=visit,
                )
            )
    return samples


def later(samples: list[Sample], than: Sample) -> list[Sample]:
    return [
        replace(sample, at=than.at + 1 + sample.at, visit=than.visit + 1 + sample.visit)
        for sample in samples
    ]


UNCAPPED = Sample(at=0.0, cap=None, throughput_pps=5e7, phase="steady", visit=0)


@given(cases(), st.floats(0.0, 0.5), st.lists(SAMPLES, max_size=2))
@example(
    Case(ThroughputCurve(((1 / 3, 5000.0), (1.0, 5000.0)), None), PacketsPerSecond(15)),
    0.0,
    [UNCAPPED],
)
def test_a_sweep_with_unrelated_samples_in_it_is_fitted_or_refused(
    case: Case, lag: float, unrelated: list[Sample]
) -> None:
    steady = swept(case, lag, SWEPT, 6, "steady")
    steps = later(swept(case, lag, [0.1, 0.25] * 4, 5), steady[-1])
    ordered = sorted([*steady, *steps, *unrelated], key=lambda sample: sample.at)
    try:
        found = fit(Recording(Metadata(host="a"), tuple(ordered)))
    except UnfitError:
        return
    assert found.eq1.line.gain.value > 0
    assert found.cap_threshold in {sample.cap for sample in ordered}


@given(cases(), st.floats(0.0, 0.9), st.tuples(st.floats(0.02, 0.1), st.floats(0.15, 0.5)))
def test_the_lag_is_exact_on_every_concave_host(
    case: Case, lag: float, caps: tuple[float, float]
) -> None:
    samples = swept(case, lag, [*caps] * 3, 4)
    rise = case.curve.throughput(caps[1]) - case.curve.throughput(caps[0])
    if rise > 1e-6 * case.curve.top:
        found = dynamics_of(samples, 1.0)
        assert found is not None
        assert found.lag.value == pytest.approx(lag, abs=1e-5)


@given(st.lists(st.tuples(st.floats(0.01, 2.0), st.floats(1.0, 1e6)), min_size=3, max_size=40))
def test_the_curve_is_monotone_and_the_threshold_is_one_of_its_caps(
    seen: list[tuple[float, float]],
) -> None:
    samples = [
        Sample(at=float(n), cap=cap, throughput_pps=rate, visit=n)
        for n, (cap, rate) in enumerate(seen)
    ]
    points = points_of(samples)
    assert all(low.smoothed_pps <= high.smoothed_pps * (1 + 1e-9) for low, high in pairwise(points))
    assert curve_of(means_of(samples, 1.0, None)).threshold in {point.cap for point in points}
    for point in points:
        found = point.throughput_pps
        assert found.low <= found.value <= found.high


@given(cases(), st.floats(1e-3, 1e3))
def test_the_better_shape_does_not_depend_on_the_unit(case: Case, scale: float) -> None:
    caps = [0.02 * 1.5**k for k in range(10)]
    rates = [case.curve.throughput(cap) for cap in caps]
    here, there = compare(caps, rates), compare(caps, [rate * scale for rate in rates])
    assert here.hinge.cv_error == pytest.approx(there.hinge.cv_error, rel=1e-6, abs=1e-9)
    assert here.logarithm.cv_error == pytest.approx(there.logarithm.cv_error, rel=1e-6, abs=1e-9)


@given(st.floats(0.1, 500.0), st.floats(0.0, 1e3), st.floats(-1.5, 0.0))
def test_a_host_that_follows_eq1_gives_its_gain_back(
    gain: float, mean: float, middle: float
) -> None:
    points = [(10 ** (middle + k / 10), (1e3 + mean + gain * k / 10) * 1e3) for k in range(-5, 6)]
    assert steady_line(points).gain.value == pytest.approx(gain, rel=1e-6)


@given(
    st.floats(0.0, 0.99),
    st.floats(0.1, 1e4),
    st.floats(1.0, 200.0),
    st.floats(0.0, 0.9),
)
def test_gains_put_the_poles_of_eq3_where_they_were_wanted(
    a: float, b: float, settling: float, overshoot: float
) -> None:
    try:
        poles = poles_of(settling, overshoot)
    except DesignError:
        return
    kp, ki = gains_of(a, b, poles)
    denominator = [1, (kp + ki) * b - (a + 1), a - kp * b]
    for pole in poles:
        assert abs(np.polyval(denominator, pole)) < 1e-9
    assert placed(a, b, poles) == pytest.approx((kp, ki), rel=1e-4, abs=1e-9 / b)
    limit = largest_gain(a, b, kp, ki)
    assert limit > 1
    for factor in (0.99 * limit, 1.01 * limit):
        if math.isfinite(factor):
            at = [1, (kp + ki) * b * factor - (a + 1), a - kp * b * factor]
            assert (np.abs(np.roots(at)).max() < 1 + 1e-9) == (factor < limit)
