"""A router whose model no longer fits it: noticed after many samples, and never by noise."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from group_rig import GroupRig, group_plan
from shielded_rig import SETPOINT as SHIELDED
from shielded_rig import WORK, ShieldedRig, always

from common.units import CapFraction, Seconds
from models import HostModel, ThroughputCurve, Uncertainty
from xtc.config.plan import RouterPlan
from xtc.control.instance import Instance
from xtc.control.law import Sample
from xtc.control.stale_model import REMEMBERED, STALE_AFTER, count_outside, with_stale_model
from xtc.lease import Lease
from xtc.modes import Finding
from xtc.wire import Activate

SETPOINT = 30e3
COST_S = 1e-5
KNOWN = Uncertainty(
    noise=0.02,
    speed_sd=0.01,
    trend=0.0,
    intervals=((0.05, 4.9e3, 5.1e3), (0.9, 88e3, 92e3)),
    top=(98e3, 102e3),
    limited_by="host",
)
MODEL = HostModel(
    name="gold",
    measured_curve=ThroughputCurve(((0.05, 5e3), (0.9, 90e3), (1.0, 100e3)), 300e3),
    uncertainty=KNOWN,
)


@pytest.fixture
def rig(tmp_path: Path) -> GroupRig:
    rig = GroupRig(tmp_path, {"gold": replace(group_plan(tmp_path, "gold"), model=MODEL)})
    rig.forwarders["gold"].offered = 60e3
    rig.tick()
    return rig


def test_a_router_that_is_as_its_model_says_has_no_finding(rig: GroupRig) -> None:
    rig.hold("gold", SETPOINT, periods=3 * STALE_AFTER)
    assert rig.report("gold").finding is Finding.NONE


@pytest.mark.parametrize("times", [0.7, 1.4])
def test_one_whose_packets_cost_otherwise_is_stale_until_they_no_longer_do(
    rig: GroupRig, times: float
) -> None:
    rig.forwarders["gold"].cost_s = times * COST_S
    rig.hold("gold", SETPOINT, periods=STALE_AFTER - 5)
    assert rig.report("gold").finding is Finding.NONE
    rig.tick(STALE_AFTER)
    assert rig.report("gold").finding is Finding.MODEL_STALE
    rig.forwarders["gold"].cost_s = COST_S
    rig.tick(REMEMBERED + 20)
    assert rig.report("gold").finding is Finding.NONE


def test_a_new_model_is_judged_from_the_start(rig: GroupRig) -> None:
    rig.forwarders["gold"].cost_s = 1.4 * COST_S
    rig.hold("gold", SETPOINT, periods=2 * STALE_AFTER)
    assert rig.report("gold").finding is Finding.MODEL_STALE
    rig.manager.reconfigure({"gold": with_model(rig.plans["gold"], 1.4)}, max_release_share=1.0)
    rig.tick(3)
    assert rig.report("gold").finding is Finding.NONE
    rig.tick(2 * STALE_AFTER)
    assert rig.report("gold").finding is Finding.NONE


@pytest.mark.parametrize(
    ("dearer", "polls", "finding"),
    [
        (1.0, False, Finding.NONE),
        (1.4, False, Finding.MODEL_STALE),
        (1.4, True, Finding.NONE),  # one that polls uses what it gets, whatever it needs
    ],
)
def test_behind_a_shield_it_is_what_the_router_uses_that_tells(
    tmp_path: Path, dearer: float, polls: bool, finding: Finding
) -> None:
    rig = ShieldedRig(tmp_path, dearness=always(dearer), polls=polls)
    plan = with_model(rig.plans["a"], WORK / COST_S)
    rig.manager.reconfigure({"a": plan}, max_release_share=1.0)
    rig.tick(2)
    rig.ask(Activate("a", SHIELDED))
    rig.tick(4 * STALE_AFTER)
    assert rig.report("a").finding is finding


def with_model(plan: RouterPlan, cost: float) -> RouterPlan:
    """Return the plan with a model of packets that cost so many times as much."""
    points = tuple((cap, rate / cost) for cap, rate in MODEL.curve.points)
    low, high = KNOWN.top
    known = replace(
        KNOWN,
        intervals=tuple((cap, least / cost, most / cost) for cap, least, most in KNOWN.intervals),
        top=(low / cost, high / cost),
    )
    curve = ThroughputCurve(points, 300e3)
    return replace(plan, model=replace(MODEL, measured_curve=curve, uncertainty=known))


def held(found: Finding = Finding.NONE) -> Instance:
    return Instance(
        lease=Lease(SETPOINT),
        seen_at=Seconds(0.0),
        finding=found,
        capped=True,
    )


def sample(throughput: float, cap: float, **more: bool) -> Sample:
    return Sample(throughput, CapFraction(cap), **({"binding": True} | more))


@pytest.mark.parametrize("seed", range(5))
def test_noise_as_the_model_has_it_is_never_taken_for_change(seed: int) -> None:
    chance, outside, speed = random.Random(seed), 0, 0.0
    for _ in range(20_000):
        speed = 0.95 * speed + 0.31 * chance.gauss(0, KNOWN.speed_sd)
        rate = SETPOINT * (1 + speed) * (1 + chance.gauss(0, KNOWN.noise))
        seen = sample(rate, SETPOINT * COST_S)
        outside = count_outside(outside, held(), seen, MODEL, polls=False)
        assert outside < STALE_AFTER


OFF = sample(SETPOINT, 2 * SETPOINT * COST_S)


@pytest.mark.parametrize(
    ("instance", "seen", "model", "polls"),
    [
        (held(Finding.SETTLING), OFF, MODEL, False),
        (held(Finding.STARVED), OFF, MODEL, False),
        (held(), None, MODEL, False),
        (held(), OFF, None, False),
        (held(), OFF, replace(MODEL, uncertainty=None), False),
        (held(), sample(SETPOINT, 0.6, binding=False), MODEL, False),
        (held(), sample(3e3, 0.6), MODEL, False),
        (held(), sample(SETPOINT, 0.6, guarded=True), MODEL, False),
        (
            held(),
            Sample(SETPOINT, CapFraction(0.7), used=CapFraction(0.6), guarded=True),
            MODEL,
            True,
        ),
    ],
)
def test_what_tells_nothing_of_the_model_is_not_counted(
    instance: Instance, seen: Sample | None, model: HostModel | None, *, polls: bool
) -> None:
    assert count_outside(7, instance, seen, model, polls=polls) == 7


def test_another_finding_says_more_than_a_stale_model() -> None:
    assert count_outside(7, held(), OFF, MODEL, polls=False) == 8
    assert with_stale_model(held(), STALE_AFTER).finding is Finding.MODEL_STALE
    assert with_stale_model(held(), STALE_AFTER - 1).finding is Finding.NONE
    assert with_stale_model(held(Finding.AT_FLOOR), 99).finding is Finding.AT_FLOOR
