"""Promise 4 within one hypervisor: domains that hang or are slow cost the others nothing."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_guest import FakeLibvirtError
from fake_libvirt import FakeHost
from libvirt_rig import LibvirtRig, plan
from virt_rig import idle_threads, until

from xtc.libvirt import pool
from xtc.libvirt.mailbox import SLOW_AT_ONCE, WORKERS, Mailbox
from xtc.libvirt.quarantine import BACKOFF_S
from xtc.libvirt.session import CALL_DEADLINE_S
from xtc.modes import Mode
from xtc.wire import Deactivate, Retune

URI, SET = "qemu:///system", "setSchedulerParametersFlags"
MOST = 20
NAMES = [f"vr{number}" for number in range(MOST)]
HEALTHY = "healthy"


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LibvirtRig]:
    """Many routers of one hypervisor, all held; the last of them stays healthy."""
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))
    plans = {name: plan(name, URI, 20e3) for name in (*NAMES, HEALTHY)}
    rig = LibvirtRig(tmp_path, {URI: FakeHost("QEMU")}, plans)
    rig.tick(8)
    assert all(rig.holds(name, 20e3) for name in plans)
    rig.partly = (URI,)
    yield rig
    rig.end()


def mailbox(rig: LibvirtRig) -> Mailbox:
    return rig.hypervisors._sessions[URI]._mailbox


def hang(rig: LibvirtRig, call: str, names: list[str]) -> None:
    """Have a call hang for some domains, each of which has an order to be carried out."""
    for name in names:
        rig.hosts[URI].freeze(name, call)
        rig.ask(Retune(name, 40e3))


def thaw(rig: LibvirtRig) -> None:
    rig.hosts[URI].thaw()
    until(mailbox(rig), lambda: not mailbox(rig)._lost)
    rig.partly = ()
    rig.answers()


@pytest.mark.parametrize("call", [SET, "info"])
@pytest.mark.parametrize("hanging", [1, WORKERS, WORKERS + 1, MOST])
def test_however_many_hang_the_healthy_one_is_held_and_obeys(
    rig: LibvirtRig, call: str, hanging: int
) -> None:
    hang(rig, call, NAMES[:hanging])
    rig.ask(Retune(HEALTHY, 60e3))
    before, seen = rig.cap(HEALTHY), []
    rig.tick(2)
    assert rig.cap(HEALTHY) != before
    for _ in range(3 * int(CALL_DEADLINE_S)):
        rig.tick(1)
        seen.append(rig.report(HEALTHY).mode)
    assert set(seen) == {Mode.CLOSED_LOOP}
    assert rig.holds(HEALTHY, 60e3)
    before = rig.cap(HEALTHY)
    rig.ask(Retune(HEALTHY, 10e3))
    rig.tick(2)
    assert rig.cap(HEALTHY) != before


@pytest.mark.parametrize("call", [SET, "info", "lookupByUUIDString"])
def test_while_all_hang_nothing_piles_up_and_all_come_back(rig: LibvirtRig, call: str) -> None:
    every = [*NAMES, HEALTHY]
    rig.hosts[URI].freeze("*", call)
    for name in every:
        rig.ask(Retune(name, 40e3))
    for _ in range(20):
        rig.tick(10)
        assert idle_threads() <= 1 + WORKERS + len(every)
    for name in every:
        assert rig.report(name).mode is not Mode.CLOSED_LOOP
    thaw(rig)
    rig.tick(34)
    for name in every:
        assert rig.report(name).mode is Mode.CLOSED_LOOP
        assert rig.holds(name, 40e3)
    until(mailbox(rig), lambda: idle_threads() == 1 + WORKERS)


def test_a_domain_that_hangs_is_called_once(rig: LibvirtRig) -> None:
    hang(rig, "info", ["vr0"])
    rig.tick(1)
    made = rig.hosts[URI].made("info", "vr0")
    rig.tick(100)
    assert rig.hosts[URI].made("info", "vr0") == made
    assert [state.given_up for state in rig.hypervisors.states()] == [1]
    assert "hang" in rig.report("vr0").problem


def test_a_domain_whose_calls_fail_after_a_hang_is_tried_less_and_less(rig: LibvirtRig) -> None:
    timed_out = FakeLibvirtError(68, "cannot acquire state change lock")
    for rest in (0.0, *BACKOFF_S):
        # The call that hangs fails, and the next will hang.
        rig.hosts[URI].fail("vr0", "info", error=timed_out, thawed=threading.Event())
        until(mailbox(rig), lambda: not mailbox(rig)._lost)
        assert rest <= periods_until_it_hangs(rig) <= rest + 2
        rig.tick(int(CALL_DEADLINE_S) + 2)
    rig.hosts[URI].thaw()
    until(mailbox(rig), lambda: not mailbox(rig)._lost)
    rig.tick(int(BACKOFF_S[-1]) + 36)
    assert rig.report("vr0").mode is Mode.CLOSED_LOOP


def periods_until_it_hangs(rig: LibvirtRig) -> int:
    for period in range(100):
        if rig.hosts[URI].hanging:
            return period
        rig.tick(1)
    raise AssertionError("it was not tried again")


def test_a_slow_domain_has_no_other_asked_earlier(rig: LibvirtRig) -> None:
    before = rig.hypervisors.lead
    rig.hosts[URI].freeze("vr0", "info")
    rig.tick(3)
    thaw(rig)
    assert rig.hypervisors.lead == before


def test_slow_domains_take_few_hands(rig: LibvirtRig) -> None:
    """They answer before they are given up, and are known to be slow from then on."""
    host = rig.hosts[URI]
    for hanging in (MOST, SLOW_AT_ONCE):
        for name in NAMES:
            host.freeze(name, "info")
        rig.partly = (URI,)
        rig.tick(4)
        assert host.hanging == hanging
        assert rig.report(HEALTHY).mode is Mode.CLOSED_LOOP
        thaw(rig)
    assert mailbox(rig)._lost == {}


def test_another_domains_release_is_in_no_doubt(rig: LibvirtRig) -> None:
    hang(rig, SET, ["vr0"])
    rig.tick(int(CALL_DEADLINE_S) + 3)
    session = rig.hypervisors._sessions[URI]
    assert session.in_doubt(rig.guest("vr0").uuid)
    assert not session.in_doubt(rig.guest(HEALTHY).uuid)
    rig.ask(Deactivate(HEALTHY))
    assert rig.cap(HEALTHY) is None
    assert rig.entry(HEALTHY) is None
