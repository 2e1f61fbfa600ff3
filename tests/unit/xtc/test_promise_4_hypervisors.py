"""Promise 4 with hypervisors: a libvirt that hangs, dies or lies delays no other router."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_guest import FakeLibvirtError
from fake_libvirt import LIMIT_S, FakeHost
from libvirt_rig import LibvirtRig, plan
from virt_rig import until

from xtc.control.instance import DEGRADE_AFTER, HOLD_AFTER, RELEASE_AFTER
from xtc.libvirt import pool
from xtc.modes import Mode
from xtc.wire import Activate, Deactivate, Retune

BAD, GOOD = "qemu:///bad", "qemu:///good"
HUNG = ("gold", "silver")


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LibvirtRig]:
    """Two routers of a hypervisor that will hang, one of another; all are held."""
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))
    hosts = {BAD: FakeHost("QEMU"), GOOD: FakeHost("QEMU")}
    plans = {name: plan(name, BAD, 20e3) for name in HUNG} | {"bronze": plan("bronze", GOOD, 20e3)}
    rig = LibvirtRig(tmp_path, hosts, plans)
    rig.tick(8)
    assert all(rig.holds(name, 20e3) for name in plans)
    rig.longest = 0.0
    yield rig
    rig.end()


def moves_at_once(rig: LibvirtRig, name: str, *, hung: tuple[str, ...] = ()) -> None:
    """Retune a router; its cap must have moved after one tick, and it must be held soon."""
    rig.ask(Retune(name, 60e3))
    before = rig.cap(name)
    rig.tick(1, hung=hung)
    assert rig.cap(name) != before
    rig.tick(7, hung=hung)
    assert rig.holds(name, 60e3)


def modes(rig: LibvirtRig, name: str, periods: int) -> list[Mode]:
    seen = []
    for _ in range(periods):
        rig.tick(1, hung=(BAD,))
        seen.append(rig.report(name).mode)
    return seen


def test_no_tick_ever_calls_a_hypervisor_itself(rig: LibvirtRig) -> None:
    rig.tick(3)
    rig.ask(Deactivate("gold"))
    rig.ask(Activate("gold", 30e3))
    rig.tick(3)
    assert rig.calls_of_this_thread() == []


@pytest.mark.parametrize("call", ["*", "lookupByUUIDString", "info", "setSchedulerParametersFlags"])
def test_a_tick_with_a_hung_libvirt_returns_at_once(rig: LibvirtRig, call: str) -> None:
    rig.hosts[BAD].freeze("*", call)
    rig.tick(40, hung=(BAD,))
    assert rig.calls_of_this_thread() == []
    assert rig.longest < 0.5 * LIMIT_S, "no tick waits for an answer"


def test_the_healthy_router_is_held_meanwhile(rig: LibvirtRig) -> None:
    rig.hosts[BAD].freeze()
    rig.tick(3, hung=(BAD,))
    moves_at_once(rig, "bronze", hung=(BAD,))
    rig.tick(40, hung=(BAD,))
    assert rig.report("bronze").mode is Mode.CLOSED_LOOP
    assert rig.holds("bronze", 60e3)


def test_the_hung_ones_go_down_the_ladder_by_its_times(rig: LibvirtRig) -> None:
    rig.hosts[BAD].freeze()
    seen = modes(rig, "gold", 2 + RELEASE_AFTER + 3)
    blind = 2  # ticks until an answer is missed (STALE_S): from here the ladder counts
    assert seen[: blind + HOLD_AFTER - 1] == [Mode.CLOSED_LOOP] * (blind + HOLD_AFTER - 1)
    assert seen.index(Mode.HOLD) == blind + HOLD_AFTER - 1
    assert seen.index(Mode.DEGRADED) == blind + DEGRADE_AFTER - 1
    assert seen.index(Mode.RELEASED) == blind + RELEASE_AFTER - 1
    assert rig.report("silver").mode is Mode.RELEASED
    assert rig.report("gold").problem
    assert rig.entry("gold") is not None


@pytest.mark.parametrize("periods", [4, 8, 20, 50])
def test_they_come_back_after_the_thaw(rig: LibvirtRig, periods: int) -> None:
    rig.hosts[BAD].freeze()
    rig.tick(periods, hung=(BAD,))
    rig.hosts[BAD].thaw()
    rig.answers()
    rig.tick(12)
    for name in HUNG:
        assert rig.report(name).mode is Mode.CLOSED_LOOP
        assert rig.holds(name, 20e3)
        assert rig.entry(name) == rig.mark(name) == {"vcpu_period": 100_000, "vcpu_quota": -1}
    rig.ask(Deactivate(None))
    assert {rig.cap(name) for name in HUNG} == {None}


@pytest.mark.parametrize("periods", [1, 4, 25, 50])
def test_a_libvirtd_that_is_away_delays_no_other_and_is_found_again(
    rig: LibvirtRig, periods: int
) -> None:
    rig.hosts[BAD].crash()
    caps = [rig.cap(name) for name in HUNG]
    rig.tick(periods, hung=(BAD,))
    assert [rig.cap(name) for name in HUNG] == caps
    assert rig.holds("bronze", 20e3)
    rig.hosts[BAD].come_back()
    rig.answers()
    rig.tick(12)
    assert all(rig.holds(name, 20e3) for name in HUNG)
    assert rig.longest < 0.5 * LIMIT_S, "no tick waits for an answer"


def test_one_domain_that_hangs_delays_no_other_of_its_hypervisor(rig: LibvirtRig) -> None:
    rig.hosts[BAD].freeze("gold")
    uuid, mailbox = rig.guest("silver").uuid, rig.hypervisors._sessions[BAD]._mailbox
    for _ in range(10):
        rig.tick(1, hung=(BAD,))
        until(mailbox, lambda: uuid not in mailbox._asked)
    assert rig.report("gold").mode is not Mode.CLOSED_LOOP
    assert rig.report("silver").mode is Mode.CLOSED_LOOP


@pytest.mark.parametrize("code", [1, 3, 8, 29, 38, 42, 55, 84])
@pytest.mark.parametrize("call", ["info", "setSchedulerParametersFlags"])
def test_a_domain_that_fails_delays_no_other(rig: LibvirtRig, call: str, code: int) -> None:
    rig.hosts[BAD].fail("gold", call, error=FakeLibvirtError(code, "on purpose"))
    rig.ask(Retune("gold", 60e3))
    rig.tick(3)
    moves_at_once(rig, "silver")
    rig.hosts[BAD].thaw()
    rig.tick(40)
    assert rig.holds("gold", 60e3)


def test_a_hypervisor_that_lies_is_told_and_tried_less_and_less(rig: LibvirtRig) -> None:
    rig.hosts[BAD].fail("gold", "setSchedulerParametersFlags", lie={})
    rig.ask(Retune("gold", 60e3))
    rig.hosts[BAD].calls.clear()
    rig.tick(100)
    assert rig.hosts[BAD].made("setSchedulerParametersFlags", "gold") < 12
    assert "read back" in rig.report("gold").problem
    moves_at_once(rig, "silver")


def test_to_release_many_that_hang_costs_the_patience_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))
    names = [f"vr{number}" for number in range(30)]
    plans = {name: plan(name, BAD, 20e3) for name in names}
    rig = LibvirtRig(tmp_path, {BAD: FakeHost("QEMU")}, plans, patience=1.0)
    try:
        rig.tick(8)
        rig.hosts[BAD].freeze()
        begun = time.monotonic()
        refusal = rig.refused(Deactivate(None))
        took = time.monotonic() - begun
        assert refusal.code == "not_released"
        assert took < 15.0, "30 times the patience would be 30 s"
        rig.hosts[BAD].thaw()
        rig.answers()
        rig.tick(4)
        assert {rig.cap(name) for name in names} == {None}
        assert not rig.journal.ledger.entries
    finally:
        rig.end()
