"""One cap's controller: errors of every kind, backoff, foreign changes, restored originals."""

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
from xtc.manager.cap import CONFLICT_MEMORY, MAX_BACKOFF, MAX_CONFLICTS, CapController, same_cap
from xtc.spec import SimulatedOriginal, SimulatedSpec

HALF, THIRD = CapFraction(0.5), CapFraction(0.3)
KINDS = [Transient, Gone, Permanent, Unsupported, Denied, Admission]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"r": plan("r")})


@pytest.fixture
def controller(rig: Rig) -> CapController:
    return CapController(SimulatedSpec("r"), rig.open)


def view(controller: CapController, rig: Rig) -> None:
    controller.begin_period()
    rig.clock.sleep(PERIOD)
    controller.view(rig.clock.now())


def tries(rig: Rig, call: str) -> int:
    return rig.faults.calls.count(("r", call))


def test_the_original_is_captured_before_anything_can_be_set(
    controller: CapController, rig: Rig
) -> None:
    controller.set(HALF)
    assert rig.cap("r") is None
    assert controller.prepare()
    assert controller.original == SimulatedOriginal(None)
    controller.set(HALF)
    assert rig.cap("r") == HALF


def test_an_original_from_the_journal_is_not_captured_anew(rig: Rig) -> None:
    rig.plant.routers["r"].cap = HALF
    controller = CapController(SimulatedSpec("r"), rig.open, original=SimulatedOriginal(0.8))
    controller.prepare()
    controller.release()
    assert rig.cap("r") == 0.8


def test_a_cap_is_written_only_when_it_changes(controller: CapController, rig: Rig) -> None:
    controller.prepare()
    for cap in (HALF, HALF, THIRD, THIRD):
        controller.set(cap)
    assert tries(rig, "apply") == 2


@pytest.mark.parametrize("call", ["open", "capture"])
@pytest.mark.parametrize("kind", KINDS)
def test_preparing_again_mends_every_error(
    controller: CapController, rig: Rig, call: str, kind: type[ActuatorError]
) -> None:
    rig.faults.errors["r", call] = kind("r", "broken")
    assert not controller.prepare()
    assert isinstance(controller.problem, kind)
    del rig.faults.errors["r", call]
    for _ in range(MAX_BACKOFF):
        controller.begin_period()
    assert controller.prepare()
    assert controller.problem is None
    assert controller.original is not None


@pytest.mark.parametrize("kind", KINDS)
def test_setting_again_mends_every_error(
    controller: CapController, rig: Rig, kind: type[ActuatorError]
) -> None:
    controller.prepare()
    rig.faults.errors["r", "apply"] = kind("r", "broken")
    controller.set(HALF)
    del rig.faults.errors["r", "apply"]
    for _ in range(MAX_BACKOFF):
        view(controller, rig)
        controller.prepare()
        controller.set(HALF)
    assert rig.cap("r") == HALF
    assert controller.problem is None


def test_a_transient_error_is_tried_again_the_next_period(
    controller: CapController, rig: Rig
) -> None:
    controller.prepare()
    rig.faults.errors["r", "apply"] = Transient("r", "busy")
    controller.set(HALF)
    controller.set(HALF)
    assert tries(rig, "apply") == 1
    view(controller, rig)
    controller.set(HALF)
    assert tries(rig, "apply") == 2


@pytest.mark.parametrize(("kind", "expected"), [(Transient, 15), (Denied, 10)])
def test_tries_become_rare(
    controller: CapController, rig: Rig, kind: type[ActuatorError], expected: int
) -> None:
    controller.prepare()
    rig.faults.errors["r", "apply"] = kind("r", "no")
    for _ in range(10 * MAX_BACKOFF):
        controller.set(HALF)
        view(controller, rig)
    assert tries(rig, "apply") == expected


