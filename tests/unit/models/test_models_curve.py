"""The curve against Table 1, on its edges, and its refusals."""

import math

import numpy as np
import pytest

from models import InvalidModelError, OutOfRange, ThroughputCurve, bundled_host, paper_host

# Table 1 of the paper: cap in percent, throughput in kp/s.
TABLE_1 = (
    (5, 16),
    (10, 32),
    (15, 50),
    (20, 65),
    (25, 77),
    (30, 85),
    (35, 91),
    (40, 94),
    (45, 96),
    (50, 98),
)
HINGE = ThroughputCurve(((0.1, 30e3), (0.5, 150e3), (0.8, 150e3), (1.0, 150e3)))


@pytest.mark.parametrize(("percent", "kilo"), TABLE_1)
def test_table_1_is_exact_both_ways(percent: int, kilo: int) -> None:
    curve = paper_host().curve
    assert curve.throughput(percent / 100) == kilo * 1000
    assert curve.cap_for(kilo * 1000) == percent / 100


def test_the_paper_curve_holds_table_1_and_no_more() -> None:
    expected = tuple((percent / 100, kilo * 1000.0) for percent, kilo in TABLE_1)
    assert paper_host().curve == ThroughputCurve(expected, 100e3)


def test_between_points_the_curve_is_straight() -> None:
    assert paper_host().curve.throughput(0.175) == pytest.approx(57_500)
    assert paper_host().curve.cap_for(57_500) == pytest.approx(0.175)


def test_below_the_first_point_the_line_goes_through_the_origin() -> None:
    curve = paper_host().curve
    assert curve.throughput(0.01) == pytest.approx(3_200)
    assert curve.cap_for(3_200) == pytest.approx(0.01)
    assert curve.throughput(0.0) == 0.0
    assert curve.cap_for(0.0) == 0.0


def test_above_the_last_point_the_curve_is_flat() -> None:
    assert paper_host().curve.throughput(0.51) == 98_000
    assert paper_host().curve.throughput(math.inf) == 98_000


def test_a_flat_segment_inverts_to_its_left_end() -> None:
    assert HINGE.cap_for(150e3) == 0.5
    assert HINGE.cap_threshold == 0.5
    steps = ThroughputCurve(((0.1, 10e3), (0.2, 10e3), (0.3, 40e3)))
    assert steps.cap_for(10e3) == 0.1


def test_a_throughput_above_the_top_is_refused_with_the_maximum() -> None:
    with pytest.raises(OutOfRange) as caught:
        paper_host().curve.cap_for(98_001)
    assert caught.value.maximum == 98_000
    assert caught.value.value == 98_001


def test_clamping_gives_the_cap_threshold_instead() -> None:
    assert HINGE.cap_for_clamped(1e9) == 0.5
    assert HINGE.cap_for_clamped(30e3) == 0.1


@pytest.mark.parametrize("throughput", [-1.0, math.nan])
def test_what_is_no_throughput_is_refused(throughput: float) -> None:
    for ask in (HINGE.cap_for, HINGE.cap_for_clamped):
        with pytest.raises(OutOfRange):
            ask(throughput)


@pytest.mark.parametrize("cap", [-0.1, math.nan])
def test_what_is_no_cap_is_refused(cap: float) -> None:
    for ask in (HINGE.throughput, HINGE.slope_log):
        with pytest.raises(OutOfRange):
            ask(cap)


@pytest.mark.parametrize(
    ("cap", "slope"),
    [
        (0.05, 1.0),  # first leg: proportional
        (0.3, 1.0),  # still the same line
        (0.5, 1.0),  # the knee belongs to the leg on its left
        (0.6, 0.0),  # flat
        (2.0, 0.0),  # beyond the last point
    ],
)
def test_the_hinge_has_slope_one_then_none(cap: float, slope: float) -> None:
    assert HINGE.slope_log(cap) == pytest.approx(slope)


def test_the_slope_is_that_of_the_logarithms() -> None:
    curve, step = paper_host().curve, 1e-6
    for cap in (0.07, 0.12, 0.22, 0.33, 0.48):
        rise = math.log(curve.throughput(cap * (1 + step)) / curve.throughput(cap))
        assert curve.slope_log(cap) == pytest.approx(rise / math.log1p(step), rel=1e-4)


def test_where_nothing_is_forwarded_there_is_no_slope() -> None:
    curve = ThroughputCurve(((0.02, 0.0), (0.1, 10e3)))
    assert curve.slope_log(0.01) == 0.0
    assert curve.slope_log(0.02) == 0.0
    assert curve.cap_for(1.0) > 0.02


def test_the_measured_hinge_is_the_published_row() -> None:
    curve = bundled_host("hinge").curve
    caps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    rates = [3300.0, 6800.0, 15600.0, 34800.0, 66000.0, 126000.0, 182000.0, 200000.0, 200000.0]
    assert [curve.throughput(cap) for cap in caps] == rates
    assert (curve.top, curve.cap_threshold, curve.offered) == (200e3, 0.8, 200e3)


def test_numbers_of_numpy_become_plain_floats() -> None:
    curve = ThroughputCurve(tuple(zip(np.array([0.1, 0.2]), np.array([1e3, 2e3]), strict=True)))
    assert type(curve.throughput(0.2)) is float
    assert type(curve.points[0][0]) is float


@pytest.mark.parametrize(
    ("field", "points"),
    [
        ("points", ()),
        ("points", ((0.1, 10.0),)),
        ("points", ((0.1, 0.0), (0.2, 0.0))),
        ("points[0]", ((0.0, 10.0), (0.2, 20.0))),
        ("points[0]", ((-0.1, 10.0), (0.2, 20.0))),
        ("points[1]", ((0.2, 10.0), (0.1, 20.0))),
        ("points[1]", ((0.1, 10.0), (0.1, 20.0))),
        ("points[2]", ((0.1, 10.0), (0.2, 20.0), (0.3, 19.0))),
        ("points[1]", ((0.1, 10.0), (math.nan, 20.0))),
        ("points[1]", ((0.1, 10.0), (math.inf, 20.0))),
        ("points[1]", ((0.1, 10.0), (0.2, math.nan))),
        ("points[1]", ((0.1, 10.0), (0.2, math.inf))),
        ("points[0]", ((0.1, -1.0), (0.2, 20.0))),
        ("points[1]", ((0.1, 10.0), (2000.0, 20.0))),
        ("points[1]", ((0.1, 10.0), (0.2, 1e10))),
    ],
)
def test_points_of_no_host_are_refused(field: str, points: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(InvalidModelError) as caught:
        ThroughputCurve(points)
    assert caught.value.field == field


@pytest.mark.parametrize("offered", [0.0, -1.0, math.nan, math.inf, 100.0])
def test_an_offered_load_that_contradicts_the_points_is_refused(offered: float) -> None:
    with pytest.raises(InvalidModelError) as caught:
        ThroughputCurve(((0.1, 10e3), (0.2, 20e3)), offered)
    assert caught.value.field == "offered"
