"""What holds for every curve, not only for those that somebody measured."""

import math
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import LogCapModel, ThroughputCurve

CAPS = st.floats(0.0, 20.0)


@st.composite
def curves(draw: st.DrawFn) -> ThroughputCurve:
    """Any valid curve, flat segments included."""
    caps = sorted(draw(st.sets(st.floats(1e-4, 16.0), min_size=2, max_size=12)))
    rates = sorted(draw(st.lists(st.floats(0.0, 1e7), min_size=len(caps), max_size=len(caps))))
    return ThroughputCurve((*zip(caps, rates, strict=True), (17.0, 2e7)))


@st.composite
def rising_curves(draw: st.DrawFn) -> ThroughputCurve:
    """Curves whose every segment rises by enough for its inverse to be well conditioned."""
    steps = draw(
        st.lists(st.tuples(st.floats(0.01, 0.5), st.floats(100.0, 1e5)), min_size=2, max_size=12)
    )
    caps = accumulate(step for step, _ in steps)
    rates = accumulate(step for _, step in steps)
    return ThroughputCurve(tuple(zip(caps, rates, strict=True)))


@st.composite
def concave_curves(draw: st.DrawFn) -> ThroughputCurve:
    """Curves through the origin whose slopes never rise, down to flat."""
    widths = draw(st.lists(st.floats(0.01, 0.5), min_size=2, max_size=10))
    slopes = draw(st.lists(st.floats(0.0, 1e6), min_size=len(widths), max_size=len(widths)))
    slopes = [max(slopes) + 1.0, *sorted(slopes, reverse=True)[1:]]
    rates = accumulate(w * s for w, s in zip(widths, slopes, strict=True))
    return ThroughputCurve(tuple(zip(accumulate(widths), rates, strict=True)))


@st.composite
def log_models(draw: st.DrawFn) -> LogCapModel:
    """Eq. 1 with any parameters under which the cap threshold forwards at least 1 kp/s."""
    gain = draw(st.floats(1.0, 1e4))
    a = draw(st.floats(0.0, 0.99))
    mean_log_cap = draw(st.floats(-1.0, 3.0))
    threshold = draw(st.floats(0.01, 8.0))
    drop = gain * max(0.0, mean_log_cap - math.log10(threshold * 100))
    mean = drop + draw(st.floats(1.0, 1e4))
    return LogCapModel(a, gain * (1 - a), mean, mean_log_cap, threshold, draw(st.floats(1.0, 1e7)))


@given(curves(), CAPS, CAPS)
def test_more_cap_never_gives_less(curve: ThroughputCurve, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0.0 <= curve.throughput(low) <= curve.throughput(high) <= curve.top


@given(curves(), st.floats(0.0, 2e7), st.floats(0.0, 2e7))
def test_more_throughput_never_takes_less_cap(
    curve: ThroughputCurve, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert 0.0 <= curve.cap_for(low) <= curve.cap_for(high) <= curve.cap_threshold


@given(curves())
def test_every_point_is_met_exactly_and_inverts_to_the_least_cap(curve: ThroughputCurve) -> None:
    for cap, rate in curve.points:
        assert curve.throughput(cap) == rate
        least = min(c for c, r in ((0.0, 0.0), *curve.points) if r == rate)
        assert curve.cap_for(rate) == least


@given(rising_curves(), st.floats(0.0, 1.0))
def test_cap_for_undoes_throughput_where_the_curve_rises(
    curve: ThroughputCurve, share: float
) -> None:
    cap = share * curve.points[-1][0]
    assert curve.cap_for(curve.throughput(cap)) == pytest.approx(cap, rel=1e-7, abs=1e-7)


@given(curves(), st.floats(0.0, 2e7))
def test_throughput_undoes_cap_for_wherever_the_segment_is_not_a_cliff(
    curve: ThroughputCurve, rate: float
) -> None:
    cap = curve.cap_for(rate)
    pairs = pairwise(((0.0, 0.0), *curve.points))
    steepest = max((r1 - r0) / (c1 - c0) for (c0, r0), (c1, r1) in pairs)
    # A cap has 53 bits; on a segment this steep, its last one is worth this much throughput.
    assert curve.throughput(cap) == pytest.approx(rate, rel=1e-9, abs=8 * steepest * math.ulp(cap))


@given(concave_curves(), st.floats(1e-3, 10.0))
def test_a_concave_curve_has_a_log_slope_within_zero_and_one(
    curve: ThroughputCurve, cap: float
) -> None:
    assert 0.0 <= curve.slope_log(cap) <= 1.0 + 1e-9


@given(curves(), CAPS)
def test_the_slope_is_a_number_that_is_not_negative(curve: ThroughputCurve, cap: float) -> None:
    assert 0.0 <= curve.slope_log(cap) < math.inf


@given(log_models())
def test_a_sampled_curve_lies_near_its_model(model: LogCapModel) -> None:
    curve = model.sample_curve()
    leg = math.log(curve.points[-1][0] / curve.points[0][0]) / 63
    # The knee has a point of its own, so every chord is flat or a logarithm's; such a one strays by
    # an eighth of its leg's square, here with room to spare.
    stray = model.gain * 1e3 / math.log(10) * leg * leg / 6
    for low, high in pairwise(cap for cap, _ in curve.points):
        middle = (low + high) / 2
        exact = min(model.offered, model.steady_throughput(middle))
        assert curve.throughput(middle) == pytest.approx(exact, rel=1e-6, abs=stray + 1e-3)
    assert 0.0 < curve.top <= model.offered