def test_a_lower_cap_does_not_wait_for_one_that_could_not_be_promised(
    controller: CapController, rig: Rig
) -> None:
    """What cannot be promised now is tried rarely; what is less must never wait for it."""
    controller.prepare()
    rig.faults.errors["r", "apply"] = Admission("r", "no CPU time left")
    assert not controller.set(HALF)
    rig.faults.errors.clear()
    controller.begin_period()
    assert not controller.set(HALF)
    assert controller.set(THIRD)
    assert (rig.cap("r"), controller.problem) == (THIRD, None)


def test_reading_well_does_not_hide_that_writing_fails(controller: CapController, rig: Rig) -> None:
    controller.prepare()
    rig.faults.errors["r", "apply"] = Denied("r", "no")
    controller.set(HALF)
    view(controller, rig)
    assert isinstance(controller.problem, Denied)


def test_reading_goes_on_after_an_error(controller: CapController, rig: Rig) -> None:
    controller.prepare()
    rig.faults.errors["r", "applied"] = Transient("r", "busy")
    view(controller, rig)
    assert isinstance(controller.problem, Transient)
    del rig.faults.errors["r", "applied"]
    view(controller, rig)
    assert controller.problem is None


def test_a_router_that_vanishes_takes_its_limits_with_it(
    controller: CapController, rig: Rig
) -> None:
    controller.prepare()
    del rig.plant.routers["r"]
    view(controller, rig)
    assert controller.limits is None
    assert isinstance(controller.problem, Gone)
    assert controller.release()


def test_a_release_that_fails_keeps_the_original(controller: CapController, rig: Rig) -> None:
    controller.prepare()
    controller.set(HALF)
    rig.faults.errors["r", "restore"] = Transient("r", "busy")
    assert not controller.release()
    assert controller.original is not None
    del rig.faults.errors["r", "restore"]
    assert controller.release()
    assert all(left is None for left in (rig.cap("r"), controller.original, controller.problem))


def change(rig: Rig, cap: float) -> None:
    rig.plant.routers["r"].cap = CapFraction(cap)


def fight(controller: CapController, rig: Rig, times: int, *, apart: int = 1) -> None:
    for _ in range(times):
        controller.set(HALF)
        change(rig, 0.9)
        for _ in range(apart):
            view(controller, rig)


def test_the_third_foreign_change_makes_it_yield_for_good(
    controller: CapController, rig: Rig
) -> None:
    controller.prepare()
    fight(controller, rig, MAX_CONFLICTS - 1)
    assert not controller.yielded
    fight(controller, rig, 1)
    assert controller.yielded
    for _ in range(2 * CONFLICT_MEMORY):
        view(controller, rig)
        controller.set(HALF)
    assert rig.cap("r") == 0.9
    controller.reclaim()
    controller.set(HALF)
    assert rig.cap("r") == HALF


def test_rare_foreign_changes_are_corrected(controller: CapController, rig: Rig) -> None:
    controller.prepare()
    fight(controller, rig, 2 * MAX_CONFLICTS, apart=CONFLICT_MEMORY)
    assert not controller.yielded


def test_use_and_binding_are_those_of_the_period(controller: CapController, rig: Rig) -> None:
    controller.prepare()
    controller.set(HALF)
    for _ in range(2):
        rig.clock.sleep(PERIOD)
        rig.plant.read(rig.clock.now())
        seen = controller.view(rig.clock.now())
    assert seen is not None
    assert seen.used == pytest.approx(0.5)
    assert (seen.hottest, seen.throttled) == (pytest.approx(0.5), 1.0)


def test_no_time_no_use(controller: CapController) -> None:
    controller.prepare()
    controller.view(Seconds(5.0))
    seen = controller.view(Seconds(5.0))
    assert seen is not None
    assert seen.used is None


def test_caps_are_the_same_within_what_reads_back() -> None:
    assert same_cap(HALF, CapFraction(0.5002))
    assert not same_cap(HALF, CapFraction(0.501))
    assert same_cap(None, None)
    assert not same_cap(None, HALF)
