"""Routers behind their shield: a cap that only bounds CPU is decided on by the mean of a second."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from common.setpoint import Setpoint, Unit
from common.units import CapFraction
from xtc.control.law import InBits, Sample
from xtc.manager.window import Calm, mean_sample

SETPOINT = Setpoint(1000.0)
CAP = CapFraction(0.2)
HELD = Sample(
    1000.0, CAP, offered=1000.0, used=CapFraction(0.17), shielded=True, guarded=True, binding=True
)
HINDERED = replace(HELD, throughput=800.0, used=CAP)


def calm(*samples: Sample, setpoint: Setpoint = SETPOINT, period: float = 0.1) -> list[Sample]:
    """Return what is decided on, one sample a period, once the setpoint is known."""
    gathering = Calm()
    gathering.gather(HINDERED, setpoint, period)
    found = (gathering.gather(sample, setpoint, period) for sample in samples)
    return [sample for sample in found if sample is not None]


@given(st.lists(st.floats(0.10, 0.189), min_size=10, max_size=10))
def test_ten_periods_of_a_tenth_are_one_sample(uses: list[float]) -> None:
    samples = [replace(HELD, used=CapFraction(use)) for use in uses]
    assert calm(*samples[:9]) == []
    (found,) = calm(*samples)
    assert found.used == pytest.approx(sum(uses) / 10)
    assert (found.throughput, found.offered, found.cap) == (1000.0, 1000.0, CAP)


@pytest.mark.parametrize("period", [1.0, 2.0])
def test_a_period_of_a_second_stands_alone(period: float) -> None:
    assert calm(HELD, HELD, period=period) == [HELD, HELD]


def test_samples_of_several_periods_count_as_such() -> None:
    assert len(calm(*[HELD] * 10, period=0.5)) == 5


@pytest.mark.parametrize("throughput", [800.0, 1600.0])
def test_one_that_its_cap_holds_back_or_that_flows_past_its_shield_is_not_averaged(
    throughput: float,
) -> None:
    urgent = replace(HINDERED, throughput=throughput)
    assert calm(HELD, HELD, urgent) == [urgent]


def test_a_load_that_ends_is_not_averaged_with_what_was_before() -> None:
    ending = replace(HELD, throughput=100.0, offered=100.0, used=CAP)
    assert calm(HELD, HELD, ending) == [ending]


def test_one_that_lost_packets_with_cpu_to_spare_has_time() -> None:
    assert calm(replace(HINDERED, used=CapFraction(0.1))) == []


@pytest.mark.parametrize("alone", [replace(HELD, guarded=False), replace(HELD, cap=None)])
def test_without_a_shield_or_a_cap_every_period_is_decided_on(alone: Sample) -> None:
    assert calm(HELD, alone, alone) == [alone, alone]


def test_another_cap_begins_anew() -> None:
    other = replace(HELD, cap=CapFraction(0.25))
    found = calm(*[HELD] * 5, *[other] * 10)
    assert [sample.cap for sample in found] == [0.25]


def test_another_setpoint_is_followed_at_once() -> None:
    gathering = Calm()
    assert gathering.gather(HELD, SETPOINT, 0.1) is HELD
    assert gathering.gather(HELD, SETPOINT, 0.1) is None
    assert gathering.gather(HELD, Setpoint(900.0), 0.1) is HELD


def test_after_a_blind_period_it_begins_anew() -> None:
    gathering = Calm()
    gathering.gather(HELD, SETPOINT, 0.5)
    assert gathering.gather(HELD, SETPOINT, 0.5) is None
    gathering.begin()
    assert gathering.gather(HELD, SETPOINT, 0.5) is None


def test_in_bits_it_is_bits_that_count() -> None:
    setpoint = Setpoint(1e6, Unit.BITS)
    short = replace(HINDERED, in_bits=InBits(0.8 * setpoint.target, setpoint.target))
    enough = replace(HINDERED, in_bits=InBits(setpoint.target, setpoint.target))
    assert calm(enough, setpoint=setpoint) == []
    assert calm(enough, short, setpoint=setpoint) == [short]
    (found,) = calm(*[enough] * 10, setpoint=setpoint)
    assert found.in_bits == InBits(setpoint.target, setpoint.target)


def test_what_is_not_known_of_one_is_not_known_of_all() -> None:
    found = mean_sample([HELD, replace(HELD, used=None, offered=None, in_bits=InBits(1.0)), HELD])
    assert (found.used, found.offered, found.in_bits) == (None, None, None)
    assert mean_sample([HELD]) is HELD
