"""What a bench puts back is what the journal holds, though it changed before the first cap."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from manager_rig import PAPER, PERIOD, planned
from msgspec.structs import replace
from simulated_rig import Faults, FaultyActuator

from common.clock import FakeClock
from common.units import CapFraction
from training.sweep.bench import Bench, OwnPart
from training.sweep.watch import Stop, Watch
from xtc.actuator.base import Actuator
from xtc.errors import Overtaken
from xtc.libvirt.hypervisors import Hypervisors
from xtc.simulation.host import SimulatedHost
from xtc.spec import (
    ActuatorSpec,
    CgroupSpec,
    DeadlineOriginal,
    DeadlineSpec,
    LibvirtOriginal,
    LibvirtSpec,
    Original,
    SimulatedOriginal,
    SimulatedSpec,
)
from xtc.state.journal import Entry, Journal

UUID = "6f2a1c9e-0000-4000-8000-00000000000a"
FOUND, CHANGED, OURS = CapFraction(0.7), CapFraction(0.5), CapFraction(0.2)


class Scene:
    """A bench over a simulated router, whose operator may change its cap."""

    def __init__(self, directory: Path, spec: ActuatorSpec | None = None) -> None:
        self.host, self.faults, self.clock = SimulatedHost(), Faults(), FakeClock(100.0)
        self.router = self.host.add("a", PAPER)
        self.router.cap = FOUND
        self.journal, self._plan = Journal(directory), planned("a", spec or SimulatedSpec("a"))
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

    def _open(self, _spec: ActuatorSpec, _original: Original | None) -> Actuator:
        return FaultyActuator("a", self.host.actuator("a"), self.faults)

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


def test_a_cap_that_was_left_under_another_name_of_the_place_is_no_original(tmp_path: Path) -> None:
    """As where a daemon was killed, and its configuration changed before the sweep."""
    group, link = tmp_path / "group", tmp_path / "link"
    group.mkdir()
    link.symlink_to(group)
    scene = Scene(tmp_path / "state", CgroupSpec(str(link)))
    left = Entry(CgroupSpec(str(group)), SimulatedOriginal(FOUND))
    with scene.journal as journal:
        journal.store(replace(journal.ledger, entries={"before": left}))
        scene.router.cap = OURS
        with scene.bench():
            assert (scene.router.cap, scene.originals) == (FOUND, [SimulatedOriginal(FOUND)])
        assert (scene.router.cap, scene.originals) == (FOUND, [])


@pytest.mark.parametrize(
    ("spec", "left", "original"),
    [
        (
            DeadlineSpec("/proc/self/ns/net", ("r0",), 2000),
            DeadlineSpec("/proc/self/ns/net", ("r0",), 1000),
            DeadlineOriginal(()),
        ),
        (
            LibvirtSpec(UUID, "qemu:///system"),
            LibvirtSpec("gold", "qemu:///system"),
            LibvirtOriginal(UUID, 3, {"vcpu_quota": -1}),
        ),
    ],
)
def test_a_part_of_a_journal_is_of_a_place_in_any_notation(
    tmp_path: Path, spec: ActuatorSpec, left: ActuatorSpec, original: Original
) -> None:
    other = Entry(SimulatedSpec("b"), SimulatedOriginal(None))
    with Journal(tmp_path) as whole:
        whole.store(replace(whole.ledger, entries={"a": Entry(left, original), "b": other}))
        part = OwnPart(whole, spec)
        assert set(part.ledger.entries) == {"a"}
        part.store(replace(part.ledger, entries={}))
        assert whole.ledger.entries == {"b": other}
