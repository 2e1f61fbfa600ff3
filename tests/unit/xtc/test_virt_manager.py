"""A manager over hypervisors: whose cap it is, restarts of domains and daemons, and migration."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_guest import Driver
from fake_libvirt import FakeHost
from libvirt_rig import LibvirtRig, plan

from common.units import Seconds
from xtc.libvirt import pool
from xtc.manager.cap import MAX_CONFLICTS
from xtc.modes import Finding, Mode
from xtc.spec import LibvirtOriginal
from xtc.wire import Activate, Deactivate, Pause, Resume

HERE, THERE = "qemu:///here", "qemu:///there"
FREE = {"vcpu_period": 100_000, "vcpu_quota": -1}
OWN = {"vcpu_period": 100_000, "vcpu_quota": 50_000}


class Scene(LibvirtRig):
    """One domain, gold, of a hypervisor, and an empty second one to go to."""

    def __init__(self, directory: Path, driver: Driver, setpoint: float | None) -> None:
        hosts = {HERE: FakeHost(driver), THERE: FakeHost(driver)}
        super().__init__(directory, hosts, {"gold": plan("gold", HERE, setpoint)})

    def meddle(self, quota: int) -> None:
        """Change the cap behind xtc's back."""
        self.guest("gold").parameters["vcpu_quota"] = quota


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))


@pytest.fixture(params=["Xen", "QEMU", "LXC"])
def any_rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    rig = Scene(tmp_path, request.param, 20e3)
    rig.tick(8)
    yield rig
    rig.end()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Scene]:
    rig = Scene(tmp_path, "QEMU", 20e3)
    rig.tick(8)
    yield rig
    rig.end()


@pytest.fixture
def unheld(tmp_path: Path) -> Iterator[Scene]:
    rig = Scene(tmp_path, "QEMU", None)
    rig.tick(2)
    yield rig
    rig.end()


def test_a_domain_is_held_and_released(any_rig: Scene) -> None:
    assert any_rig.report("gold").mode is Mode.CLOSED_LOOP
    assert any_rig.host("gold").driver == "Xen" or any_rig.holds("gold", 20e3)
    assert any_rig.mark("gold") == any_rig.entry("gold")
    any_rig.ask(Deactivate("gold"))
    assert any_rig.cap("gold") is None
    assert any_rig.mark("gold") is None
    assert any_rig.entry("gold") is None


def test_xen_alternates_between_whole_percents(tmp_path: Path) -> None:
    rig = Scene(tmp_path, "Xen", 20e3)
    try:
        rig.tick(8)
        [(slot, managed)] = rig.manager.falling_caps()
        _, low = managed.low_part() or (0, 0.0)
        high = rig.cap("gold")
        assert high is not None
        rig.manager.fall(managed)
        rig.answers()
        assert rig.cap("gold") == low < high
        assert 0 < slot < 10
        rig.tick(1)
        assert rig.report("gold").problem == ""
        assert not managed.controller.yielded
    finally:
        rig.end()


# Ownership.


def test_two_foreign_changes_are_corrected_the_third_is_yielded_to(rig: Scene) -> None:
    for _ in range(MAX_CONFLICTS - 1):
        rig.meddle(9_000)
        rig.tick(4)
        assert rig.holds("gold", 20e3)
        assert rig.report("gold").mode is Mode.CLOSED_LOOP
    rig.meddle(9_000)
    rig.tick(4)
    stands = dict(rig.guest("gold").parameters)
    rig.tick(20)
    assert rig.guest("gold").parameters == stands
    report = rig.report("gold")
    assert (report.mode, report.finding) == (Mode.MANUAL, Finding.FOREIGN)
    assert "another process" in report.problem


def test_a_change_right_before_the_first_cap_is_the_original(unheld: Scene) -> None:
    meddled = {"vcpu_period": 100_000, "vcpu_quota": 59_000}
    unheld.meddle(59_000)
    unheld.tick(1)
    unheld.meddle(-1)  # xtc has not looked since
    unheld.ask(Activate("gold", 20e3))
    assert unheld.manager.routers["gold"].controller.original.parameters == meddled
    unheld.tick(8)
    assert unheld.holds("gold", 20e3)
    assert unheld.report("gold").problem == ""
    assert unheld.entry("gold") == unheld.mark("gold") == FREE
    unheld.ask(Deactivate("gold"))
    assert unheld.cap("gold") is None


def test_an_operator_who_resumes_has_it_held_again(rig: Scene) -> None:
    for _ in range(MAX_CONFLICTS):
        rig.meddle(9_000)
        rig.tick(2)
    assert rig.manager.routers["gold"].controller.yielded
    rig.ask(Resume("gold"))
    rig.tick(6)
    assert rig.holds("gold", 20e3)


def test_our_own_caps_are_no_foreign_changes(rig: Scene) -> None:
    for setpoint in (30e3, 60e3, 10e3, 50e3, 20e3, 40e3):
        rig.ask(Activate("gold", setpoint))
        rig.tick(2)
    rig.tick(4)
    assert rig.manager.routers["gold"].controller._conflicts == []
    assert rig.holds("gold", 40e3)


