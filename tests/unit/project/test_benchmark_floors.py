"""What the benchmark of floors makes of what it measures, on turns with a known answer."""

import pytest

from benchmarks.xtc.floors import GOAL, Turn, medians, setpoints_of


def turn(number: int, way: str, gold: float) -> Turn:
    return Turn(number, way, {"gold": gold, "silver": 10e3}, {}, 0.4)


def test_setpoints_are_shares_of_what_one_router_forwards_alone() -> None:
    assert setpoints_of(50e3) == {"gold": 30e3, "silver": 10e3}


def test_each_way_is_judged_by_the_median_of_its_turns() -> None:
    turns = [turn(n, "caps", pps) for n, pps in enumerate((20e3, 5e3, 21e3))]
    turns += [turn(n, "caps and floors", pps) for n, pps in enumerate((30e3, 31.2e3, 1.0))]
    found = {(one.way, one.router): one for one in medians(turns, setpoints_of(50e3))}
    caps, floors = found["caps", "gold"], found["caps and floors", "gold"]
    assert caps.error == pytest.approx(-1 / 3)
    assert not caps.reached
    assert floors.error == 0
    assert floors.reached
    assert found["caps", "silver"].reached


def test_a_way_that_was_not_measured_has_no_median() -> None:
    found = medians([turn(0, "caps", 30e3 * (1 - GOAL))], setpoints_of(50e3))
    assert {one.way for one in found} == {"caps"}
