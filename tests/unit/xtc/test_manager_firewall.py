"""One router's unforeseen error, at any stage of its tick, changes no other router's cap."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulated_rig import Rig, plan

from xtc.errors import Transient
from xtc.manager import host
from xtc.manager.cap import CapController
from xtc.manager.router import ManagedRouter
from xtc.modes import Mode
from xtc.wire import Activate, Batch, Envelope, Limit, Outcomes, Refusal, encode

SETPOINT = 20e3
STAGES = [
    (ManagedRouter, "step"),
    (ManagedRouter, "_sampled"),
    (ManagedRouter, "_decide"),
    (ManagedRouter, "carry_out"),
    (host, "report"),
    (CapController, "begin_period"),
    (CapController, "view"),
    (CapController, "set"),
    (CapController, "prepare"),
]


class CrashError(Exception):
    """What nobody foresaw."""


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path, {name: plan(name) for name in ("bad", "good")})
    for name in rig.plans:
        rig.ask(Activate(name, SETPOINT))
    rig.tick(8)
    return rig


def crashing(original: Callable[..., Any], broken: object) -> Callable[..., Any]:
    def call(self: object, *arguments: Any, **named: Any) -> Any:
        if self is broken:
            raise CrashError("out of the blue")
        return original(self, *arguments, **named)

    return call


@pytest.fixture(params=STAGES, ids=lambda stage: f"{stage[0].__name__}.{stage[1]}")
def broken(request: pytest.FixtureRequest, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """One stage of the tick of `bad` crashes."""
    kind, name = request.param
    managed = rig.manager.routers["bad"]
    target = managed.controller if kind is CapController else managed
    monkeypatch.setattr(kind, name, crashing(getattr(kind, name), target))
    return rig


def test_the_others_are_held_at_another_setpoint(broken: Rig) -> None:
    broken.ask(Activate("good", SETPOINT / 2))
    broken.tick(8)
    assert broken.throughput("good") == pytest.approx(SETPOINT / 2, rel=0.05)


def test_the_error_is_that_routers_problem_and_its_cap_stands(broken: Rig) -> None:
    before = broken.cap("bad")
    broken.tick()
    reports = {report.vr: report for report in broken.manager.reports(broken.clock.now())}
    assert "CrashError" in reports["bad"].problem
    assert reports["good"].problem == ""
    assert broken.cap("bad") == before


def test_an_error_that_is_over_is_no_problem(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    managed = rig.manager.routers["bad"]
    with monkeypatch.context() as patch:
        patch.setattr(ManagedRouter, "_sampled", crashing(ManagedRouter._sampled, managed))
        rig.tick(3)
        assert rig.report("bad").mode is Mode.HOLD
    rig.tick()
    assert (rig.report("bad").problem, rig.report("bad").mode) == ("", Mode.CLOSED_LOOP)


def test_a_loop_that_keeps_failing_goes_down_the_ladder(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed = rig.manager.routers["bad"]
    monkeypatch.setattr(ManagedRouter, "_sampled", crashing(ManagedRouter._sampled, managed))
    rig.tick(31)
    assert (rig.report("bad").mode, rig.cap("bad")) == (Mode.RELEASED, None)


def test_the_limits_of_the_others_end_in_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bad", "good"):
        rig.ask(Limit(name, rate_pps=30e3, ttl_s=5.0))
    managed = rig.manager.routers["bad"]
    monkeypatch.setattr(ManagedRouter, "step", crashing(ManagedRouter.step, managed))
    rig.tick(6)
    assert rig.limiter.limits == {}


@pytest.mark.parametrize("law", ["pi", "dead-beat-min3"])
def test_a_law_that_is_changed_by_a_reload_takes_over_from_the_cap_in_force(
    rig: Rig, law: str
) -> None:
    changed = {**rig.plans, "bad": replace(rig.plans["bad"], law=law)}
    rig.manager.reconfigure(changed, max_release_share=1.0)
    rig.ask(Activate("bad", 40e3))
    rig.ask(Activate("good", SETPOINT / 2))
    rig.tick(20)
    assert rig.report("bad").problem == ""
    assert rig.throughput("bad") == pytest.approx(40e3, rel=0.12)
    assert rig.throughput("good") == pytest.approx(SETPOINT / 2, rel=0.05)


# Work beside the stages of a router's own tick

CRASH = CrashError("out of the blue")


def test_a_batch_goes_on_after_a_request_that_crashed(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {name: plan(name) for name in ("bad", "good")})
    rig.faults.errors["bad", "open"] = CRASH
    batch = Batch(tuple(Activate(name, SETPOINT) for name in ("bad", "good")))
    result = rig.manager.handle(encode(Envelope(batch))).result
    assert isinstance(result, Outcomes)
    bad, good = result.refusals
    assert isinstance(bad, Refusal)
    assert (bad.code, good) == ("unforeseen", None)
    rig.tick(8)
    assert rig.holds("good", SETPOINT)


def test_a_daemon_starts_although_a_router_cannot_be_looked_at(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {name: plan(name, SETPOINT) for name in ("bad", "good")})
    rig.faults.errors["bad", "open"] = CRASH
    rig.restart()
    rig.tick(8)
    assert rig.holds("good", SETPOINT)
    assert "CrashError" in rig.report("bad").problem
    del rig.faults.errors["bad", "open"]
    rig.tick(8)
    assert rig.holds("bad", SETPOINT)


def test_a_reload_takes_over_the_routers_after_one_that_crashes(rig: Rig) -> None:
    rig.faults.errors["new", "open"] = CRASH
    for name in ("new", "newer"):
        rig.plant.add(name, rig.plant.routers["good"].plant)
    wanted = {name: plan(name, SETPOINT) for name in ("new", "newer", *rig.plans)}
    rig.manager.reconfigure(wanted, max_release_share=1.0)
    assert rig.report("newer").active


def test_a_release_that_crashes_ends_no_tick_and_is_tried_again(rig: Rig) -> None:
    rig.faults.errors["bad", "restore"] = Transient("bad", "busy")
    rig.manager.reconfigure({"good": rig.plans["good"]}, max_release_share=1.0)
    rig.faults.errors["bad", "restore"] = CRASH
    rig.tick(3)
    assert "bad'" in rig.journal.ledger.entries
    del rig.faults.errors["bad", "restore"]
    rig.tick(2)
    assert (rig.cap("bad"), set(rig.journal.ledger.entries)) == (None, {"good"})


def test_a_router_whose_release_crashes_can_be_dropped_by_a_reload(rig: Rig) -> None:
    rig.faults.errors["bad", "restore"] = CRASH
    rig.manager.reconfigure({"good": rig.plans["good"]}, max_release_share=1.0)
    assert set(rig.manager.routers) == {"good"}
    assert "bad'" in rig.journal.ledger.entries


def test_a_limiter_that_crashes_costs_no_router_its_cap(rig: Rig) -> None:
    rig.ask(Limit("bad", rate_pps=30e3))
    rig.tick(2)
    rig.limiter.error = CRASH
    rig.ask(Activate("good", SETPOINT / 2))
    rig.tick(8)
    assert rig.holds("good", SETPOINT / 2)
    assert rig.report("bad").offered_pps is None


def test_a_limit_that_crashes_half_way_is_lifted_once_that_is_possible(rig: Rig) -> None:
    rig.limiter.error = CRASH
    assert rig.refused(Limit("bad", rate_pps=30e3)).code == "unforeseen"
    rig.limiter.error = None
    rig.limiter.limits["bad.0"] = 30e3  # as far as it came
    rig.tick(40)
    assert (rig.limiter.limits, rig.journal.ledger.limits) == ({}, {})


def test_a_limit_whose_end_crashes_is_lifted_later(rig: Rig) -> None:
    rig.ask(Limit("bad", rate_pps=30e3, ttl_s=5.0))
    rig.limiter.error = CRASH
    rig.tick(8)
    rig.limiter.error = None
    rig.tick(40)
    assert rig.limiter.limits == {}
