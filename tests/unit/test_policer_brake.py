"""The brake: a fleet of culprits is a mistake of the policer."""

import pytest

from policer.brake import ALWAYS, WINDOW_S, Brake


def test_few_are_never_a_mistake() -> None:
    assert not Brake().after(0.0, ALWAYS).on(0.0, routers=3)


@pytest.mark.parametrize(("climbs", "on"), [(10, False), (11, True)])
def test_more_than_a_tenth_of_the_fleet_is(climbs: int, on: bool) -> None:
    assert Brake().after(0.0, climbs).on(0.0, routers=100) is on


def test_they_count_together_within_a_minute() -> None:
    brake = Brake()
    for at in range(4):
        brake = brake.after(10.0 * at, 1)
    assert brake.on(30.0, routers=4)
    assert not brake.on(30.0 + WINDOW_S, routers=4)


def test_it_remembers_no_more_than_its_window() -> None:
    brake = Brake()
    for at in range(1000):
        brake = brake.after(float(at), 1)
    assert len(brake.climbs) == WINDOW_S
