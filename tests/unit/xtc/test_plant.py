"""The simulated router against Eq. 1 and plain arithmetic."""

import pytest

from common.units import CapFraction, PacketsPerSecond, Seconds
from models import ThroughputCurve, paper_host
from xtc.simulation.plant import Plant, PlantState, advanced, settled

LINE = ThroughputCurve(((0.1, 10e3), (1.0, 100e3)))
SECOND = Seconds(1.0)


def _plant(offered: float = 50e3, **kwargs: float) -> Plant:
    return Plant(LINE, PacketsPerSecond(offered), **kwargs)


def _state(throughput: float) -> PlantState:
    return PlantState(PacketsPerSecond(throughput))


def test_without_a_lag_throughput_is_the_curves() -> None:
    state = advanced(_plant(), _state(7.0), [CapFraction(0.3)], SECOND)
    assert state.throughput == pytest.approx(30e3)
    assert (state.binding, state.used) == (True, 0.3)


def test_eq_1_step_by_step() -> None:
    """y(k+1) = a·y(k) + (1 - a)·f(cap): 10, 10 + 15·(1 - a), ... with a = 0.0915."""
    plant = _plant(lag=0.0915)
    state = advanced(plant, _state(10e3), [CapFraction(0.25)], SECOND)
    assert state.throughput == pytest.approx(0.0915 * 10e3 + 0.9085 * 25e3)
    state = advanced(plant, state, [CapFraction(0.25)], SECOND)
    assert state.throughput == pytest.approx(25e3 - 0.0915**2 * 15e3)


def test_two_half_steps_are_one_whole() -> None:
    plant, caps = _plant(lag=0.4), [CapFraction(0.25)]
    whole = advanced(plant, _state(10e3), caps, SECOND)
    half = advanced(plant, _state(10e3), caps, Seconds(0.5))
    assert advanced(plant, half, caps, Seconds(0.5)).throughput == pytest.approx(whole.throughput)


def test_the_lagging_plant_comes_to_rest_where_settled_says() -> None:
    host = paper_host()
    plant = Plant(host.curve, PacketsPerSecond(100e3), host.lag)
    state = _state(0.0)
    for _ in range(20):
        state = advanced(plant, state, [CapFraction(0.2)], SECOND)
    assert settled(plant, CapFraction(0.2)).throughput == pytest.approx(65e3)
    assert state.throughput == pytest.approx(65e3)


def test_no_more_is_forwarded_than_offered_and_then_the_cap_does_not_bind() -> None:
    state = settled(_plant(offered=20e3), CapFraction(0.8))
    assert (state.throughput, state.binding) == (20e3, False)
    assert state.used == pytest.approx(0.2)


def test_uncapped_is_one_whole_cpu() -> None:
    assert settled(_plant(offered=200e3), None).throughput == 100e3
    assert settled(_plant(offered=20e3), None).used == pytest.approx(0.2)


def test_a_thief_takes_its_share_of_the_router_but_the_router_is_charged() -> None:
    state = advanced(_plant(), _state(0.0), [CapFraction(0.4)], SECOND, stolen=0.15)
    assert state.throughput == pytest.approx(34e3)
    assert state.used == pytest.approx(0.4)
    assert state.binding


def test_a_faster_router_forwards_more_at_the_same_cap() -> None:
    assert settled(_plant(gain=1.3), CapFraction(0.2)).throughput == pytest.approx(26e3)


def test_the_parts_of_a_step_are_averaged_each_within_the_offered_load() -> None:
    """Caps 0.2 and 0.8 of an offered 50 kp/s: 20 and 50, using 0.2 and 0.5 CPUs."""
    state = advanced(_plant(), _state(0.0), [CapFraction(0.2), CapFraction(0.8)], SECOND)
    assert state.throughput == pytest.approx(35e3)
    assert state.used == pytest.approx(0.35)
    assert state.binding


def test_a_router_that_forwards_nothing_at_its_cap_uses_it_all() -> None:
    dead = Plant(ThroughputCurve(((0.1, 0.0), (1.0, 9e3))), PacketsPerSecond(1e3))
    state = settled(dead, CapFraction(0.05))
    assert (state.throughput, state.binding, state.used) == (0.0, True, 0.05)
