"""What a bench puts back is what the journal holds, though it changed before the first cap."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from manager_rig import PAPER, PERIOD
from simulated_rig import Faults, FaultyActuator, plan

from common.clock import FakeClock
from common.units import CapFraction
from training.sweep.bench import Bench
from training.sweep.watch import Stop, Watch
from xtc.actuator.base import Actuator
from xtc.errors import Overtaken
from xtc.libvirt.hypervisors import Hypervisors
from xtc.simulation.host import SimulatedHost
from xtc.spec import ActuatorSpec, Original, SimulatedOriginal, SimulatedSpec
from xtc.state.journal import Journal

FOUND, CHANGED, OURS = CapFraction(0.7), CapFraction(0.5), CapFraction(0.2)


class Scene:
    """A bench over a simulated router, whose operator may change its cap."""

    def __init__(self, directory: Path) -> None:
        self.host, self.faults, self.clock = SimulatedHost(), Faults(), FakeClock(100.0)
        self.router = self.host.add("a", PAPER)
        self.router.cap = FOUND
        self.journal, self._plan = Journal(directory), plan("a")
        self._hypervisors = Hypervisors(self.clock)

    def bench(self) -> Bench:
        watch = Watch(
            self._plan,
            clock=self.clock,
            source=self.host,
            period=PERIOD,
            hypervisors=self._hypervisors,
            stop=Stop(),
        )
        return Bench(
            self._plan,
            watch=watch,
            journal=self.journal,
            open_actuator=self._open,
            hypervisors=self._hypervisors,
        )

    def _open(self, spec: ActuatorSpec, _original: Original | None) -> Actuator:
        assert isinstance(spec, SimulatedSpec)
        return FaultyActuator(spec.plant, self.host.actuator(spec.plant), self.faults)

    @property
    def originals(self) -> list[Original]:
        return [entry.original for entry in self.journal.ledger.entries.values()]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    with scene.journal:
        yield scene


def test_what_changed_before_the_first_cap_is_durable_before_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable: list[list[Original]] = []
    check = scene.faults.check

    def checked(router: str, call: str) -> None:
        if call == "apply":
            durable.append(scene.originals)
        check(router, call)

    monkeypatch.setattr(scene.faults, "check", checked)
    with scene.bench() as bench:
        scene.router.cap = CHANGED
        bench.cap(OURS)
        assert (scene.router.cap, durable) == (OURS, [[SimulatedOriginal(CHANGED)]])
    assert (scene.router.cap, scene.originals) == (CHANGED, [])


def test_a_cap_that_was_overtaken_is_given_again(scene: Scene) -> None:
    with scene.bench() as bench:
        bench.cap(OURS)
        scene.router.cap = CHANGED
        scene.faults.errors["a", "settle"] = Overtaken("a", "the cap was changed just now")
        with pytest.raises(Overtaken):
            bench.sample()
        scene.faults.errors.clear()
        bench.cap(OURS)
        assert (scene.router.cap, scene.originals) == (OURS, [SimulatedOriginal(CHANGED)])
    assert scene.router.cap == CHANGED


def test_a_cap_given_while_nothing_changed_is_no_other_write(scene: Scene) -> None:
    with scene.bench() as bench:
        written = (scene.journal._directory / "journal").stat().st_mtime_ns
        bench.cap(OURS)
        bench.sample()
        assert (scene.journal._directory / "journal").stat().st_mtime_ns == written