def test_a_pause_leaves_the_cap_and_asks_on(rig: Scene) -> None:
    rig.ask(Pause("gold"))
    cap = rig.cap("gold")
    rig.tick(5)
    assert rig.cap("gold") == cap
    assert rig.report("gold").used is not None


# Another run of the domain.


@pytest.mark.parametrize("silent", [False, True])
def test_a_restarted_domain_is_captured_anew_and_held(any_rig: Scene, silent: bool) -> None:
    any_rig.host("gold").silent = silent
    any_rig.host("gold").restart("gold")
    domid = any_rig.guest("gold").domid
    any_rig.tick(1)
    assert any_rig.report("gold").finding is Finding.GONE
    assert any_rig.entry("gold") is None
    any_rig.tick(8)
    assert any_rig.report("gold").mode is Mode.CLOSED_LOOP
    assert any_rig.cap("gold") is not None
    assert any_rig.guest("gold").domid == domid
    assert any_rig.entry("gold") == any_rig.mark("gold")


def test_what_the_new_run_has_of_its_own_is_its_original(rig: Scene) -> None:
    rig.host("gold").restart("gold")
    rig.guest("gold").parameters |= OWN
    rig.tick(8)
    assert rig.entry("gold") == OWN
    rig.ask(Deactivate("gold"))
    assert rig.guest("gold").parameters.items() >= OWN.items()


def test_a_stopped_domain_is_waited_for(any_rig: Scene) -> None:
    any_rig.host("gold").destroy("gold")
    any_rig.tick(5)
    assert any_rig.report("gold").finding is Finding.GONE
    assert any_rig.entry("gold") is None
    assert any_rig.host("gold").up
    any_rig.host("gold").start("gold")
    any_rig.tick(8)
    assert any_rig.report("gold").mode is Mode.CLOSED_LOOP
    assert any_rig.cap("gold") is not None


def test_another_domain_under_its_name_is_another_router(any_rig: Scene) -> None:
    host = any_rig.host("gold")
    host.destroy("gold")
    del host.guests["gold"]
    host.add("gold").uuid = "00000000-0000-4000-8000-000000000002"
    any_rig.tick(8)
    assert any_rig.cap("gold") is not None
    assert any_rig.entry("gold") == any_rig.mark("gold")
    entry = any_rig.journal.ledger.entries["gold"].original
    assert isinstance(entry, LibvirtOriginal)
    assert entry.uuid == any_rig.guest("gold").uuid


# A release that is confirmed later.


def test_a_router_that_is_held_again_while_it_is_released_is_nobody_elses(rig: Scene) -> None:
    rig.be_impatient()
    for _ in range(MAX_CONFLICTS + 1):
        rig.host("gold").freeze("gold", "setSchedulerParametersFlags")
        assert rig.refused(Deactivate("gold")).code == "not_released"
        rig.ask(Activate("gold", 20e3))
        rig.host("gold").thaw()
        rig.answers()
        rig.tick(6)
        assert rig.holds("gold", 20e3)
        assert rig.report("gold").problem == ""
    assert rig.manager.routers["gold"].controller._conflicts == []
    assert rig.entry("gold") == rig.mark("gold") == FREE


def test_a_release_that_is_under_way_is_confirmed_by_itself(rig: Scene) -> None:
    rig.be_impatient()
    rig.host("gold").freeze("gold", "setSchedulerParametersFlags")
    assert "under way" in rig.refused(Deactivate("gold")).problem
    rig.host("gold").thaw()
    rig.answers()
    rig.tick(3)
    assert rig.cap("gold") is rig.mark("gold") is rig.entry("gold") is None
    assert rig.report("gold").problem == ""


def test_a_leftover_of_a_slow_hypervisor_is_confirmed_later(rig: Scene) -> None:
    rig.crash()
    rig.plans, rig.patience = {}, Seconds(0.0)
    rig.host("gold").calls.clear()
    rig.host("gold").freeze("gold", "setSchedulerParametersFlags")
    rig.start()
    assert "under way" in rig.troubles[0]
    rig.host("gold").thaw()
    rig.answers()
    rig.tick(4)
    assert rig.cap("gold") is rig.mark("gold") is None
    assert not rig.journal.ledger.entries
    assert rig.host("gold").made("setSchedulerParametersFlags") <= 1


# Another daemon.


def test_a_new_daemon_adopts_the_cap(any_rig: Scene) -> None:
    cap, entry = any_rig.cap("gold"), any_rig.entry("gold")
    any_rig.restart()
    assert any_rig.troubles == []
    assert any_rig.cap("gold") == cap
    any_rig.tick(5)
    assert any_rig.entry("gold") == any_rig.mark("gold") == entry
    any_rig.ask(Deactivate("gold"))
    assert any_rig.cap("gold") is None


