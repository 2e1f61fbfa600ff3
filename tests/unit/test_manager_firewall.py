"""One router's unforeseen error, at any stage of its tick, changes no other router's cap."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulated_rig import Rig, plan

from xtc.instance import Mode
from xtc.keeper import Keeper
from xtc.managed import Managed
from xtc.wire import Activate, Limit

SETPOINT = 20e3
STAGES = [
    (Managed, "step"),
    (Managed, "_sampled"),
    (Managed, "_decide"),
    (Managed, "carry_out"),
    (Managed, "report"),
    (Keeper, "begin_period"),
    (Keeper, "view"),
    (Keeper, "set"),
    (Keeper, "prepare"),
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
    target = managed if kind is Managed else managed.keeper
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
        patch.setattr(Managed, "_sampled", crashing(Managed._sampled, managed))
        rig.tick(3)
        assert rig.report("bad").mode is Mode.HOLD
    rig.tick()
    assert (rig.report("bad").problem, rig.report("bad").mode) == ("", Mode.CLOSED_LOOP)


def test_a_loop_that_keeps_failing_goes_down_the_ladder(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed = rig.manager.routers["bad"]
    monkeypatch.setattr(Managed, "_sampled", crashing(Managed._sampled, managed))
    rig.tick(31)
    assert (rig.report("bad").mode, rig.cap("bad")) == (Mode.RELEASED, None)


def test_the_limits_of_the_others_end_in_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bad", "good"):
        rig.ask(Limit(name, rate_pps=30e3, ttl_s=5.0))
    managed = rig.manager.routers["bad"]
    monkeypatch.setattr(Managed, "step", crashing(Managed.step, managed))
    rig.tick(6)
    assert rig.limiter.limits == {}


@pytest.mark.parametrize("law", ["self-tuning", "pi", "dead-beat-min3"])
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
