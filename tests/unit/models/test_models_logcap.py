"""Eq. 1 against the paper's own figures."""

import math

import pytest

from models import InvalidModelError, LogCapModel, OutOfRange, bundled_host, paper_host

PAPER = {
    "a": 0.0915,
    "b": 63.0051,
    "mean_throughput": 78.14,
    "mean_log_cap": 1.39,
    "cap_threshold": 0.60,
    "offered": 100e3,
    "r_squared": 0.9899,
}
MODEL = LogCapModel(**PAPER)
OPERATING_CAP = 10**1.39 / 100


def test_the_paper_file_holds_the_published_parameters() -> None:
    assert paper_host().log_model == MODEL


def test_the_steady_gain_is_b_over_one_minus_a() -> None:
    assert MODEL.gain == pytest.approx(69.35, abs=0.005)


def test_the_operating_point_stays_where_it_is() -> None:
    assert MODEL.next_throughput(78_140, OPERATING_CAP) == pytest.approx(78_140)
    assert MODEL.steady_throughput(OPERATING_CAP) == pytest.approx(78_140)


def test_one_sample_moves_throughput_by_b_per_decade_of_cap() -> None:
    moved = MODEL.next_throughput(78_140, OPERATING_CAP * 10)
    assert moved - 78_140 == pytest.approx(63_005.1)


def test_one_sample_leaves_a_of_a_throughput_offset() -> None:
    assert MODEL.next_throughput(88_140, OPERATING_CAP) - 78_140 == pytest.approx(915.0)


def test_a_constant_cap_leads_to_the_steady_throughput() -> None:
    throughput = 0.0
    for _ in range(20):
        throughput = MODEL.next_throughput(throughput, 0.10)
    assert throughput == pytest.approx(MODEL.steady_throughput(0.10))
    assert throughput == pytest.approx(78_140 + 69_350.688 * (1 - 1.39), rel=1e-6)


def test_cap_for_undoes_steady_throughput() -> None:
    for cap in (0.02, 0.05, 0.2, 0.6):
        assert MODEL.cap_for(MODEL.steady_throughput(cap)) == pytest.approx(cap)


def test_cap_for_names_the_most_that_the_threshold_gives() -> None:
    with pytest.raises(OutOfRange) as caught:
        MODEL.cap_for(1e9)
    assert caught.value.maximum == pytest.approx(105_058.6, abs=0.1)


@pytest.mark.parametrize("throughput", [-1.0, math.nan])
def test_cap_for_refuses_what_is_no_throughput(throughput: float) -> None:
    with pytest.raises(OutOfRange):
        MODEL.cap_for(throughput)


@pytest.mark.parametrize("cap", [0.0, -0.1, math.nan, math.inf])
def test_a_cap_without_a_logarithm_is_refused(cap: float) -> None:
    with pytest.raises(OutOfRange):
        MODEL.steady_throughput(cap)


def test_the_sampled_curve_follows_the_steady_state() -> None:
    curve = MODEL.sample_curve()
    for percent in range(2, 51):
        steady = MODEL.steady_throughput(percent / 100)
        assert curve.throughput(percent / 100) == pytest.approx(steady, abs=20.0)


def test_the_sampled_curve_is_clipped_at_zero_and_at_the_offered_load() -> None:
    curve = MODEL.sample_curve()
    assert curve.throughput(0.018) == 0.0
    assert MODEL.steady_throughput(0.018) < 0.0
    assert curve.top == 100e3
    assert curve.cap_threshold == pytest.approx(0.507, abs=0.001)


def test_the_log_host_is_this_curve() -> None:
    host = bundled_host("log")
    assert host.measured_curve is None
    assert host.curve == MODEL.sample_curve()
    assert host.lag == 0.0915


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("a", 1.0),
        ("a", -0.1),
        ("a", math.nan),
        ("b", 0.0),
        ("b", -63.0),
        ("b", math.inf),
        ("mean_throughput", -1.0),
        ("mean_log_cap", math.nan),
        ("mean_log_cap", 5.0),  # so far right that no cap up to the threshold forwards anything
        ("cap_threshold", 0.0),
        ("offered", 0.0),
        ("r_squared", 1.1),
        ("r_squared", math.nan),
    ],
)
def test_a_parameter_out_of_bounds_is_named(field: str, value: float) -> None:
    with pytest.raises(InvalidModelError) as caught:
        LogCapModel(**{**PAPER, field: value})
    assert caught.value.field == field
