"""Promise 1 with hypervisors: the original is durable, and marked, before the first set."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_guest import Driver, Guest
from fake_libvirt import FakeHost
from libvirt_rig import LibvirtRig, plan

from common.clock import MonotonicClock
from common.units import Seconds
from xtc.libvirt import pool
from xtc.libvirt.hypervisors import Hypervisors
from xtc.libvirt.metadata import URI, original_of
from xtc.spec import LibvirtOriginal, LibvirtSpec
from xtc.state import journal as journal_module
from xtc.state.journal import Entry, _decode
from xtc.wire import Activate, Retune

URI_OF = "test:///default"
STANDING: dict[Driver, dict[str, int]] = {
    "Xen": {"cap": 70},
    "QEMU": {"vcpu_period": 100_000, "vcpu_quota": 70_000},
    "LXC": {"vcpu_period": 50_000, "vcpu_quota": 35_000},
}


class InspectedRig(LibvirtRig):
    """A rig that looks on the disk and into the metadata, right before each set takes effect."""

    def __init__(self, directory: Path, driver: Driver) -> None:
        host = FakeHost(driver)
        self.before = STANDING[driver]
        host.add("gold").parameters |= self.before
        host.at_set = self.inspect
        self.sets = 0
        self.missing: list[str] = []
        super().__init__(directory, {URI_OF: host}, {"gold": plan("gold", URI_OF)})

    def inspect(self, guest: Guest) -> None:
        self.sets += 1
        path = self.directory / "journal"
        on_disk = _decode(path.read_bytes()).entries if path.exists() else {}
        original = LibvirtOriginal(guest.uuid, guest.domid, STANDING[guest.driver])
        if on_disk.get("gold") != Entry(LibvirtSpec("gold", URI_OF), original):
            self.missing.append(f"set {self.sets}: not in the journal")
        if original_of(guest.metadata.get(URI, "")) != original.parameters:
            self.missing.append(f"set {self.sets}: not marked")


@pytest.fixture(params=["Xen", "QEMU", "LXC"])
def rig(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InspectedRig]:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))
    rig = InspectedRig(tmp_path, request.param)
    yield rig
    rig.end()


def test_the_original_is_on_the_disk_and_marked_at_every_set(rig: InspectedRig) -> None:
    rig.ask(Activate("gold", 20e3))
    rig.tick(5)
    rig.restart()
    rig.tick(1)
    rig.ask(Retune("gold", 40e3))
    rig.tick(5)
    assert rig.sets > 3
    assert rig.missing == []


@pytest.mark.parametrize("step", ["_write_durably", "_sync_directory"])
def test_what_cannot_be_made_durable_is_not_capped(
    rig: InspectedRig, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(journal_module, step, full)
        rig.ask(Activate("gold", 20e3))
        rig.tick(5)
        assert rig.sets == 0
        assert rig.mark("gold") is None
        assert rig.manager.journal_problem
    rig.tick(3)
    assert rig.sets > 0
    assert rig.missing == []


@pytest.mark.parametrize("ticks", range(5))
def test_a_crash_after_any_tick_can_be_undone_from_the_journal(
    rig: InspectedRig, ticks: int
) -> None:
    rig.tick(1)
    rig.ask(Activate("gold", 20e3))
    rig.tick(ticks)
    rig.crash()
    hypervisors = Hypervisors(MonotonicClock(), rig.load, patience=Seconds(30.0))
    entries = _decode((rig.directory / "journal").read_bytes()).entries
    hypervisors.use(entry.spec for entry in entries.values())
    hypervisors.settle(Seconds(30.0))
    for entry in entries.values():
        assert isinstance(entry.spec, LibvirtSpec)
        assert isinstance(entry.original, LibvirtOriginal)
        hypervisors.open(entry.spec, entry.original).restore(entry.original)
    hypervisors.close()
    assert rig.guest("gold").parameters.items() >= STANDING[rig.guest("gold").driver].items()
    assert rig.mark("gold") is None
