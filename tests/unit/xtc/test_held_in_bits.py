"""Routers held in bits/s: by the law, through changes of unit, in reports and in the journal."""

from dataclasses import replace
from pathlib import Path

import pytest
from manager_rig import PERIOD
from msgspec import structs
from simulated_rig import Rig, flat, plan

from common.setpoint import Setpoint, Unit
from common.units import BitsPerSecond, CapFraction, PacketsPerSecond, Seconds
from xtc.control.adaptive import AdaptiveLaw, AdaptiveState
from xtc.control.instance import DEGRADE_AFTER, KEEP, Instance, Profile, Watch, step
from xtc.control.law import PI, Bounds, Decision, InBits, PaperLaw, Sample
from xtc.lease import Lease
from xtc.measure.collector import Reading
from xtc.modes import Finding, Mode
from xtc.wire import Activate, Limit, Retune

SETPOINT = 20e6
"""bits/s"""
IN_BITS = Lease(setpoint_bps=SETPOINT)
BOUNDS = Bounds(CapFraction(0.01), CapFraction(1.0))


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"r": plan("r")})


def hold(rig: Rig, bps: float = SETPOINT, periods: int = 8) -> None:
    rig.ask(Activate("r", setpoint_bps=bps))
    rig.tick(periods)


def bits(rig: Rig) -> float:
    """Return what the plant really forwards, in bits/s."""
    router = rig.plant.routers["r"]
    return 8 * router.frame_bytes * router.state.throughput


# The law


def test_less_is_forwarded_of_large_frames(rig: Rig) -> None:
    hold(rig)
    small = rig.report("r").throughput_pps
    rig.plant.routers["r"].frame_bytes = 640
    rig.tick(10)
    assert rig.report("r").throughput_pps == pytest.approx(small / 10, rel=0.02)


def test_a_law_gets_kilobits_and_no_model_in_packets() -> None:
    asked = []

    class Listening(AdaptiveLaw):
        def step(
            self, state: AdaptiveState, setpoint: float, sample: Sample, bounds: Bounds
        ) -> tuple[AdaptiveState, Decision]:
            asked.append((setpoint, sample.throughput, sample.offered, sample.packets))
            return super().step(state, setpoint, sample, bounds)

    profile = Profile(PaperLaw(PI), BOUNDS, law_in_bits=Listening())
    sample = Sample(40e3, CapFraction(0.2), 50e3, binding=True, in_bits=InBits(25e3, 30e3))
    instance = Instance(IN_BITS, Seconds(0.0))
    instance, _ = step(instance, profile, Seconds(1.0), sample)
    step(instance.given(Lease(20e3)), profile, Seconds(2.0), sample)  # the other law
    assert asked == [(20e3, 25e3, 30e3, 40e3)]


@pytest.mark.parametrize(
    ("in_bits", "finding"),
    [
        (InBits(19.5e3, 30e3), Finding.NOT_BINDING),
        (InBits(9e3, 9.5e3), Finding.NOT_BINDING),  # so little is offered
        (InBits(9e3, 30e3), Finding.STARVED),
        (InBits(9e3, None), Finding.NOT_BINDING),
    ],
)
def test_what_a_router_lacks_is_found_in_its_own_unit(in_bits: InBits, finding: Finding) -> None:
    sample = Sample(40e3, CapFraction(0.2), 40e3, binding=False, in_bits=in_bits)
    instance, _ = step(
        Instance(IN_BITS, Seconds(0.0)), Profile(AdaptiveLaw(), BOUNDS), Seconds(1.0), sample
    )
    assert instance.finding is finding


# Changes of unit


def test_another_unit_begins_to_learn_again_from_the_cap_that_stands(rig: Rig) -> None:
    rig.hold("r", 40e3)
    before, held = rig.manager.routers["r"].instance, rig.cap("r")
    assert before is not None
    assert before.law_state is not None
    rig.ask(Retune("r", setpoint_bps=SETPOINT))
    after = rig.manager.routers["r"].instance
    assert after is not None
    assert (after.law_state, after.watch, after.capped) == (None, Watch(), True)
    assert rig.cap("r") == held
    rig.tick(6)
    assert bits(rig) == pytest.approx(SETPOINT, rel=0.02)
    rig.ask(Retune("r", 10e3))
    rig.tick(6)
    assert rig.holds("r", 10e3)


