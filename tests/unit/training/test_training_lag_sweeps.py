"""A whole sweep of a host with lag and delay gives its curve (review H1)."""

import pytest

from benchmarks.training.coverage import swept
from benchmarks.training.coverage_host import Case, SimulatedHost, throughput
from training.fit.fit import fit

PLACES = 40
"""Caps at which the curve is compared with the truth, in geometric steps."""


@pytest.mark.parametrize("delay", [0, 1, 3])
@pytest.mark.parametrize("lag", [0.0, 0.3, 0.6, 0.8])
def test_without_noise_the_curve_of_a_whole_sweep_is_within_one_percent(
    lag: float, delay: int
) -> None:
    case = Case(noise=0.0, lag=lag, delay=delay)
    found = fit(swept(SimulatedHost(case, 0)))
    low, high = found.points[0].cap, found.points[-1].cap
    caps = [low * (high / low) ** (n / (PLACES - 1)) for n in range(PLACES)]
    assert max(abs(found.curve.throughput(cap) / throughput(case, cap) - 1) for cap in caps) < 0.01
    assert (found.eq1.a.value, found.eq1.delay) == (pytest.approx(lag, abs=0.01), delay)
