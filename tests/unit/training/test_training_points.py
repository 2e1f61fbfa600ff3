"""The cap threshold is where throughput stops rising, however noisy the caps above it are."""

import math
import random
from collections.abc import Callable, Sequence

import pytest

from training.fit.means import means_of
from training.fit.points import curve_of
from training.recording.recording import Sample

TOP = 1e5
GRID = (0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
GEOMETRIC = tuple(0.022 * 50 ** (k / 9) for k in range(10))
KNEE = (0.02, 0.04, 0.08, 0.16, 0.21, 0.24, 0.27, 0.285, 0.306, 0.36, 0.45, 0.64)
NOISES = (0.01, 0.03, 0.1)
SEEDS = 50


def hinge(cap: float, knee: float) -> float:
    return TOP * min(cap / knee, 1.0)


def logarithm(cap: float, knee: float) -> float:
    """The paper's gain of 69 kp/s per decade, up to the knee."""
    return min(max(TOP + 69e3 * math.log10(cap / knee), 0.0), TOP)


HOSTS = (hinge, logarithm)


def threshold(
    rates: Sequence[tuple[float, float]],
    noise: float,
    seed: int,
    off: float = 1.0,
    index: int = -1,
    *,
    free_from: float | None = None,
) -> float:
    """Return the threshold that two visits of each cap show, one cap being off by a factor.

    The platform counts that caps from ``free_from`` on do not bind, if it is given.
    """
    rng = random.Random(seed)
    samples = [
        Sample(
            at=float(visit * 10 + number),
            cap=cap,
            throughput_pps=rate
            * max(1 + noise * rng.gauss(0, 1), 0.0)
            * (off if k == index else 1),
            binding=None if free_from is None else cap < free_from,
            visit=visit,
        )
        for again in range(2)
        for k, (cap, rate) in enumerate(rates)
        for visit in (again * len(rates) + k,)
        for number in range(4)
    ]
    return curve_of(means_of(samples, 1.0, None)).threshold


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("knee", [0.1, 0.3])
@pytest.mark.parametrize("caps", [GRID, GEOMETRIC, KNEE], ids=["grid", "geometric", "knee"])
@pytest.mark.parametrize("host", HOSTS)
def test_noise_moves_the_threshold_by_few_caps(
    host: Callable[[float, float], float], caps: tuple[float, ...], knee: float, noise: float
) -> None:
    """Within a factor of 2 of the knee in 95 of 100 sweeps, and never the sweep's last cap."""
    assert sum(host(cap, knee) >= TOP for cap in caps) >= 3
    rates = [(cap, host(cap, knee)) for cap in caps]
    found = [threshold(rates, noise, seed) for seed in range(SEEDS)]
    assert sum(knee / 2 <= cap <= 2 * knee for cap in found) >= 0.95 * SEEDS
    assert max(found) < caps[-1]


@pytest.mark.parametrize("sigmas", [-4, -3, 3, 4])
@pytest.mark.parametrize("index", range(9, 14))
def test_one_noisy_cap_breaks_no_plateau(index: int, sigmas: float) -> None:
    """Its mean is so many standard errors off; samples scatter by 5 % at every cap."""
    off = 1 + sigmas * 0.05 / math.sqrt(8)
    rates = [(cap, hinge(cap, 0.45)) for cap in GRID]
    found = [threshold(rates, 0.05, seed, off, index) for seed in range(10)]
    assert sum(cap in {0.5, 0.6} for cap in found) >= 8


def test_without_noise_it_is_the_papers_one_percent() -> None:
    rates = [(0.4, 95e3), (0.5, 98.9e3), (0.55, 99.1e3), (0.6, 99.5e3), (1.0, 1e5)]
    assert threshold(rates, 0.0, 0) == 0.55


@pytest.mark.parametrize(("rate", "found"), [(1e5, 1.0), (99.1e3, 1.0), (98.9e3, 1.3)])
def test_a_cap_that_binds_and_lacks_next_to_nothing_is_the_threshold(
    rate: float, found: float
) -> None:
    """The router needs 80 %: at 100 % it uses enough of its cap for that to count as binding."""
    rates = [(0.2, 25e3), (0.4, 50e3), (0.7, 87.5e3), (1.0, rate), (1.3, 1e5)]
    assert threshold(rates, 0.0, 0, free_from=1.3) == found


def test_where_throughput_rises_to_the_end_it_is_the_last_cap() -> None:
    rates = [(cap, hinge(cap, 2.0)) for cap in GRID]
    assert threshold(rates, 0.02, 1) == GRID[-1]


def slowing(offered: float) -> list[Sample]:
    """Return visits to a host that slows by a third; the highest cap comes last, and once."""
    caps = [*3 * (0.05, 0.1, 0.2, 0.4), 0.8]
    found = []
    for visit, cap in enumerate(caps):
        speed = 1.4 - 0.4 * visit / (len(caps) - 1)
        for number in range(4):
            rate = min(1e5 * cap * speed, offered) * (1 + 0.01 * (-1) ** number)
            found.append(
                Sample(at=10.0 * visit + number, cap=cap, throughput_pps=rate, visit=visit)
            )
    return found


def test_no_level_lies_above_all_that_was_offered() -> None:
    """It is of the middle of the sweep, and a host that was faster there had no more to forward."""
    means = means_of(slowing(60e3), 1.0, None)
    free, bounded = curve_of(means), curve_of(means, 60e3)
    assert free.points[-1].smoothed_pps > 1.1 * 60e3
    assert bounded.points[-1].smoothed_pps == pytest.approx(60e3, rel=0.01)
    assert bounded.top.value == pytest.approx(60e3, rel=0.01)
    assert bounded.top.low <= bounded.top.value <= bounded.top.high
    assert [one.smoothed_pps for one in bounded.points[:-1]] == [
        one.smoothed_pps for one in free.points[:-1]
    ]
