"""Promise 6 with hypervisors: `xtc release --all` needs the journal and libvirt, nothing else."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_libvirt import FakeHost
from libvirt_rig import LibvirtRig, plan
from virt_rig import idle_threads, until

from common.clock import Clock
from common.units import Seconds
from xtc.daemon import build as assemble
from xtc.daemon.build import release_all
from xtc.libvirt import pool
from xtc.libvirt.hypervisors import Hypervisors
from xtc.libvirt.mailbox import Mailbox
from xtc.state.journal import Journal

XEN, LXC = "xen:///system", "lxc:///system"
ON_XEN = ["gold", *(f"vr{number}" for number in range(9))]
PATIENCE_S = 4.0
NAMES = dict.fromkeys(ON_XEN, XEN) | {"bronze": LXC}


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LibvirtRig]:
    """What a daemon that was killed left: capped domains of two hypervisors."""
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))
    hosts = {XEN: FakeHost("Xen"), LXC: FakeHost("LXC")}
    rig = LibvirtRig(tmp_path, hosts, {n: plan(n, uri, 20e3) for n, uri in NAMES.items()})
    rig.tick(5)
    assert all(rig.cap(name) is not None for name in NAMES)
    rig.crash()

    def hypervisors(clock: Clock, *, patience: Seconds) -> Hypervisors:
        return Hypervisors(clock, rig.load, patience)

    monkeypatch.setattr(assemble, "Hypervisors", hypervisors)
    yield rig
    for host in hosts.values():
        host.thaw()
    until(Mailbox(rig.clock), lambda: idle_threads() == 0)


def entries(rig: LibvirtRig) -> set[str]:
    with Journal(rig.directory) as journal:
        return set(journal.ledger.entries)


def test_every_cap_and_every_mark_is_undone(left: LibvirtRig) -> None:
    assert release_all(left.directory) == dict.fromkeys(NAMES, "released")
    assert {left.cap(name) for name in NAMES} == {None}
    assert {left.mark(name) for name in NAMES} == {None}
    assert not entries(left)


@pytest.mark.parametrize("how", ["destroy", "restart", "undefine"])
def test_a_domain_that_is_gone_is_released(left: LibvirtRig, how: str) -> None:
    left.guest("gold").persistent = how != "undefine"
    left.hosts[XEN].destroy("gold")
    if how == "restart":
        left.hosts[XEN].start("gold")
    assert release_all(left.directory) == dict.fromkeys(NAMES, "released")
    assert not entries(left)


def test_what_a_dead_libvirtd_keeps_stays_in_the_journal(left: LibvirtRig) -> None:
    left.hosts[XEN].crash()
    outcome = release_all(left.directory)
    assert outcome["bronze"] == "released"
    assert "No such file" in outcome["gold"]
    assert entries(left) == set(ON_XEN)
    left.hosts[XEN].come_back()
    assert set(release_all(left.directory).values()) == {"released"}
    assert left.cap("gold") is None


def test_a_libvirtd_that_hangs_costs_the_patience_once(
    left: LibvirtRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assemble, "RELEASE_S", Seconds(PATIENCE_S))
    left.hosts[XEN].freeze("*", "setSchedulerParametersFlags")
    begun = time.monotonic()
    outcome = release_all(left.directory)
    assert time.monotonic() - begun < 5 * PATIENCE_S, "each would wait as long"
    assert outcome["bronze"] == "released"
    assert "under way" in outcome["gold"]
    assert entries(left) == set(ON_XEN)


def test_a_domain_that_hangs_keeps_no_other_from_its_release(
    left: LibvirtRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assemble, "RELEASE_S", Seconds(PATIENCE_S))
    left.hosts[XEN].freeze("gold", "setSchedulerParametersFlags")
    outcome = release_all(left.directory)
    assert "under way" in outcome.pop("gold")
    assert outcome == dict.fromkeys(NAMES.keys() - {"gold"}, "released")
    assert entries(left) == {"gold"}


def test_hypervisors_that_hang_cost_the_patience_once_together(
    left: LibvirtRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assemble, "RELEASE_S", Seconds(PATIENCE_S))
    for host in left.hosts.values():
        host.freeze("*", "setSchedulerParametersFlags")
    begun = time.monotonic()
    assert "released" not in release_all(left.directory).values()
    assert time.monotonic() - begun < 5 * PATIENCE_S, "each would wait as long"
    assert entries(left) == set(NAMES)
