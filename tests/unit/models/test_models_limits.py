"""Both sides of every bound of curves, hosts and Eq. 1, and the defaults, in literal numbers."""

import math
import random

import pytest

from models import (
    ControlGains,
    HostModel,
    InvalidModelError,
    LogCapModel,
    OutOfRange,
    ThroughputCurve,
)

CURVE = ThroughputCurve(((0.1, 10e3), (0.2, 20e3)))
EQ1 = {
    "a": 0.25,
    "b": 60.0,
    "mean_throughput": 80.0,
    "mean_log_cap": 1.0,
    "cap_threshold": 0.5,
    "offered": 100e3,
}
WIDE = {**EQ1, "mean_throughput": 1e6}
"""The cap threshold forwards something wherever the operating point is."""


def host(**changed: object) -> HostModel:
    return HostModel(**{"name": "n", "measured_curve": CURVE, **changed})  # type: ignore[arg-type]


def gains(period: float) -> ControlGains:
    return ControlGains(kp=1e-3, ki=1e-2, period=period)


def test_the_loop_of_gains_runs_every_second_unless_told_otherwise() -> None:
    assert ControlGains(1e-3, 1e-2) == ControlGains(1e-3, 1e-2, 1.0, 0.10, 0.01)


def test_a_host_of_which_only_a_curve_is_known_has_these_dynamics() -> None:
    bare = host()
    assert (bare.lag, bare.delay_samples, bare.period) == (0.0, 0, 1.0)
    assert (bare.cap_floor, bare.cap_ceiling, bare.cap_step) == (0.01, 1.0, 0.0)
    assert (bare.description, bare.hypervisor, bare.cpu, bare.kernel) == ("", "", "", "")


@pytest.mark.parametrize(
    ("pi", "dead_beat", "period"),
    [(None, 0.5, 0.5), (0.2, None, 0.2), (0.2, 0.5, 0.2), (None, None, 1.0)],
)
def test_the_period_is_that_of_the_gains(
    pi: float | None, dead_beat: float | None, period: float
) -> None:
    known = host(
        pi=None if pi is None else gains(pi),
        dead_beat=None if dead_beat is None else gains(dead_beat),
        lag=0.25,
        delay_samples=2,
    )
    assert known.period == period
    assert known.lag_at(2 * period) == pytest.approx(0.0625)
    assert known.delay_at(period) == 2
    assert known.delay_at(2 * period) == 1


def test_a_shorter_period_leaves_more_of_a_step_and_delays_it_by_more_samples() -> None:
    fast = host(lag=0.25, delay_samples=2)
    assert fast.lag_at(0.5) == pytest.approx(0.5)
    assert fast.delay_at(0.5) == 4


def test_a_delay_is_rounded_and_bounded_by_five_samples() -> None:
    slow = host(delay_samples=3)
    assert [slow.delay_at(period) for period in (10.0, 2.0, 1.25, 0.6, 0.5, 1e-3)] == [
        0,
        2,
        2,
        5,
        5,
        5,
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"lag": 0.0},
        {"lag": 0.999},
        {"delay_samples": 0},
        {"delay_samples": 5},
        {"cap_floor": 1.0},
        {"cap_floor": 1e-9},
        {"cap_ceiling": 1024.0},
        {"cap_step": 0.0},
        {"cap_step": 1.0},
    ],
)
def test_a_number_on_its_bound_is_a_host(changed: dict[str, float]) -> None:
    assert all(getattr(host(**changed), key) == value for key, value in changed.items())


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("lag", {"lag": 1.0}),
        ("lag", {"lag": -1e-9}),
        ("lag", {"lag": math.nan}),
        ("delay_samples", {"delay_samples": -1}),
        ("delay_samples", {"delay_samples": 6}),
        ("cap_floor", {"cap_floor": 0.0}),
        ("cap_floor", {"cap_floor": 1.001}),
        ("cap_floor", {"cap_ceiling": 1024.5}),
        ("cap_floor", {"cap_ceiling": 0.009}),
        ("cap_step", {"cap_step": 1.001}),
        ("cap_step", {"cap_step": -1e-9}),
        ("curve", {"measured_curve": None}),
    ],
)
def test_a_number_beyond_its_bound_is_none(field: str, changed: dict[str, object]) -> None:
    with pytest.raises(InvalidModelError) as caught:
        host(**changed)
    assert caught.value.field == field


