"""A router's first second: shielded or capped with its activation, by what is known of it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_rig import Rig, plan

from common.setpoint import Unit
from common.units import CapFraction, PacketsPerSecond, Seconds
from models import paper_host
from xtc.control.adaptive import AdaptiveLaw
from xtc.control.estimate import Estimate
from xtc.control.law import Bounds, Sample
from xtc.control.prior import GUESSED, Prior, guess, learned
from xtc.errors import Transient
from xtc.simulation.plant import Plant
from xtc.wire import Activate, Deactivate, Pause, Retune

SETPOINT = 20e3
BOUNDS = Bounds(CapFraction(0.001), CapFraction(1.0))


def rig_of(directory: Path, **changes: object) -> Rig:
    """Return a rig of one router whose plan differs in these fields."""
    return Rig(directory, {"a": replace(plan("a"), **changes)})  # type: ignore[arg-type]


def test_a_router_without_a_shield_is_capped_with_its_activation(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    assert rig.cap("a") == pytest.approx(SETPOINT / GUESSED[Unit.PACKETS])
    assert rig.journal.ledger.entries.keys() == {"a"}
    seen = []
    for _ in range(4):
        rig.tick()
        seen.append(rig.throughput("a"))
    assert max(seen) <= 1.05 * SETPOINT
    assert rig.holds("a", SETPOINT)


def test_one_with_a_model_is_capped_by_it(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, model=paper_host())
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    rig.tick()
    assert rig.holds("a", SETPOINT)


def test_one_that_its_shield_holds_is_not_capped_beforehand(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, shield=True)
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    assert rig.shield.rates
    assert rig.cap("a") is None


def test_one_whose_shield_cannot_be_set_is_capped(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, shield=True)
    rig.shield.refusals["a.0"] = Transient("a.0", "no")
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    assert rig.cap("a") is not None


def test_one_without_interfaces_yet_waits_for_its_shield(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, shield=True)
    rig.ask(Activate("a", SETPOINT))  # before the first period
    assert (rig.cap("a"), rig.shield.rates) == (None, {})
    rig.tick(2)
    assert rig.shield.rates
    assert rig.cap("a") != pytest.approx(SETPOINT / GUESSED[Unit.PACKETS])


def test_one_that_is_held_from_the_start_is_shielded_before_the_first_period(
    tmp_path: Path,
) -> None:
    rig = rig_of(tmp_path, shield=True, setpoint=None)
    rig.crash()
    rig.plans["a"] = replace(rig.plans["a"], setpoint=plan("a", SETPOINT).setpoint)
    rig.start()
    rig.manager.begin({"a": ("a.0",)})
    assert rig.shield.bearing == {"a.0": "a"}
    rig.tick()
    assert rig.shield.bearing == {"a.0": "a"}


@pytest.mark.parametrize("law", ["pi", "dead-beat"])
def test_laws_that_would_stay_at_a_wrong_cap_wait_for_a_sample(tmp_path: Path, law: str) -> None:
    rig = rig_of(tmp_path, law=law)
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    assert rig.cap("a") is None


def test_no_first_cap_is_below_the_floor_or_above_what_stands(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, floor=CapFraction(0.05))
    rig.tick(2)
    rig.ask(Activate("a", 1.0))
    assert rig.cap("a") == pytest.approx(0.05)
    rig.ask(Deactivate("a"))
    rig.plant.routers["a"].cap = CapFraction(0.02)
    rig.tick()
    rig.ask(Activate("a", 1.0))
    assert rig.cap("a") in (CapFraction(0.02), CapFraction(0.05))


def test_a_cap_that_was_adopted_stands(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    rig.hold("a", SETPOINT)
    before = rig.cap("a")
    rig.restart()
    rig.manager.begin({"a": ("a.0",)})
    assert rig.cap("a") == before


def test_an_observed_router_is_not_touched(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, observe=True, shield=True)
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    assert (rig.cap("a"), rig.shield.rates) == (None, {})


def test_a_sample_of_two_caps_teaches_nothing(tmp_path: Path) -> None:
    """The cap came in the middle of the period: its throughput is that of both."""
    rig = rig_of(tmp_path)
    rig.tick(2)
    rig.clock.sleep(Seconds(0.5))
    rig.plant.read(rig.clock.now())
    rig.ask(Activate("a", SETPOINT))
    first = rig.cap("a")
    rig.tick(lasting=Seconds(0.5))
    assert rig.cap("a") == first
    rig.tick(3)
    assert rig.holds("a", SETPOINT)


def test_who_is_retuned_or_paused_before_the_first_cap_keeps_order(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    rig.ask(Retune("a", 2 * SETPOINT))
    rig.tick(4)
    assert rig.holds("a", 2 * SETPOINT)
    rig.ask(Pause("a"))
    before = rig.cap("a")
    rig.tick(2)
    assert rig.cap("a") == before


# What is known


def held(law: AdaptiveLaw, prior: Prior, speed: float, target: float) -> list[float]:
    """Return the throughputs of a router of this speed, flooded, from its first cap on."""
    cap = BOUNDS.clamp(prior.cap_for(target))
    state, seen = law.start(cap, prior), []
    for _ in range(6):
        throughput = speed * cap
        seen.append(throughput)
        sample = Sample(throughput, CapFraction(cap), 10 * throughput, CapFraction(cap), True)
        state, decision = law.step(state, target, sample, BOUNDS)
        cap = decision.cap
    return seen


@given(
    speed=st.floats(3e4, 2e6),
    wrong=st.sampled_from([1 / 3, 0.5, 0.9, 1.0, 1.1, 2.0, 3.0]),
    slope=st.floats(0.4, 10.0),
)
def test_a_router_that_became_faster_or_slower_is_held_within_three_periods(
    speed: float, wrong: float, slope: float
) -> None:
    target = 0.2 * speed
    prior = Prior(0.2, wrong * speed * 0.2, slope, variance=0.05)
    seen = held(AdaptiveLaw(), prior, speed, target)
    assert seen[0] <= 1.01 * max(1.0, 1 / wrong, (1 / wrong) ** (1 / slope)) * target
    assert all(abs(each / target - 1) <= 0.05 for each in seen[3:])


@given(speed=st.floats(2e4, 2e6))
def test_a_guess_starves_rather_than_floods_and_is_left_within_three_periods(speed: float) -> None:
    target = 0.3 * speed
    seen = held(AdaptiveLaw(), guess(Unit.PACKETS), speed, target)
    assert max(seen) <= 1.001 * target
    assert seen[3] == pytest.approx(target, rel=0.01)


def test_a_prior_that_fits_makes_the_first_cap_right() -> None:
    prior = Prior(0.2, 50e3, variance=0.05)
    assert held(AdaptiveLaw(), prior, 250e3, 75e3)[0] == pytest.approx(75e3)


def test_only_what_is_certain_is_learned() -> None:
    assert learned(Estimate()) is None
    assert learned(Estimate(offset=12.0, variance=0.5, caps=(-1.0,))) is None
    prior = learned(Estimate(offset=12.0, slope=1.0, variance=0.01, caps=(-1.0,)))
    assert prior is not None
    assert prior.cap_for(prior.rate) == pytest.approx(math.exp(-1.0))
    assert prior.rate == pytest.approx(math.exp(11.0))
    assert prior.variance == pytest.approx(0.05)


@pytest.mark.parametrize(
    "prior",
    [
        Prior(0.0, 1e3),
        Prior(math.nan, 1e3),
        Prior(0.1, math.inf),
        Prior(0.1, -1.0),
        Prior(0.1, 1e3, slope=0.0),
        Prior(0.1, 1e3, slope=1e9),
        Prior(0.1, 1e3, variance=-1.0),
        Prior(0.1, 1e3, variance=math.inf),
    ],
)
def test_what_no_router_does_is_not_sane(prior: Prior) -> None:
    assert not prior.is_sane()


def test_a_plant_of_other_speed_is_held_with_a_prior_of_another_run(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    curve = rig.plant.routers["a"].plant.curve
    rig.plant.routers["a"].plant = Plant(curve, PacketsPerSecond(1e6), gain=3.0)
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    rig.tick(4)
    assert rig.holds("a", SETPOINT)
