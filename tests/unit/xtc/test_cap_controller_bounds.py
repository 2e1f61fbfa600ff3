"""One cap's controller on both sides of every bound: backoff, conflicts, changes too small."""

from dataclasses import replace
from pathlib import Path

import pytest
from manager_rig import PERIOD
from simulated_rig import Rig, plan

from common.units import CapFraction, Seconds
from xtc.actuator.base import CpuUsage
from xtc.errors import Denied, Gone, Transient
from xtc.manager.cap import CapController, _hottest, _is_coarse, _throttled, same_cap
from xtc.spec import SimulatedSpec

HALF, THIRD = CapFraction(0.5), CapFraction(0.3)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"r": plan("r")})


@pytest.fixture
def controller(rig: Rig) -> CapController:
    controller = CapController(SimulatedSpec("r"), rig.open)
    controller.prepare()
    return controller


def look(controller: CapController, rig: Rig, periods: int = 1) -> None:
    for _ in range(periods):
        controller.begin_period()
        rig.clock.sleep(PERIOD)
        controller.view(rig.clock.now())


def tries(rig: Rig, call: str) -> int:
    return rig.faults.calls.count(("r", call))


def tried_in(
    controller: CapController, rig: Rig, error: type[Transient | Denied], periods: int
) -> list[int]:
    """Return the periods in which a cap was tried while that fails."""
    rig.faults.errors["r", "apply"] = error("r", "no")
    found = []
    for period in range(periods):
        before = tries(rig, "apply")
        controller.set(HALF)
        if tries(rig, "apply") > before:
            found.append(period)
        look(controller, rig)
    return found


def test_rests_double_up_to_32_periods(controller: CapController, rig: Rig) -> None:
    assert tried_in(controller, rig, Transient, 100) == [0, 1, 3, 7, 15, 31, 63, 95]


def test_what_is_permanent_rests_32_periods_at_once(controller: CapController, rig: Rig) -> None:
    assert tried_in(controller, rig, Denied, 100) == [0, 32, 64, 96]


def test_a_success_begins_the_rests_again(controller: CapController, rig: Rig) -> None:
    tried_in(controller, rig, Transient, 8)
    rig.faults.errors.clear()
    look(controller, rig, 32)
    controller.set(THIRD)
    assert tried_in(controller, rig, Transient, 5) == [0, 1, 3]


def test_who_asks_is_answered_in_spite_of_a_rest(controller: CapController, rig: Rig) -> None:
    tried_in(controller, rig, Denied, 1)
    assert controller.resting
    controller.retry()
    assert not controller.resting
    rig.faults.errors.clear()
    controller.set(HALF)
    assert rig.cap("r") == HALF


@pytest.mark.parametrize("call", ["applied", "usage"])
def test_a_read_that_fails_delays_no_write(controller: CapController, rig: Rig, call: str) -> None:
    rig.faults.errors["r", call] = Transient("r", "busy")
    look(controller, rig, 5)
    assert not controller.resting
    controller.set(HALF)
    assert rig.cap("r") == HALF


def test_a_read_that_succeeds_ends_no_rest_of_writing(controller: CapController, rig: Rig) -> None:
    assert tried_in(controller, rig, Transient, 2) == [0, 1]
    look(controller, rig)
    controller.set(HALF)
    assert tries(rig, "apply") == 3
    assert controller.resting


@pytest.mark.parametrize(
    ("other", "written"), [(0.5014, False), (0.4986, False), (0.5017, True), (0.4984, True)]
)
def test_a_cap_is_written_when_it_differs_by_3_in_a_thousand(
    controller: CapController, rig: Rig, other: float, *, written: bool
) -> None:
    controller.set(HALF)
    controller.set(CapFraction(other))
    assert (tries(rig, "apply") == 2) is written


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (0.5, 0.5004, True),
        (0.5, 0.5006, False),
        (0.5004, 0.5, True),
        (0.01, 0.010009, True),
        (0.01, 0.010011, False),
        (None, None, True),
        (None, 0.5, False),
        (0.5, None, False),
    ],
)
def test_what_reads_back_is_the_same_within_1_in_a_thousand(
    one: float | None, other: float | None, *, same: bool
) -> None:
    caps = [None if cap is None else CapFraction(cap) for cap in (one, other)]
    assert same_cap(caps[0], caps[1]) is same


def foreign(controller: CapController, rig: Rig, cap: float | None, apart: int = 1) -> None:
    """Set a cap, and let another hand change it; then let periods pass."""
    controller.set(HALF)
    rig.plant.routers["r"].cap = None if cap is None else CapFraction(cap)
    look(controller, rig, apart)


@pytest.mark.parametrize(("apart", "yielded"), [(29, True), (30, False)])
def test_three_foreign_changes_count_within_60_periods(
    controller: CapController, rig: Rig, apart: int, *, yielded: bool
) -> None:
    """The first is seen one period after it is set, and the third 2 x `apart` later."""
    for _ in range(2):
        foreign(controller, rig, 0.9, apart)
    foreign(controller, rig, 0.9)
    assert controller.yielded is yielded