def test_the_measured_curve_goes_before_eq_1() -> None:
    both = host(log_model=LogCapModel(**EQ1))
    assert both.curve is CURVE
    fitted = host(measured_curve=None, log_model=LogCapModel(**EQ1))
    assert fitted.curve == LogCapModel(**EQ1).sample_curve()


@pytest.mark.parametrize(
    "points",
    [
        ((1e-9, 1.0), (1024.0, 1e9)),
        ((0.1, 0.0), (0.2, 1.0)),
        ((0.1, 5.0), (0.2, 5.0)),
    ],
)
def test_points_on_their_bounds_are_a_curve(points: tuple[tuple[float, float], ...]) -> None:
    assert ThroughputCurve(points).points == points


@pytest.mark.parametrize(
    ("field", "points"),
    [
        ("points[1]", ((0.1, 10.0), (1024.5, 20.0))),
        ("points[1]", ((0.1, 10.0), (0.2, 1.001e9))),
        ("points[0]", ((0.1, -1e-9), (0.2, 20.0))),
        ("points[2]", ((0.1, 10.0), (0.3, 20.0), (0.2, 30.0))),
        ("points[2]", ((0.1, 10.0), (0.2, 20.0), (0.3, 19.999))),
    ],
)
def test_points_beyond_their_bounds_are_none(
    field: str, points: tuple[tuple[float, float], ...]
) -> None:
    with pytest.raises(InvalidModelError) as caught:
        ThroughputCurve(points)
    assert caught.value.field == field


def test_a_meter_may_exceed_the_offered_load_by_a_tenth_and_no_more() -> None:
    points = ((0.1, 10e3), (0.2, 20e3), (0.4, 33e3))
    assert ThroughputCurve(points, 30.1e3).offered == 30.1e3
    assert ThroughputCurve(points, 1e9).offered == 1e9
    for offered in (29.9e3, 20e3, 1.001e9):
        with pytest.raises(InvalidModelError) as caught:
            ThroughputCurve(points, offered)
        assert caught.value.field == "offered"


def test_an_error_names_the_bounds_of_what_can_be_answered() -> None:
    with pytest.raises(OutOfRange) as below:
        CURVE.cap_for(-1e-9)
    assert (below.value.minimum, below.value.maximum) == (0.0, 20e3)
    with pytest.raises(OutOfRange) as negative:
        CURVE.throughput(-1e-9)
    assert (negative.value.minimum, negative.value.maximum) == (0.0, math.inf)


def test_the_first_leg_is_proportional_without_a_rounding_error() -> None:
    curve = ThroughputCurve(((0.3, 1e5 / 3), (0.9, 7e4)))
    rng = random.Random(1)
    assert {curve.slope_log(rng.uniform(1e-6, 0.3)) for _ in range(2000)} == {1.0}


