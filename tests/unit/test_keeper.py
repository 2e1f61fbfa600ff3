"""The keeper of one cap: errors of every kind, rests, foreign changes, and what it gives back."""

from pathlib import Path

import pytest
from manager_rig import PERIOD
from simulated_rig import Rig, plan

from common.units import CapFraction, Seconds
from xtc.errors import (
    ActuatorError,
    Admission,
    Denied,
    Gone,
    Permanent,
    Transient,
    Unsupported,
)
from xtc.manager.cap import CONFLICT_MEMORY, MAX_BACKOFF, MAX_CONFLICTS, Keeper, same_cap
from xtc.spec import SimulatedOriginal, SimulatedSpec

HALF, THIRD = CapFraction(0.5), CapFraction(0.3)
KINDS = [Transient, Gone, Permanent, Unsupported, Denied, Admission]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"r": plan("r")})


@pytest.fixture
def keeper(rig: Rig) -> Keeper:
    return Keeper(SimulatedSpec("r"), rig.open)


def view(keeper: Keeper, rig: Rig) -> None:
    keeper.begin_period()
    rig.clock.sleep(PERIOD)
    keeper.view(rig.clock.now())


def tries(rig: Rig, call: str) -> int:
    return rig.faults.calls.count(("r", call))


def test_the_original_is_captured_before_anything_can_be_set(keeper: Keeper, rig: Rig) -> None:
    keeper.set(HALF)
    assert rig.cap("r") is None
    assert keeper.prepare()
    assert keeper.original == SimulatedOriginal(None)
    keeper.set(HALF)
    assert rig.cap("r") == HALF


def test_an_original_from_the_journal_is_not_captured_anew(rig: Rig) -> None:
    rig.plant.routers["r"].cap = HALF
    keeper = Keeper(SimulatedSpec("r"), rig.open, original=SimulatedOriginal(0.8))
    keeper.prepare()
    keeper.release()
    assert rig.cap("r") == 0.8


def test_a_cap_is_written_only_when_it_changes(keeper: Keeper, rig: Rig) -> None:
    keeper.prepare()
    for cap in (HALF, HALF, THIRD, THIRD):
        keeper.set(cap)
    assert tries(rig, "apply") == 2


@pytest.mark.parametrize("call", ["open", "capture"])
@pytest.mark.parametrize("kind", KINDS)
def test_preparing_again_mends_every_error(
    keeper: Keeper, rig: Rig, call: str, kind: type[ActuatorError]
) -> None:
    rig.faults.errors["r", call] = kind("r", "broken")
    assert not keeper.prepare()
    assert isinstance(keeper.problem, kind)
    del rig.faults.errors["r", call]
    for _ in range(MAX_BACKOFF):
        keeper.begin_period()
    assert keeper.prepare()
    assert keeper.problem is None
    assert keeper.original is not None


@pytest.mark.parametrize("kind", KINDS)
def test_setting_again_mends_every_error(
    keeper: Keeper, rig: Rig, kind: type[ActuatorError]
) -> None:
    keeper.prepare()
    rig.faults.errors["r", "apply"] = kind("r", "broken")
    keeper.set(HALF)
    del rig.faults.errors["r", "apply"]
    for _ in range(MAX_BACKOFF):
        view(keeper, rig)
        keeper.prepare()
        keeper.set(HALF)
    assert rig.cap("r") == HALF
    assert keeper.problem is None


def test_a_transient_error_is_tried_again_the_next_period(keeper: Keeper, rig: Rig) -> None:
    keeper.prepare()
    rig.faults.errors["r", "apply"] = Transient("r", "busy")
    keeper.set(HALF)
    keeper.set(HALF)
    assert tries(rig, "apply") == 1
    view(keeper, rig)
    keeper.set(HALF)
    assert tries(rig, "apply") == 2


@pytest.mark.parametrize(("kind", "expected"), [(Transient, 15), (Denied, 10)])
def test_tries_become_rare(
    keeper: Keeper, rig: Rig, kind: type[ActuatorError], expected: int
) -> None:
    keeper.prepare()
    rig.faults.errors["r", "apply"] = kind("r", "no")
    for _ in range(10 * MAX_BACKOFF):
        keeper.set(HALF)
        view(keeper, rig)
    assert tries(rig, "apply") == expected


