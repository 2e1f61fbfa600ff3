"""Lag and delay are found from every change of cap, whatever the curve, and taken off."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from training.errors import UnfitError
from training.fit.dynamics import Dynamics, dynamics_of, grid_of, settled_of, shares
from training.fit.interval import Interval
from training.fit.means import means_of
from training.recording.recording import Phase, Sample

CAPS = (0.1, 0.6, 0.2, 0.9, 0.05, 0.4)


def answering(
    lag: float,
    delay: int,
    caps: Sequence[float] = CAPS,
    *,
    dwell: int = 8,
    discard: int = 0,
    noise: float = 0.0,
    seed: int = 0,
) -> list[Sample]:
    """Return samples of a host that forwards 100 kp/s per CPU; the first of a visit may be lost."""
    chance, state = random.Random(seed), 1e5 * caps[0]
    acting, found = [caps[0]] * (delay + 1), list[Sample]()
    for visit, cap in enumerate(caps):
        for number in range(dwell):
            acting.append(cap)
            state = lag * state + (1 - lag) * 1e5 * acting[-1 - delay]
            at = float(len(acting))
            phase: Phase = "settling" if number < dwell - 3 else "steady"
            seen = state * (1 + noise * chance.gauss(0, 1))
            if number >= discard:
                found.append(Sample(at=at, cap=cap, throughput_pps=seen, phase=phase, visit=visit))
    return found


@pytest.mark.parametrize("delay", range(4))
@pytest.mark.parametrize("lag", [0.0, 0.15, 0.3, 0.6, 0.8])
@pytest.mark.parametrize("discard", [0, 5])
def test_without_noise_lag_delay_and_curve_are_exact(lag: float, delay: int, discard: int) -> None:
    """Where the first samples were discarded, too: the clock says how many there were."""
    samples = answering(lag, delay, discard=discard, dwell=12)
    host = dynamics_of(samples, 1.0)
    assert host is not None
    if not discard:  # else little is left to see
        assert (host.lag.value, host.delay) == (pytest.approx(lag, abs=1e-4), delay)
    for mean in means_of(samples, 1.0, host).visits:
        assert mean.mean == pytest.approx(1e5 * (mean.cap or 0.0), rel=0.01)


def test_a_lag_is_not_pulled_towards_zero_by_the_meters_noise() -> None:
    """A regression of each sample on the one before would find about 0.4."""
    found = [dynamics_of(answering(0.6, 1, CAPS * 4, noise=0.1, seed=n), 1.0) for n in range(20)]
    known = [host for host in found if host is not None]
    assert sum(host.lag.value for host in known) / 20 == pytest.approx(0.6, abs=0.02)
    assert {host.delay for host in known} == {1}
    assert sum(host.lag.low <= 0.6 <= host.lag.high for host in known) >= 17


def test_nothing_is_known_of_a_host_whose_cap_never_changed() -> None:
    assert dynamics_of([], 1.0) is None
    assert dynamics_of(answering(0.5, 0, [0.3]), 1.0) is None


def test_a_gap_in_time_is_as_many_periods() -> None:
    samples = [
        Sample(at=at, cap=cap, throughput_pps=1.0, visit=visit)
        for at, cap, visit in ((1.0, 0.1, 0), (4.0, 0.2, 1), (4.5, 0.2, 1))
    ]
    grid = grid_of(samples, 0.5)
    assert list(grid.acting) == [0, 1, 1, 1, 1, 1, 1, 1]
    assert list(grid.sampled) == [0, 6, 7]
    part = shares(grid, 0.5, 1)
    assert part[1] == pytest.approx([0.5**5, 1 - 0.5**5])


def test_a_grid_that_would_take_gigabytes_is_refused() -> None:
    """A small file is enough: many visits, far apart."""
    samples = [
        Sample(at=60.0 * n, cap=0.1 + 0.1 * (n // 2 % 2), throughput_pps=1.0, visit=n // 2)
        for n in range(4000)
    ]
    assert grid_of(samples[:400], 1.0).visits == 200
    with pytest.raises(UnfitError, match="look at at_s and visit"):
        grid_of(samples, 1.0)


@pytest.mark.parametrize(
    ("lag", "delay", "wait"), [(0.0, 0, 1), (0.0, 2, 3), (0.5, 0, 4), (0.8, 3, 14)]
)
def test_a_visit_waits_until_little_is_left_of_the_cap_before(
    lag: float, delay: int, wait: int
) -> None:
    assert Dynamics(Interval(lag, lag, lag), delay, 9).settling(0.1) == wait


def test_a_visit_that_ended_before_its_cap_showed_has_no_share_in_its_samples() -> None:
    samples = answering(0.0, 3, (0.1, 0.6, 0.2), dwell=3)
    host = Dynamics(Interval(0.0, 0.0, 0.0), 3, 2)
    steady = [sample.phase == "steady" for sample in samples]

    found = settled_of(samples, 1.0, host, np.array(steady))
    assert list(found.own[3:]) == [0.0] * 6
    assert [visit.cap for visit in means_of(samples, 1.0, host).visits] == [0.1]