def test_rounding_lifts_nothing_above_the_end_of_a_segment() -> None:
    rng = random.Random(2)
    for _ in range(2000):
        low, high = sorted(rng.uniform(0.01, 1.0) for _ in range(2))
        rate, top = sorted(rng.uniform(1.0, 1e6) for _ in range(2))
        curve = ThroughputCurve(((low, rate), (high, top)))
        assert curve.throughput(math.nextafter(high, 0.0)) <= top
        assert curve.cap_for(math.nextafter(top, 0.0)) <= high


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("a", 0.0),
        ("a", 0.999),
        ("b", 1e-6),
        ("b", 1e9),
        ("mean_throughput", 1e9),
        ("mean_log_cap", -5.0),
        ("mean_log_cap", 6.0),
        ("cap_threshold", 1024.0),
        ("cap_threshold", 1e-6),
        ("offered", 1e9),
        ("offered", 1e-3),
        ("r_squared", 0.0),
        ("r_squared", 1.0),
    ],
)
def test_a_parameter_on_its_bound_is_accepted(field: str, value: float) -> None:
    assert getattr(LogCapModel(**{**WIDE, field: value}), field) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("a", -1e-9),
        ("a", 1.0),
        ("b", 0.0),
        ("b", 1.001e9),
        ("mean_throughput", -1e-9),
        ("mean_throughput", 1.001e9),
        ("mean_log_cap", -5.001),
        ("mean_log_cap", 6.001),
        ("cap_threshold", 0.0),
        ("cap_threshold", 1024.5),
        ("offered", 0.0),
        ("offered", 1.001e9),
        ("r_squared", -1e-9),
        ("r_squared", 1.001),
    ],
)
def test_a_parameter_beyond_its_bound_is_named(field: str, value: float) -> None:
    with pytest.raises(InvalidModelError) as caught:
        LogCapModel(**{**WIDE, field: value})
    assert caught.value.field == field


def test_a_mean_of_nothing_forwards_above_the_operating_point_only() -> None:
    model = LogCapModel(**{**EQ1, "mean_throughput": 0.0})
    assert model.steady_throughput(0.5) == pytest.approx(80e3 * math.log10(5))
    with pytest.raises(InvalidModelError, match="no cap up to the cap threshold"):
        LogCapModel(**{**EQ1, "mean_throughput": 0.0, "cap_threshold": 0.1})


def test_eq_1_by_hand() -> None:
    model = LogCapModel(**EQ1)
    assert model.gain == pytest.approx(80.0)
    # Offset 10 kp/s, of which a quarter is left; cap 20 % is log10(2) above the operating point.
    after = 80.0 + 0.25 * 10.0 + 60.0 * math.log10(2)
    assert model.next_throughput(90e3, 0.2) == pytest.approx(after * 1e3)
    assert model.steady_throughput(0.2) == pytest.approx((80.0 + 80.0 * math.log10(2)) * 1e3)
    assert model.cap_for(80e3 + 80e3 * math.log10(2)) == pytest.approx(0.2)


def test_the_cap_of_the_most_is_the_threshold_to_the_last_digit() -> None:
    rng = random.Random(3)
    for _ in range(500):
        model = LogCapModel(**{**EQ1, "cap_threshold": rng.uniform(0.2, 2.0)})
        assert model.cap_for(model.steady_throughput(model.cap_threshold)) <= model.cap_threshold


def test_a_sampled_curve_has_64_points_and_one_for_the_knee() -> None:
    far = LogCapModel(**{**EQ1, "offered": 1e9}).sample_curve()
    assert len(far.points) == 64
    assert far.points[0][0] == pytest.approx(0.01)  # 80 kp/s a decade: zero is a decade below
    assert far.points[0][1] == pytest.approx(0.0, abs=1e-6)
    assert far.points[-1][0] == pytest.approx(0.5)
    assert far.points[-1][1] == pytest.approx(80e3 + 80e3 * math.log10(5))
    ratios = [b[0] / a[0] for a, b in zip(far.points, far.points[1:], strict=False)]
    assert ratios == pytest.approx([50 ** (1 / 63)] * 63)
    near = LogCapModel(**EQ1).sample_curve()
    assert len(near.points) == 65
    knee = 0.1 * 10**0.25
    assert near.cap_threshold == pytest.approx(knee)
    assert all(rate == 100e3 for cap, rate in near.points if cap > knee * 1.001)
    assert near.offered == 100e3


def test_a_line_that_is_nearly_flat_is_sampled_over_four_decades() -> None:
    curve = LogCapModel(**{**EQ1, "a": 0.0, "b": 1.0, "mean_throughput": 50.0}).sample_curve()
    assert curve.points[0][0] == pytest.approx(0.5e-4)
    assert curve.points[0][1] == pytest.approx((50.0 + math.log10(0.5e-4 * 100) - 1.0) * 1e3)
