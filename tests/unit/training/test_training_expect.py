"""What to expect is a range: several runs, each on a host of another speed and with other noise."""

import statistics

import pytest

from models import bundled_host
from training.design.expect import RUNS, Outlook, Spread, _spread, expected, outlooks, speeds
from xtc.control.laws import law_named

SETPOINTS = [20e3, 60e3]


def looked(*, noise: float = 0.02, speed: float = 0.05, law: str = "default") -> list[Outlook]:
    return outlooks(bundled_host("paper"), law, SETPOINTS, noise=noise, speed=speed, runs=5)


def width(spread: Spread) -> float:
    assert spread.low is not None
    assert spread.high is not None
    return spread.high - spread.low


def test_the_same_figures_come_again() -> None:
    assert looked() == looked()


def test_each_range_holds_its_median() -> None:
    for one in looked(law="pi"):
        for spread in (one.mean_error, one.relative_rmse):
            assert spread.low is not None
            assert spread.median is not None
            assert spread.high is not None
            assert spread.low <= spread.median <= spread.high
        assert (one.runs, one.law) == (5, "pi")
        assert one.cap == bundled_host("paper").curve.cap_for(one.setpoint_pps)


def test_a_host_without_noise_and_of_one_speed_has_no_range() -> None:
    for one in looked(noise=0.0, speed=0.0):
        assert width(one.mean_error) == width(one.relative_rmse) == 0.0
        assert one.settling_samples.low == one.settling_samples.high
    once = expected(bundled_host("paper"), law_named("default", bundled_host("paper")), SETPOINTS)
    assert [one.mean_error.median for one in looked(noise=0.0, speed=0.0)] == [
        one.mean_error for one in once
    ]


def test_more_noise_makes_wider_ranges() -> None:
    quiet, loud = (looked(noise=noise, speed=0.0) for noise in (0.01, 0.08))
    for calm, noisy in zip(quiet, loud, strict=True):
        assert width(noisy.mean_error) > width(calm.mean_error) > 0


def test_a_host_of_another_speed_shows() -> None:
    """PI settles later on a host that is slower or faster than the one it was designed for."""
    same, other = looked(noise=0.0, speed=0.0, law="pi"), looked(noise=0.0, speed=0.2, law="pi")
    assert any(
        width(apart.relative_rmse) > width(alike.relative_rmse)
        for alike, apart in zip(same, other, strict=True)
    )


def test_a_slow_host_never_reaches_a_setpoint_at_its_top() -> None:
    host = bundled_host("paper")
    top = host.curve.top
    (slow,) = expected(host, law_named("default", host), [0.95 * top], gain=0.7)
    assert slow.settling_samples is None
    assert slow.mean_error == pytest.approx(0.7 / 0.95 - 1, abs=0.03)
    (found,) = outlooks(host, "default", [0.95 * top], noise=0.0, speed=0.3, runs=5)
    assert (found.settling_samples.high, found.settling_samples.median is None) == (None, False)


def test_speeds_are_spread_over_their_distribution() -> None:
    found = speeds(0.05, RUNS)
    assert len(found) == RUNS
    assert found == sorted(found)
    assert found[RUNS // 2] == pytest.approx(1.0)
    assert found[0] * found[-1] == pytest.approx(1.0)
    assert statistics.stdev(speeds(0.05, 1001)) == pytest.approx(0.05, rel=0.03)
    assert speeds(0.0, 3) == [1.0, 1.0, 1.0]


def test_a_range_is_from_5_to_95_percent_of_the_runs() -> None:
    assert _spread([float(n) for n in range(RUNS)]) == Spread(5.0, 0.0, 10.0)
    assert _spread([float(n) for n in range(101)]) == Spread(50.0, 5.0, 95.0)
    assert _spread([3.0]) == Spread(3.0, 3.0, 3.0)
    assert _spread([1.0, 2.0, float("inf")]) == Spread(2.0, 1.0, None)