@pytest.mark.parametrize(
    ("volatile", "found", "yielded"),
    [(False, None, True), (True, None, False), (True, 0.9, True), (False, 0.9, True)],
)
def test_a_cap_that_vanished_with_what_bore_it_is_nobodys_doing(
    controller: CapController, rig: Rig, found: float | None, *, volatile: bool, yielded: bool
) -> None:
    assert controller.limits is not None
    controller.limits = replace(controller.limits, volatile=volatile)
    for _ in range(3):
        foreign(controller, rig, found)
    assert controller.yielded is yielded
    if not yielded:
        controller.set(HALF)
        assert rig.cap("r") == HALF


def test_another_hands_change_is_seen_once(controller: CapController, rig: Rig) -> None:
    foreign(controller, rig, 0.9, apart=10)
    assert not controller.yielded
    controller.set(HALF)
    assert rig.cap("r") == HALF


def test_what_forgets_a_router_forgets_who_fought_over_it(
    controller: CapController, rig: Rig
) -> None:
    for _ in range(3):
        foreign(controller, rig, 0.9)
    assert controller.yielded
    controller.forget()
    assert (controller.yielded, controller.original, controller.limits) == (False, None, None)
    controller.prepare()
    foreign(controller, rig, 0.8)
    assert not controller.yielded


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        ((5, 10), (8, 20), 0.3),
        ((5, 10), (5, 20), 0.0),
        ((5, 10), (8, 10), 1.0),  # a reading between the two counters
        ((5, 10), (25, 20), 1.0),
        ((5, None), (6, None), 1.0),
        ((5, None), (5, None), 0.0),
        ((5, 10), (3, 20), 0.0),  # another group has taken the name
        ((None, 10), (6, 20), None),
        ((5, 10), (None, 20), None),
    ],
)
def test_throttling_is_a_share_of_the_periods(
    before: tuple[int | None, int | None],
    after: tuple[int | None, int | None],
    share: float | None,
) -> None:
    readings = (CpuUsage(Seconds(0.0), count, periods) for count, periods in (before, after))
    assert _throttled(*readings) == share


@pytest.mark.parametrize(
    ("before", "after", "hottest"),
    [
        ((), (), 0.3),
        ((0.0, 0.0, 0.0, 0.0), (1.0, 0.1, 0.05, 0.05), 2.0),  # of 4 vCPUs one is busy
        ((0.0, 0.0), (0.6, 0.6), 0.6),
        ((1.0, 1.0), (3.0, 0.5), 0.3),  # another one has taken the number
        ((0.0,), (1.0, 1.0), 0.3),  # a vCPU was plugged in
        ((0.0, 0.0), (), 0.3),
    ],
)
def test_the_busiest_of_equal_parts_counts_for_all(
    before: tuple[float, ...], after: tuple[float, ...], hottest: float
) -> None:
    readings = (
        CpuUsage(Seconds(0.0), None, parts=tuple(map(Seconds, parts))) for parts in (before, after)
    )
    assert _hottest(*readings, 2.0, CapFraction(0.3)) == pytest.approx(hottest)


@pytest.mark.parametrize(
    ("cap", "grain", "coarse"),
    [(0.05, 0.01, False), (0.0499, 0.01, True), (0.0499, 0.0, False), (None, 0.01, False)],
)
def test_a_cap_of_fewer_than_five_grains_is_counted_too_coarsely(
    cap: float | None, grain: float, *, coarse: bool
) -> None:
    assert _is_coarse(None if cap is None else CapFraction(cap), CapFraction(grain)) is coarse


def test_a_release_forgets_the_cap_it_had_set(controller: CapController, rig: Rig) -> None:
    controller.set(HALF)
    assert controller.release()
    assert controller.prepare()
    controller.set(HALF)
    assert rig.cap("r") == HALF


def test_nothing_is_released_that_was_never_captured(rig: Rig) -> None:
    controller = CapController(SimulatedSpec("r"), rig.open)
    assert controller.release()
    assert tries(rig, "restore") == 0


def test_a_failed_release_is_no_problem_once_the_router_is_held_again(
    controller: CapController, rig: Rig
) -> None:
    controller.set(HALF)
    rig.faults.errors["r", "restore"] = Transient("r", "busy")
    assert not controller.release()
    assert isinstance(controller.problem, Transient)
    controller.retry()
    controller.set(THIRD)
    assert controller.problem is None


def test_a_router_that_is_back_is_no_longer_called_gone(
    controller: CapController, rig: Rig
) -> None:
    rig.faults.errors["r", "applied"] = Gone("r", "stopped")
    look(controller, rig)
    assert isinstance(controller.problem, Gone)
    rig.faults.errors.clear()
    assert controller.prepare()
    assert controller.problem is None


def test_what_is_gone_is_opened_again(controller: CapController, rig: Rig) -> None:
    rig.faults.errors["r", "applied"] = Gone("r", "stopped")
    look(controller, rig)
    before = tries(rig, "open")
    rig.faults.errors.clear()
    controller.prepare()
    assert tries(rig, "open") == before + 1


@pytest.mark.parametrize(("used", "share"), [(1.5, 0.25), (0.9, 0.0)])
def test_use_is_counted_between_two_looks_and_never_negative(
    controller: CapController, rig: Rig, used: float, share: float
) -> None:
    """1 s of CPU time at first; two seconds later another count, which may begin again."""
    router = rig.plant.routers["r"]
    router.used = 1.0
    controller.view(Seconds(10.0))
    router.used = used
    view = controller.view(Seconds(12.0))
    assert view is not None
    assert view.used == pytest.approx(share)
