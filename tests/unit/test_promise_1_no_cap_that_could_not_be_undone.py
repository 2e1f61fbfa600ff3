"""Promise 1: no cap is written that could not be undone: the previous value is durable first."""

from pathlib import Path

import pytest
from simulated_rig import FaultyActuator, Rig, plan

from xtc import journal as journal_module
from xtc.actuator.base import Actuator
from xtc.actuator.spec import ActuatorSpec, Original, SimulatedOriginal, SimulatedSpec
from xtc.journal import Entry, _decode
from xtc.units import CapFraction
from xtc.wire import Activate

BEFORE = SimulatedOriginal(0.7)


class Inspector(FaultyActuator):
    """Looks on the disk, at each write of a cap, for the value that stood there before."""

    path: Path
    writes = 0

    def apply(self, cap: CapFraction) -> CapFraction:
        on_disk = _decode(self.path.read_bytes())
        assert on_disk.entries["a"] == Entry(SimulatedSpec("a"), BEFORE)
        type(self).writes += 1
        return super().apply(cap)


class InspectedRig(Rig):
    """A rig whose every cap is inspected."""

    def open(self, spec: ActuatorSpec, original: Original | None) -> Actuator:
        super().open(spec, original)
        Inspector.path = self.directory / "journal"
        return Inspector("a", self.plant.actuator("a"), self.faults)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = InspectedRig(tmp_path, {"a": plan("a")})
    rig.plant.routers["a"].cap = CapFraction(0.7)
    return rig


def test_the_original_is_on_the_disk_at_every_write(rig: Rig) -> None:
    Inspector.writes = 0
    rig.hold("a", 20e3)
    rig.restart()
    rig.hold("a", 40e3)
    assert Inspector.writes > 3


@pytest.mark.parametrize("step", ["_write_durably", "_sync_directory"])
def test_what_cannot_be_made_durable_is_not_capped(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(journal_module, step, full)
        rig.hold("a", 20e3)
        assert rig.cap("a") == 0.7
        assert rig.manager.journal_problem
    rig.tick(2)
    assert rig.cap("a") != 0.7


@pytest.mark.parametrize("ticks", range(6))
def test_a_crash_after_any_tick_can_be_undone_from_the_journal(rig: Rig, ticks: int) -> None:
    rig.tick(1)
    rig.ask(Activate("a", 20e3))
    rig.tick(ticks)
    rig.crash()
    for entry in _decode((rig.directory / "journal").read_bytes()).entries.values():
        rig.plant.actuator("a").restore(entry.original)
    assert rig.cap("a") == 0.7
