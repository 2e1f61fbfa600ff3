"""Promise 1: no cap is written that could not be undone: the previous value is durable first."""

import os
import random
import time
from pathlib import Path

import pytest
from simulated_rig import FaultyActuator, Rig, plan
from slow_disk import WriterRig

from common.units import CapFraction
from xtc.actuator.base import Actuator
from xtc.spec import ActuatorSpec, Original, SimulatedOriginal, SimulatedSpec
from xtc.state import journal as journal_module
from xtc.state.journal import Entry, _decode
from xtc.wire import Activate, Deactivate

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


class WatchedRig(WriterRig):
    """A rig with a writer thread that looks at every journal as it takes its place."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.lost: list[str] = []
        self._replace = os.replace
        patch.setattr(os, "replace", self._replaced)
        super().__init__(directory, {name: plan(name) for name in "ab"})
        for name in "ab":
            self.plant.routers[name].cap = CapFraction(0.7)

    def _replaced(self, source: str, target: str, **where: int) -> None:
        time.sleep(random.uniform(0.0, 0.002))  # let the loop run into it
        self._replace(source, target, **where)
        entries = self.on_disk().entries
        for name in "ab":
            if self.cap(name) not in {None, 0.7} and name not in entries:
                self.lost.append(name)


@pytest.mark.parametrize("seed", range(5))
def test_no_journal_that_is_ever_on_the_disk_lacks_a_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """So that kill -9 loses none, whatever the writer and the loop are at."""
    chance = random.Random(seed)
    rig = WatchedRig(tmp_path, monkeypatch)
    rig.tick()
    for sequence in range(60):
        name = chance.choice("ab")
        if chance.random() < 0.4:
            rig.ask(Deactivate(name))
        else:
            rig.ask(Activate(name, chance.uniform(1e4, 6e4), sequence=sequence))
        rig.tick(chance.randrange(3))
        assert all(rig.cap(name) == 0.7 or name in rig.on_disk().entries for name in "ab")
    rig.crash()
    assert rig.lost == []
