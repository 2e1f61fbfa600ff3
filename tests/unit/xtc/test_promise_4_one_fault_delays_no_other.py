"""Promise 4: one faulty vr, message or backend delays no other by more than one tick."""

from pathlib import Path

import pytest
from simulated_rig import Rig, plan

from xtc.errors import ActuatorError, Admission, Denied, Gone, Permanent, Transient, Unsupported
from xtc.wire import Activate, Envelope, Retune, Status, encode

KINDS = [Transient, Gone, Permanent, Unsupported, Denied, Admission]
CALLS = ["open", "capture", "applied", "apply", "usage", "restore"]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {name: plan(name) for name in ("faulty", "other")})


def moves_at_once(rig: Rig) -> None:
    """Retune the other router; its cap must have moved after one tick."""
    rig.ask(Retune("other", 60e3))
    before = rig.cap("other")
    rig.tick(1)
    assert rig.cap("other") != before
    rig.tick(7)
    assert rig.throughput("other") == pytest.approx(60e3, rel=0.02)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_actuator_that_fails(rig: Rig, call: str, kind: type[ActuatorError]) -> None:
    rig.hold("other", 20e3)
    rig.ask(Activate("faulty", 20e3, ttl_s=4.0))
    rig.faults.errors["faulty", call] = kind("faulty", "on purpose")
    rig.tick(6)
    moves_at_once(rig)


def test_a_router_that_vanishes(rig: Rig) -> None:
    rig.hold("other", 20e3)
    rig.hold("faulty", 20e3)
    del rig.plant.routers["faulty"]
    moves_at_once(rig)


def test_a_router_that_cannot_be_released_at_the_start(rig: Rig) -> None:
    rig.hold("other", 20e3)
    rig.hold("faulty", 20e3)
    rig.faults.errors["faulty", "restore"] = Transient("faulty", "on purpose")
    del rig.plans["faulty"]
    rig.restart()
    rig.tick(2)
    moves_at_once(rig)


def test_a_limiter_that_fails(rig: Rig) -> None:
    rig.hold("other", 20e3)
    rig.limiter.error = Denied("faulty.0", "on purpose")
    rig.manager.stop(release=False)
    rig.restart()
    rig.tick(2)
    moves_at_once(rig)


@pytest.mark.parametrize("raw", [b"", b"\xff", b"[" * 60000, b'{"version":9}', b"x" * (1 << 20)])
def test_a_bad_message(rig: Rig, raw: bytes) -> None:
    rig.hold("other", 20e3)
    rig.manager.handle(raw)
    assert rig.manager.handle(encode(Envelope(Status("other"), id="7"))).id == "7"
    moves_at_once(rig)


def test_a_router_that_keeps_failing_is_tried_less_and_less(rig: Rig) -> None:
    rig.hold("faulty", 20e3)
    rig.faults.errors["faulty", "apply"] = Transient("faulty", "on purpose")
    rig.ask(Retune("faulty", 60e3))
    rig.faults.calls.clear()
    rig.tick(200)
    assert rig.faults.calls.count(("faulty", "apply")) < 15
