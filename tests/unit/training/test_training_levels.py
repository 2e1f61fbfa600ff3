"""Intervals of the mixed model hold the truth as often as they say, however the speed changes."""

import math
import random

import numpy as np
import pytest

from training.fit.levels import Levels, Visit, levels_of

CAPS, SAMPLES, DWELL = 12, 6, 8


def visited(
    seed: int, *, noise: float = 0.03, visit: float = 0.0, drift: float = 0.0, trend: float = 0.0
) -> Levels:
    """Return what two visits of each cap and eight more of two of them say; logs are 1, 2, ..."""
    chance = random.Random(seed)
    order = [*chance.sample(range(CAPS), CAPS), *chance.sample(range(CAPS), CAPS), *[5, 9] * 4]
    error, variation, visits = noise / math.sqrt(SAMPLES), chance.gauss(0, drift), list[Visit]()
    middle = DWELL * len(order) / 2
    for number, level in enumerate(order):
        kept = 0.95**DWELL
        variation = kept * variation + math.sqrt(1 - kept**2) * chance.gauss(0, drift)
        at = DWELL * number + DWELL / 2
        speed = visit * chance.gauss(0, 1) + variation + trend * (at / middle - 1) / 2
        visits.append(Visit(at, level, 1.0 + level + speed + error * chance.gauss(0, 1)))
    return levels_of(visits, error**2 * np.eye(len(visits)), middle)


def coverage(**host: float) -> float:
    inside = list[bool]()
    for seed in range(60):
        found = visited(seed, **host)
        missed = np.abs(found.logs - 1.0 - np.arange(CAPS))
        inside += list(missed <= 2.0 * found.errors())
    return sum(inside) / len(inside)


@pytest.mark.parametrize(
    "host",
    [
        {"noise": 0.2},
        {"visit": 0.02},
        {"visit": 0.05},
        {"visit": 0.1},
        {"drift": 0.05},
        {"trend": -0.2},
        {"noise": 0.1, "visit": 0.05, "trend": 0.1},
    ],
    ids=str,
)
def test_intervals_hold_the_truth_however_the_speed_changes(host: dict[str, float]) -> None:
    """Were samples of a visit independent, it would be half of the time at a visit sd of 5 %."""
    assert 0.92 <= coverage(**host) <= 0.99


def test_a_change_of_speed_is_told_from_noise() -> None:
    assert sum(visited(seed).speed.sure for seed in range(100)) <= 10
    assert all(visited(seed, visit=0.05).speed.sure for seed in range(40))


def test_what_would_have_shown_is_smaller_where_more_was_measured() -> None:
    noisy, quiet = visited(1, noise=0.1).speed, visited(1, noise=0.01).speed
    assert not noisy.sure
    assert not quiet.sure
    assert quiet.high < 0.01 < noisy.high < 0.1


def test_a_trend_is_found_and_taken_off() -> None:
    found = [visited(seed, noise=0.01, trend=-0.2).speed for seed in range(20)]
    assert all(one.drifts for one in found)
    assert sum(one.trend for one in found) / 20 == pytest.approx(-0.2, abs=0.02)


def test_one_visit_is_as_uncertain_as_hosts_usually_are() -> None:
    found = levels_of([Visit(1.0, 0, 3.0)], np.array([[0.01**2]]), 1.0)
    assert found.logs[0] == pytest.approx(3.0)
    assert 0.01 < found.errors()[0] < 0.15
