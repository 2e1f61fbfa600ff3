"""The controller of a cap that is carried out later: under way, failed, slow, coarsely counted."""

from pathlib import Path

import pytest
from manager_rig import PERIOD
from simulated_rig import FaultyActuator, Rig, plan

from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.actuator.base import Actuator, CpuUsage
from xtc.errors import Gone, Transient
from xtc.lease import Lease
from xtc.manager.cap import MAX_CONFLICTS, CapController, CapView
from xtc.manager.router import ManagedRouter
from xtc.measure.collector import Reading
from xtc.spec import ActuatorSpec, Original, SimulatedSpec

HALF, THIRD = CapFraction(0.5), CapFraction(0.3)
LATE = Transient("r", "refused in the end")


class LaterActuator(FaultyActuator):
    """Accepts a cap now, carries it out when told; counts CPU time when and as it likes."""

    slow = False

    def __init__(self, rig: Rig) -> None:
        super().__init__("r", rig.plant.actuator("r"), rig.faults)
        self.pending: CapFraction | None = None
        self.read: CpuUsage | None = None

    def apply(self, cap: CapFraction) -> CapFraction:
        self._faults.calls.append(("r", "apply"))
        self.pending = cap
        return cap

    def applied(self) -> CapFraction | None:
        return self._real.applied() if self.pending is None else self.pending

    def rebalance(self) -> CapFraction | None:
        """Nothing is shared here."""
        return None

    def settle(self) -> bool:
        super().settle()
        return self.pending is None

    def usage(self) -> CpuUsage:
        return self.read or super().usage()

    def carry_out(self) -> None:
        if self.pending is not None:
            self._real.apply(self.pending)
        self.pending = None

    def refuse(self, rig: Rig) -> None:
        self.pending = None
        rig.faults.errors["r", "settle"] = LATE


class PromptActuator(LaterActuator):
    """Carries caps out at once."""

    def apply(self, cap: CapFraction) -> CapFraction:
        applied = super().apply(cap)
        self.carry_out()
        return applied


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"r": plan("r")})


@pytest.fixture
def actuator(rig: Rig) -> LaterActuator:
    return LaterActuator(rig)


@pytest.fixture
def controller(actuator: LaterActuator) -> CapController:
    def open_it(_spec: ActuatorSpec, _original: Original | None) -> Actuator:
        return actuator

    controller = CapController(SimulatedSpec("r"), open_it)
    controller.prepare()
    return controller


def look(controller: CapController, rig: Rig) -> None:
    controller.begin_period()
    rig.clock.sleep(PERIOD)
    controller.view(rig.clock.now())


def test_a_cap_that_is_under_way_is_nobodys_conflict(
    controller: CapController, rig: Rig, actuator: LaterActuator
) -> None:
    controller.set(HALF)
    for _ in range(2 * MAX_CONFLICTS):
        look(controller, rig)
    actuator.carry_out()
    look(controller, rig)
    assert (controller.yielded, controller.problem, rig.cap("r")) == (False, None, HALF)


def test_a_cap_that_fails_in_the_end_is_a_problem_and_no_conflict(
    controller: CapController, rig: Rig, actuator: LaterActuator
) -> None:
    for _ in range(2 * MAX_CONFLICTS):
        controller.set(HALF)
        actuator.refuse(rig)
        look(controller, rig)
        del rig.faults.errors["r", "settle"]
        assert controller.problem is LATE
    assert not controller.yielded


def test_caps_that_fail_in_the_end_are_tried_more_and_more_rarely(
    controller: CapController, rig: Rig, actuator: LaterActuator
) -> None:
    for _ in range(40):
        controller.set(HALF)
        if actuator.pending is not None:
            actuator.refuse(rig)
        look(controller, rig)
        rig.faults.errors.pop(("r", "settle"), None)
    assert 4 <= rig.faults.calls.count(("r", "apply")) <= 7


def test_the_problem_ends_when_a_cap_is_carried_out_and_not_when_it_is_accepted(
    controller: CapController, rig: Rig, actuator: LaterActuator
) -> None:
    controller.set(HALF)
    actuator.refuse(rig)
    look(controller, rig)
    del rig.faults.errors["r", "settle"]
    look(controller, rig)
    controller.set(THIRD)
    look(controller, rig)
    assert controller.problem is LATE
    actuator.carry_out()
    look(controller, rig)
    assert controller.problem is None


def test_a_domain_that_went_while_its_cap_was_under_way_is_gone(
    controller: CapController, rig: Rig
) -> None:
    controller.set(HALF)
    rig.faults.errors["r", "settle"] = Gone("r", "stopped")
    look(controller, rig)
    assert isinstance(controller.problem, Gone)
    assert controller.limits is None


def test_a_domain_that_is_back_has_no_problem_left_of_when_it_went(
    controller: CapController, rig: Rig, actuator: LaterActuator
) -> None:
    controller.set(HALF)
    rig.faults.errors["r", "settle"] = Gone("r", "stopped")
    look(controller, rig)
    del rig.faults.errors["r", "settle"]
    controller.forget()
    actuator.pending = None
    for _ in range(3):
        controller.begin_period()
    assert controller.prepare()
    assert controller.problem is None


