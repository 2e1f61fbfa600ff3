"""Promise 3: a cap is always within its bounds; "uncapped" is only ever written by release."""

from dataclasses import replace
from pathlib import Path

import pytest
from simulated_rig import FaultyActuator, Rig, plan

from common.units import CapFraction
from xtc.actuator.base import Actuator, CapLimits
from xtc.control.laws import NAMES
from xtc.spec import ActuatorSpec, Original
from xtc.wire import Activate, Deactivate

FLOOR, CEILING = CapFraction(0.05), CapFraction(0.55)


class Recorder(FaultyActuator):
    """Writes down every cap that the plant is given."""

    written: list[float]

    def apply(self, cap: CapFraction) -> CapFraction:
        self.written.append(cap)
        return super().apply(cap)


class RecordedRig(Rig):
    """A rig that writes down what is asked of the plant."""

    def open(self, spec: ActuatorSpec, original: Original | None) -> Actuator:
        super().open(spec, original)
        Recorder.written = self.__dict__.setdefault("written", [])
        return Recorder("a", self.plant.actuator("a"), self.faults)


def rig_of(directory: Path, law: str, quantum: float) -> RecordedRig:
    bounded = replace(plan("a"), law=law, floor=FLOOR, ceiling=CEILING, safe_cap=CapFraction(0.9))
    rig = RecordedRig(directory, {"a": bounded})
    rig.plant.routers["a"].limits = CapLimits(CapFraction(0.01), CapFraction(1.0), quantum)
    return rig


@pytest.mark.parametrize("quantum", [0.0, 0.01])
@pytest.mark.parametrize("law", NAMES)
def test_every_cap_written_is_within_its_bounds(tmp_path: Path, law: str, quantum: float) -> None:
    rig = rig_of(tmp_path, law, quantum)
    for setpoint in (1.0, 500.0, 8.1e3, 95e3, 1e9, 33e3):
        rig.hold("a", setpoint, periods=12)
        for _, managed in rig.manager.falling_caps():
            rig.manager.fall(managed)
    rig.blind = True
    rig.tick(40)
    written = rig.__dict__["written"]
    assert len(written) > 5
    assert min(written) >= FLOOR - 1e-9
    assert max(written) <= CEILING + 1e-9


def test_uncapped_is_written_by_release_alone(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, "default", 0.0)
    rig.hold("a", 20e3)
    for setpoint in (1e9, 2e5):
        rig.ask(Activate("a", setpoint))
        rig.tick(10)
        assert rig.cap("a") == pytest.approx(CEILING)
    rig.ask(Deactivate("a"))
    assert rig.cap("a") is None
