"""Promise 5: lower epochs are never obeyed, not even after a restart."""

import os
import time
from pathlib import Path

import pytest
from simulated_rig import Rig, plan
from slow_disk import WriterRig

from xtc.lease import check_epoch
from xtc.state import journal as journal_module
from xtc.wire import Activate, Batch, Deactivate, Envelope, Limit, encode


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path, {"a": plan("a"), "b": plan("b", 30e3)})
    rig.ask(Activate("a", 20e3, epoch=5, sequence=1))
    return rig


def refused(rig: Rig) -> bool:
    codes = {rig.refused(Activate(vr, 9e3, epoch=4, sequence=99)).code for vr in ("a", "b")}
    return codes == {"stale_epoch"}


@pytest.mark.parametrize("restarts", [False, True])
def test_nobody_locks_all_policers_out_by_a_slip_of_the_pen(rig: Rig, *, restarts: bool) -> None:
    """An epoch years ahead of the clock is none that a policer can ever go above."""
    slip = 99_999_999_999
    raw = encode(Envelope(Activate("a", 9e3, epoch=slip, sequence=1)))
    assert rig.manager.prepare(raw) is None
    for order in (Activate("a", 9e3, epoch=slip, sequence=1), Limit("a", 9e3, epoch=slip)):
        assert rig.refused(order).code == "epoch_ahead"
    if restarts:
        rig.restart()
    assert rig.manager.highest_epoch == 5
    rig.ask(Activate("a", 9e3, epoch=5, sequence=2))


@pytest.mark.parametrize("slow_s", [0.0, 30e6, 1e9])
def test_policers_of_today_are_obeyed_though_the_clock_of_the_host_is_slow(slow_s: float) -> None:
    now = time.time()
    check_epoch(int(now) + 86_400, now - slow_s)


def test_not_by_any_router_of_the_host(rig: Rig) -> None:
    assert refused(rig)
    assert rig.report("a").setpoint_pps == 20e3
    assert rig.report("b").setpoint_pps == 30e3


def test_not_after_the_router_was_released(rig: Rig) -> None:
    rig.ask(Deactivate("a"))
    assert refused(rig)


def test_not_after_the_lease_ended(rig: Rig) -> None:
    rig.ask(Activate("a", 20e3, epoch=6, sequence=1, ttl_s=5.0))
    rig.tick(10)
    assert rig.refused(Activate("a", 9e3, epoch=5, sequence=99)).code == "stale_epoch"


@pytest.mark.parametrize("ticks", [0, 3])
def test_not_after_a_crash_however_soon(rig: Rig, ticks: int) -> None:
    rig.tick(ticks)
    rig.restart()
    assert refused(rig)


def test_not_after_a_clean_stop(rig: Rig) -> None:
    rig.manager.stop(release=True)
    rig.restart()
    assert refused(rig)


def test_not_after_a_reload(rig: Rig) -> None:
    rig.manager.reconfigure({n: plan(n) for n in "ab"}, max_release_share=1.0)
    assert refused(rig)


def test_not_in_another_boot(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.crash()
    monkeypatch.setattr(journal_module, "boot_id", lambda: "another")
    rig.start()
    assert refused(rig)


def test_an_epoch_that_cannot_be_remembered_is_not_obeyed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(journal_module, "_write_durably", full)
        assert rig.refused(Activate("a", 9e3, epoch=6)).code == "journal"
        rig.ask(Activate("a", 25e3, epoch=5, sequence=2))
    rig.restart()
    rig.ask(Activate("a", 26e3, epoch=5, sequence=3))


def test_no_journal_that_is_ever_on_the_disk_lacks_an_epoch_that_was_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that kill -9 forgets none, whatever the writer and the loop are at."""
    rig = WriterRig(tmp_path, {"a": plan("a"), "b": plan("b")})
    obeyed, forgotten = [0], []
    replace = os.replace

    def replaced(source: str, target: str, **where: int) -> None:
        replace(source, target, **where)
        if rig.on_disk().highest_epoch < obeyed[0]:
            forgotten.append(obeyed[0])

    monkeypatch.setattr(os, "replace", replaced)
    for epoch in range(1, 60, 3):
        rig.ask(Activate("a", 20e3, epoch=epoch))
        obeyed[0] = epoch
        assert rig.on_disk().highest_epoch >= epoch
        rig.tick()
        rising = Batch(tuple(Activate("b", 20e3, epoch=epoch + one) for one in (1, 2)))
        rig.reply(rising)
        obeyed[0] = epoch + 2
        assert rig.on_disk().highest_epoch >= epoch + 2
    rig.crash()
    assert forgotten == []
