"""An unforeseen error of one router ends no start, no reload and no request for the others."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from simulated_rig import Rig, configured_rig, plan

from xtc.manager.cap import CapController
from xtc.manager.router import ManagedRouter
from xtc.spec import SimulatedSpec
from xtc.wire import Activate, Batch, Envelope, Limit, Outcomes, Pause, encode

SETPOINT = 20e3


class CrashError(Exception):
    """What nobody foresaw."""


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = configured_rig(tmp_path, bad=SETPOINT, good=SETPOINT)
    rig.tick(8)
    return rig


def crash_of(
    patch: pytest.MonkeyPatch, kind: type, name: str, *, is_bad: Callable[[Any], bool]
) -> None:
    """Let a method crash on what belongs to the bad router."""
    original = getattr(kind, name)

    def call(self: object, *arguments: Any, **named: Any) -> Any:
        if is_bad(self):
            raise CrashError("out of the blue")
        return original(self, *arguments, **named)

    patch.setattr(kind, name, call)


def bad_managed(managed: ManagedRouter) -> bool:
    return managed.plan.name == "bad"


def bad_keeper(controller: CapController) -> bool:
    return controller.spec == SimulatedSpec("bad")


STARTING = [(ManagedRouter, "activate", bad_managed), (CapController, "prepare", bad_keeper)]


@pytest.mark.parametrize(("kind", "name", "is_bad"), STARTING)
def test_a_start_survives_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, kind: type, name: str, is_bad: Callable[[Any], bool]
) -> None:
    with monkeypatch.context() as patch:
        crash_of(patch, kind, name, is_bad=is_bad)
        rig.restart()
        assert "CrashError" in rig.report("bad").problem
    rig.tick(8)
    assert rig.holds("good", SETPOINT)
    assert rig.journal.ledger.entries.keys() >= {"good"}


def test_a_start_that_cannot_release_a_leftover_keeps_its_original(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    del rig.plans["bad"]
    with monkeypatch.context() as patch:
        crash_of(patch, CapController, "release", is_bad=bad_keeper)
        rig.restart()
        assert "CrashError" in rig.troubles[0]
        rig.tick(8)
        assert rig.holds("good", SETPOINT)
        specs = [entry.spec for entry in rig.journal.ledger.entries.values()]
        assert SimulatedSpec("bad") in specs
    rig.tick()
    assert rig.cap("bad") is None
    assert rig.journal.ledger.entries.keys() == {"good"}


def test_a_limit_that_cannot_be_lifted_at_the_start_is_tried_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.ask(Limit("bad", rate_pps=30e3))
    rig.ask(Limit("good", rate_pps=30e3))
    lift = rig.limiter.lift

    def crash(interface: str) -> None:
        if interface == "bad.0":
            raise CrashError("out of the blue")
        lift(interface)

    monkeypatch.setattr(rig.limiter, "lift", crash)
    rig.restart()
    assert "CrashError" in rig.troubles[0]
    assert rig.limiter.limits.keys() == {"bad.0"}
    rig.tick(8)
    assert ("bad.0",) in rig.journal.ledger.limits.values()
    assert rig.holds("good", SETPOINT)


RELOADING = [(ManagedRouter, "replan", bad_managed), (ManagedRouter, "activate", bad_managed)]


@pytest.mark.parametrize(("kind", "name", "is_bad"), RELOADING)
def test_a_reload_survives_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, kind: type, name: str, is_bad: Callable[[Any], bool]
) -> None:
    for vr in ("bad", "good"):
        rig.manager.routers[vr].instance = None
    crash_of(monkeypatch, kind, name, is_bad=is_bad)
    plans = {vr: plan(vr, SETPOINT / 2) for vr in ("bad", "good")}
    rig.manager.reconfigure(plans, max_release_share=1.0)
    assert "CrashError" in rig.report("bad").problem
    rig.tick(8)
    assert rig.holds("good", SETPOINT / 2)


def test_a_reload_that_cannot_release_a_place_keeps_its_original(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_of(monkeypatch, CapController, "release", is_bad=bad_keeper)
    rig.manager.reconfigure({"good": plan("good", SETPOINT / 2)}, max_release_share=1.0)
    rig.tick(8)
    assert rig.holds("good", SETPOINT / 2)
    specs = [entry.spec for entry in rig.journal.ledger.entries.values()]
    assert SimulatedSpec("bad") in specs


ORDERS = [
    (Activate("bad", 9e3), "activate"),
    (Pause("bad"), "pause"),
]


@pytest.mark.parametrize(("order", "method"), ORDERS)
def test_a_request_is_refused_with_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, order: Activate | Pause, method: str
) -> None:
    crash_of(monkeypatch, ManagedRouter, method, is_bad=bad_managed)
    refusal = rig.refused(order)
    assert (refusal.code, "CrashError" in refusal.problem) == ("unforeseen", True)
    assert "CrashError" in rig.report("bad").problem


def test_the_others_of_a_batch_are_carried_out(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    crash_of(monkeypatch, ManagedRouter, "activate", is_bad=bad_managed)
    batch = Batch((Activate("bad", 9e3), Activate("good", 9e3)))
    result = rig.manager.handle(encode(Envelope(batch))).result
    assert isinstance(result, Outcomes)
    codes = [refusal and refusal.code for refusal in result.refusals]
    assert codes == ["unforeseen", None]


def test_a_limit_that_crashes_is_refused_and_lifted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise CrashError("out of the blue")

    with monkeypatch.context() as patch:
        patch.setattr(rig.limiter, "limit", crash)
        assert rig.refused(Limit("bad", rate_pps=30e3)).code == "unforeseen"
    assert rig.report("bad").limit_pps is None
    rig.tick()
    assert not rig.journal.ledger.limits


def test_limits_that_cannot_be_counted_hold_up_no_cap(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise OSError(errno.EPROTO, "protocol error")

    rig.ask(Limit("bad", rate_pps=30e3))
    monkeypatch.setattr(rig.limiter, "dropped", crash)
    rig.ask(Activate("good", SETPOINT / 2))
    rig.tick(8)
    assert rig.holds("good", SETPOINT / 2)