def test_another_setpoint_in_the_same_unit_keeps_what_was_learned(rig: Rig) -> None:
    hold(rig)
    rig.ask(Retune("r", setpoint_bps=SETPOINT / 2))
    instance = rig.manager.routers["r"].instance
    assert instance is not None
    assert instance.law_state is not None


@pytest.mark.parametrize(
    ("configured", "leased"),
    [(Setpoint(10e3), IN_BITS), (Setpoint(SETPOINT / 2, Unit.BITS), Lease(30e3))],
)
def test_a_lease_that_ends_leaves_the_configured_unit(
    tmp_path: Path, configured: Setpoint, leased: Lease
) -> None:
    rig = Rig(tmp_path, {"r": replace(plan("r"), setpoint=configured)})
    order = leased.setpoint
    rig.ask(Activate("r", order.pps, ttl_s=8.0, setpoint_bps=order.bps))
    rig.tick(7)
    assert rig.report("r").finding is Finding.NONE
    rig.tick(9)
    report = rig.report("r")
    assert (report.setpoint_pps, report.setpoint_bps) == (configured.pps, configured.bps)
    forwarded = report.throughput_pps if configured.bps is None else report.throughput_bps
    assert forwarded == pytest.approx(configured.rate, rel=0.02)


def test_a_reload_changes_the_unit(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"r": replace(plan("r"), setpoint=Setpoint(10e3))})
    rig.tick(6)
    changed = {"r": replace(rig.plans["r"], setpoint=Setpoint(SETPOINT, Unit.BITS))}
    rig.manager.reconfigure(changed, max_release_share=1.0)
    rig.tick(8)
    assert bits(rig) == pytest.approx(SETPOINT, rel=0.02)


def test_a_law_for_packets_is_no_law_for_bits(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"r": replace(plan("r"), law="pi")})
    refusal = rig.refused(Activate("r", setpoint_bps=SETPOINT))
    assert (refusal.code, refusal.field) == ("unit", "setpoint_bps")
    assert refusal.problem == "law pi holds no bits/s"
    assert not rig.report("r").active


def test_a_reload_to_a_law_for_packets_leaves_bits_to_the_default_law(rig: Rig) -> None:
    hold(rig)
    changed = {"r": replace(rig.plans["r"], law="pi")}
    rig.manager.reconfigure(changed, max_release_share=1.0)
    rig.tick(8)
    assert bits(rig) == pytest.approx(SETPOINT, rel=0.02)
    assert rig.report("r").law == "default"
    rig.ask(Retune("r", 20e3))
    assert rig.report("r").law == "pi"


# Reports, journal, faults


def test_both_units_are_reported_and_one_setpoint(rig: Rig) -> None:
    rig.tick(2)
    idle = rig.report("r")
    assert (idle.throughput_bps, idle.offered_bps) == (
        pytest.approx(512 * idle.throughput_pps, rel=1e-3),
        pytest.approx(512 * idle.offered_pps, rel=1e-3),
    )
    hold(rig)
    held = rig.report("r")
    assert (held.setpoint_pps, held.setpoint_bps) == (None, SETPOINT)
    rig.ask(Retune("r", 20e3))
    assert (rig.report("r").setpoint_pps, rig.report("r").setpoint_bps) == (20e3, None)


def test_a_lease_in_bits_goes_on_after_a_crash(rig: Rig) -> None:
    hold(rig)
    rig.restart()
    assert rig.report("r").setpoint_bps == SETPOINT
    rig.tick(6)
    assert bits(rig) == pytest.approx(SETPOINT, rel=0.02)