def test_a_new_daemon_does_not_take_an_earlier_runs_original_for_this_ones(rig: Scene) -> None:
    rig.crash()
    rig.host("gold").restart("gold")
    rig.guest("gold").parameters |= OWN
    rig.start()
    rig.tick(8)
    assert rig.entry("gold") == rig.mark("gold") == OWN
    rig.ask(Deactivate("gold"))
    assert rig.guest("gold").parameters.items() >= OWN.items()


def test_a_new_daemon_without_a_journal_adopts_by_the_mark(rig: Scene) -> None:
    rig.crash()
    (rig.directory / "journal").unlink()
    rig.start()
    rig.tick(5)
    assert rig.entry("gold") == FREE
    rig.ask(Deactivate("gold"))
    assert rig.cap("gold") is None


def test_a_new_daemon_that_does_not_hold_it_any_more_releases_it(rig: Scene) -> None:
    rig.crash()
    rig.plans = {"gold": plan("gold", HERE)}
    rig.start()
    rig.tick(2)
    assert rig.cap("gold") is rig.mark("gold") is rig.entry("gold") is None


def test_a_new_daemon_that_does_not_know_it_any_more_releases_it(rig: Scene) -> None:
    rig.crash()
    rig.plans = {}
    rig.start()
    rig.tick(2)
    assert rig.cap("gold") is rig.mark("gold") is rig.entry("gold") is None


def test_a_new_daemon_while_libvirtd_is_away_adopts_later(rig: Scene) -> None:
    cap = rig.cap("gold")
    rig.crash()
    rig.host("gold").crash()
    rig.start()
    rig.tick(3, hung=(HERE,))
    assert rig.entry("gold") == FREE
    rig.host("gold").come_back()
    rig.answers()
    rig.tick(1)
    assert rig.cap("gold") == cap
    rig.tick(6)
    assert rig.holds("gold", 20e3)
    assert rig.entry("gold") == FREE


def test_a_new_daemon_drops_the_original_of_another_domain_of_that_name(rig: Scene) -> None:
    rig.crash()
    host = rig.host("gold")
    host.destroy("gold")
    host.guests["gold"].uuid = "00000000-0000-4000-8000-000000000001"
    host.start("gold")
    host.guests["gold"].parameters |= OWN
    rig.start()
    rig.tick(8)
    assert rig.entry("gold") == OWN


# Migration.


@pytest.fixture
def arrived(unheld: Scene) -> Scene:
    """A domain that comes from a host whose xtc capped it, to one where nobody holds it yet."""
    there = unheld.hosts[THERE]
    unheld.host("gold").destroy("gold")
    del unheld.host("gold").guests["gold"]
    guest = there.add("gold")
    guest.parameters |= {"vcpu_period": 10_000, "vcpu_quota": 2000}
    guest.metadata["urn:xtc:original:1"] = (
        f'<original vcpu_period="{OWN["vcpu_period"]}" vcpu_quota="{OWN["vcpu_quota"]}"/>'
    )
    there.migrate("gold", unheld.hosts[HERE])
    unheld.answers()
    return unheld


def test_a_domain_that_came_capped_is_adopted_with_its_true_original(arrived: Scene) -> None:
    arrived.ask(Activate("gold", 20e3))
    arrived.tick(8)
    assert arrived.holds("gold", 20e3)
    assert arrived.entry("gold") == arrived.mark("gold") == OWN
    arrived.ask(Deactivate("gold"))
    assert arrived.guest("gold").parameters.items() >= OWN.items()
    assert arrived.mark("gold") is None


def test_a_domain_that_came_capped_and_is_not_held_here_is_released(arrived: Scene) -> None:
    arrived.tick(3)
    assert arrived.guest("gold").parameters.items() >= OWN.items()
    assert arrived.mark("gold") is arrived.entry("gold") is None


def test_a_domain_that_left_takes_cap_and_mark_along_and_is_forgotten_here(rig: Scene) -> None:
    cap = rig.cap("gold")
    new = rig.host("gold").migrate("gold", rig.hosts[THERE])
    rig.tick(3)
    assert rig.report("gold").finding is Finding.GONE
    assert rig.entry("gold") is None
    assert new.parameters["vcpu_quota"] / new.parameters["vcpu_period"] == pytest.approx(cap)
    assert new.metadata


def test_there_and_back_it_is_held_with_its_first_original(rig: Scene) -> None:
    rig.host("gold").migrate("gold", rig.hosts[THERE])
    rig.tick(3)
    rig.hosts[THERE].migrate("gold", rig.hosts[HERE])
    rig.answers()
    rig.tick(8)
    assert rig.holds("gold", 20e3)
    assert rig.entry("gold") == FREE
    rig.ask(Deactivate("gold"))
    assert rig.cap("gold") is None


def test_usage_shows_when_the_cap_binds(rig: Scene) -> None:
    rig.tick(2)
    report = rig.report("gold")
    assert report.used == pytest.approx(report.cap, abs=0.011)  # counted in ticks of 10 ms
    assert report.binding