def used(
    controller: CapController,
    rig: Rig,
    actuator: LaterActuator,
    *,
    grain: float,
    use_s: float = 0.03,
    before: float | None = None,
) -> CapView:
    """Use 30 ms in 2 s at a cap of 1.5 %, told with the instants of the counting."""
    if before is not None:
        controller.set(CapFraction(before))
        actuator.carry_out()
    actuator.read = CpuUsage(Seconds(0.9), None, at=Seconds(8.0))
    look(controller, rig)
    controller.set(CapFraction(0.015))
    actuator.carry_out()
    for at, seconds in ((10.0, 1.0), (12.0, 1.0 + use_s)):
        actuator.read = CpuUsage(Seconds(seconds), None, at=Seconds(at), grain=Seconds(grain))
        rig.clock.sleep(PERIOD)
        view = controller.view(rig.clock.now())
    assert view is not None
    assert view.used == pytest.approx(use_s / 2)
    return view


def test_cpu_time_is_counted_between_the_instants_at_which_it_was_read(
    controller: CapController, rig: Rig, actuator: LaterActuator
) -> None:
    assert used(controller, rig, actuator, grain=0.0).hottest == pytest.approx(0.015)


def test_what_is_counted_too_coarsely_for_a_small_cap_says_nothing(
    controller: CapController, rig: Rig, actuator: LaterActuator
) -> None:
    assert used(controller, rig, actuator, grain=0.01).hottest is None


@pytest.mark.parametrize(
    ("grain", "use_s", "late"),
    [(0.0, 0.037, False), (0.0, 0.038, True), (0.01, 0.079, False), (0.01, 0.081, True)],
)
def test_a_cap_of_which_far_more_was_used_came_late(
    controller: CapController,
    rig: Rig,
    actuator: LaterActuator,
    *,
    grain: float,
    use_s: float,
    late: bool,
) -> None:
    assert used(controller, rig, actuator, grain=grain, use_s=use_s).late is late


@pytest.mark.parametrize(("before", "late"), [(0.0187, False), (0.0188, True), (0.5, True)])
def test_only_a_cap_that_was_lowered_can_come_late(
    controller: CapController, rig: Rig, actuator: LaterActuator, *, before: float, late: bool
) -> None:
    assert used(controller, rig, actuator, grain=0.0, use_s=0.04, before=before).late is late


def test_a_cap_that_is_in_force_at_once_never_comes_late(rig: Rig) -> None:
    actuator = PromptActuator(rig)
    controller = CapController(SimulatedSpec("r"), lambda _spec, _original: actuator)
    controller.prepare()
    assert not used(controller, rig, actuator, grain=0.0, use_s=0.3).late


def test_without_a_new_look_nothing_is_known_of_the_use(
    controller: CapController, rig: Rig, actuator: LaterActuator
) -> None:
    actuator.read = CpuUsage(Seconds(1.0), None, at=Seconds(10.0))
    for _ in range(2):
        look(controller, rig)
    view = controller.view(rig.clock.now())
    assert view is not None
    assert (view.used, view.hottest) == (None, None)


@pytest.mark.parametrize("missed", [0, 1, 3])
def test_use_over_more_than_a_period_says_nothing_of_the_last(
    controller: CapController, rig: Rig, actuator: LaterActuator, missed: int
) -> None:
    """Packets are of the last period; what was used before it may have been another cap's."""
    controller.set(CapFraction(0.5))
    actuator.carry_out()
    actuator.read = CpuUsage(Seconds(1.0), None, at=Seconds(10.0))
    for _ in range(1 + missed):
        look(controller, rig)
    controller.begin_period()
    actuator.read = CpuUsage(Seconds(2.0), None, at=Seconds(12.0 + 2 * missed))
    view = controller.view(rig.clock.now())
    assert view is not None
    assert (view.used, view.hottest) == ((None, None) if missed else (0.5, 0.5))


def test_a_loop_learns_from_what_was_used_under_a_cap_that_came_late(
    rig: Rig, actuator: LaterActuator
) -> None:
    """100 packets/s with each CPU: at 25 packets/s, a quarter of one, whenever that comes."""
    managed = ManagedRouter(plan("r"), lambda _spec, _original: actuator)
    actuator.read = CpuUsage(Seconds(0.0), None, at=Seconds(0.0))
    managed.activate(Lease(setpoint_pps=PacketsPerSecond(25.0)), rig.clock.now())
    for at, used_s, rate in ((1.0, 1.0, 100.0), (2.0, 1.5, 50.0)):
        rig.clock.sleep(PERIOD)
        actuator.read = CpuUsage(Seconds(used_s), None, at=Seconds(at))
        offered = PacketsPerSecond(1e3)
        reading = Reading(PacketsPerSecond(rate), offered, ("r0",))
        command = managed.step(reading, rig.clock.now(), PERIOD)
        managed.carry_out(command)
        actuator.carry_out()
    assert command.period is not None
    assert command.period.mean == pytest.approx(0.25, rel=0.02)