def test_what_a_limit_dropped_counts_as_packets_of_the_same_size(rig: Rig) -> None:
    rig.tick(2)
    rig.ask(Limit("r", 30e3))
    rig.tick(2)
    before = rig.report("r")
    rig.limiter.drops["r.0"] = 50_000
    rig.tick(1)
    after = rig.report("r")
    assert after.offered_pps == pytest.approx(before.offered_pps + 50e3)
    assert after.offered_bps == pytest.approx(512 * after.offered_pps, rel=1e-3)


def test_bytes_that_make_no_sense_blind_a_router_in_bits_and_no_other(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"r": plan("r"), "s": plan("s")})
    rig.hold("s", 20e3)
    hold(rig)
    for _ in range(DEGRADE_AFTER):
        for router in rig.plant.routers.values():
            router.forwarded_bytes += 1e15
        rig.tick()
    broken, fine = rig.report("r"), rig.report("s")
    assert (broken.mode, broken.throughput_bps) == (Mode.DEGRADED, None)
    assert "do not count bytes" in broken.problem
    assert broken.throughput_pps is not None
    assert (fine.mode, fine.problem) == (Mode.CLOSED_LOOP, "")
    assert rig.holds("s", 20e3)
    rig.tick(8)
    assert rig.report("r").problem == ""
    assert bits(rig) == pytest.approx(SETPOINT, rel=0.02)


def test_a_router_that_does_not_answer_is_found_in_bits_too(rig: Rig) -> None:
    flat(rig.plant.routers["r"])
    hold(rig, periods=20)
    assert rig.report("r").finding is Finding.UNRESPONSIVE
    rig.ask(Retune("r", 20e3))  # another unit is another try
    rig.tick(2)
    assert rig.cap("r") is not None


def test_large_frames_at_the_floor_are_an_answer() -> None:
    """Bits may stay what they were when frames grow: packets tell whether the cap has an effect."""
    profile = Profile(AdaptiveLaw(), BOUNDS)
    instance = Instance(IN_BITS, Seconds(0.0), capped=True)
    large = Sample(1e6, CapFraction(0.01), None, CapFraction(0.01), in_bits=InBits(80e3))
    plain = Sample(20e6, CapFraction(0.5), None, CapFraction(0.4), in_bits=InBits(80e3))
    instance, _ = step(instance, profile, Seconds(0.0), plain)
    for second in range(1, 10):
        instance, _ = step(instance, profile, Seconds(second), large)
    assert instance.finding is Finding.AT_FLOOR


def test_what_is_left_of_a_router_may_lower_its_cap_in_bits(rig: Rig) -> None:
    hold(rig)
    managed, before = rig.manager.routers["r"], rig.cap("r")
    assert before is not None
    half = Reading(None, None, ("r.0",), ("r.1: not there",), incomplete=True)
    rest = structs.replace(
        half, at_least=PacketsPerSecond(1e3), at_least_bps=BitsPerSecond(2 * SETPOINT)
    )
    command = managed.step(rest, rig.clock.now(), PERIOD)
    assert command.period is not None
    assert command.period.mean < before
    for bps in (SETPOINT / 2, None):  # in packets it would be far above the number of the setpoint
        less = structs.replace(rest, at_least=PacketsPerSecond(1e8), at_least_bps=bps)
        assert managed.step(less, rig.clock.now(), PERIOD) == KEEP


def test_what_is_offered_is_taken_in_frames_of_the_size_that_is_forwarded(rig: Rig) -> None:
    """A veth may count frames without their header, and a tunnel sends larger ones."""
    hold(rig)
    managed = rig.manager.routers["r"]
    reading = Reading(
        PacketsPerSecond(10e3),
        PacketsPerSecond(11e3),
        ("r.0",),
        throughput_bps=BitsPerSecond(5e6),
        offered_bps=BitsPerSecond(3e6),
    )
    managed.step(reading, rig.clock.now(), PERIOD)
    assert managed.sample is not None
    assert managed.sample.in_bits == InBits(5e3, pytest.approx(5.5e3))
    none = structs.replace(
        reading, throughput=PacketsPerSecond(0.0), throughput_bps=BitsPerSecond(0.0)
    )
    managed.step(none, rig.clock.now(), PERIOD)
    assert managed.sample.in_bits == InBits(0.0, 3e3)