def test_a_lower_cap_does_not_wait_for_one_that_could_not_be_promised(
    keeper: Keeper, rig: Rig
) -> None:
    """What cannot be promised now is tried rarely; what is less must never wait for it."""
    keeper.prepare()
    rig.faults.errors["r", "apply"] = Admission("r", "no CPU time left")
    assert not keeper.set(HALF)
    rig.faults.errors.clear()
    keeper.begin_period()
    assert not keeper.set(HALF)
    assert keeper.set(THIRD)
    assert (rig.cap("r"), keeper.problem) == (THIRD, None)


def test_reading_well_does_not_hide_that_writing_fails(keeper: Keeper, rig: Rig) -> None:
    keeper.prepare()
    rig.faults.errors["r", "apply"] = Denied("r", "no")
    keeper.set(HALF)
    view(keeper, rig)
    assert isinstance(keeper.problem, Denied)


def test_reading_goes_on_after_an_error(keeper: Keeper, rig: Rig) -> None:
    keeper.prepare()
    rig.faults.errors["r", "applied"] = Transient("r", "busy")
    view(keeper, rig)
    assert isinstance(keeper.problem, Transient)
    del rig.faults.errors["r", "applied"]
    view(keeper, rig)
    assert keeper.problem is None


def test_a_router_that_vanishes_takes_its_limits_with_it(keeper: Keeper, rig: Rig) -> None:
    keeper.prepare()
    del rig.plant.routers["r"]
    view(keeper, rig)
    assert keeper.limits is None
    assert isinstance(keeper.problem, Gone)
    assert keeper.release()


def test_a_release_that_fails_keeps_the_original(keeper: Keeper, rig: Rig) -> None:
    keeper.prepare()
    keeper.set(HALF)
    rig.faults.errors["r", "restore"] = Transient("r", "busy")
    assert not keeper.release()
    assert keeper.original is not None
    del rig.faults.errors["r", "restore"]
    assert keeper.release()
    assert all(left is None for left in (rig.cap("r"), keeper.original, keeper.problem))


def change(rig: Rig, cap: float) -> None:
    rig.plant.routers["r"].cap = CapFraction(cap)


def fight(keeper: Keeper, rig: Rig, times: int, *, apart: int = 1) -> None:
    for _ in range(times):
        keeper.set(HALF)
        change(rig, 0.9)
        for _ in range(apart):
            view(keeper, rig)


def test_the_third_foreign_change_makes_it_yield_for_good(keeper: Keeper, rig: Rig) -> None:
    keeper.prepare()
    fight(keeper, rig, MAX_CONFLICTS - 1)
    assert not keeper.yielded
    fight(keeper, rig, 1)
    assert keeper.yielded
    for _ in range(2 * CONFLICT_MEMORY):
        view(keeper, rig)
        keeper.set(HALF)
    assert rig.cap("r") == 0.9
    keeper.reclaim()
    keeper.set(HALF)
    assert rig.cap("r") == HALF


def test_rare_foreign_changes_are_corrected(keeper: Keeper, rig: Rig) -> None:
    keeper.prepare()
    fight(keeper, rig, 2 * MAX_CONFLICTS, apart=CONFLICT_MEMORY)
    assert not keeper.yielded


def test_use_and_binding_are_those_of_the_period(keeper: Keeper, rig: Rig) -> None:
    keeper.prepare()
    keeper.set(HALF)
    for _ in range(2):
        rig.clock.sleep(PERIOD)
        rig.plant.read(rig.clock.now())
        seen = keeper.view(rig.clock.now())
    assert seen is not None
    assert seen.used == pytest.approx(0.5)
    assert (seen.hottest, seen.throttled) == (pytest.approx(0.5), 1.0)


def test_no_time_no_use(keeper: Keeper) -> None:
    keeper.prepare()
    keeper.view(Seconds(5.0))
    seen = keeper.view(Seconds(5.0))
    assert seen is not None
    assert seen.used is None


def test_caps_are_the_same_within_what_reads_back() -> None:
    assert same_cap(HALF, CapFraction(0.5002))
    assert not same_cap(HALF, CapFraction(0.501))
    assert same_cap(None, None)
    assert not same_cap(None, HALF)
