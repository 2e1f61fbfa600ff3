"""One router as it is held: its original, alternating caps, pauses of the daemon, observation."""

from dataclasses import replace
from pathlib import Path

import pytest
from manager_rig import PAPER, PERIOD
from msgspec import structs
from simulated_rig import Rig, configured_rig, flat, plan

from common.setpoint import Setpoint
from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.actuator.base import CapLimits
from xtc.control.dither import SLOTS
from xtc.control.instance import RELEASE_AFTER, RETRY_UNRESPONSIVE
from xtc.errors import Transient
from xtc.lease import Kind
from xtc.measure.collector import Reading
from xtc.modes import Finding, Mode
from xtc.wire import Activate, Deactivate, Limit, Observe, Pause, Resume

SETPOINT = 20e3
PERCENT = CapLimits(CapFraction(0.01), CapFraction(1.0), quantum=0.01)
QUIET, FLOOD = 100.0, 100e3


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"r": plan("r")})


def offer(rig: Rig, rate: float) -> None:
    router = rig.plant.routers["r"]
    router.plant = replace(router.plant, offered=PacketsPerSecond(rate))


# Who is punished does not end it


def test_a_punished_router_that_is_quiet_for_a_while_stays_punished(rig: Rig) -> None:
    offer(rig, QUIET)
    rig.tick(2)
    rig.ask(Activate("r", 1.0, kind=Kind.PUNISHMENT, ttl_s=3600.0))
    uncapped = 0
    for second in range(256):
        offer(rig, QUIET if second % 64 < 8 else FLOOD)
        rig.tick()
        uncapped += second > 2 and rig.cap("r") is None
    assert uncapped == 0


def test_a_punished_router_that_changes_its_cap_stays_capped(rig: Rig) -> None:
    rig.ask(Activate("r", 1e3, kind=Kind.PUNISHMENT, ttl_s=3600.0))
    rig.tick(5)
    for second in range(20):
        rig.plant.routers["r"].cap = CapFraction(0.9 - second / 100)
        rig.tick()
        assert rig.cap("r") == pytest.approx(0.01, abs=0.02)
    assert rig.report("r").mode is Mode.CLOSED_LOOP


def unresponsive(rig: Rig) -> None:
    flat(rig.plant.routers["r"])
    rig.hold("r", SETPOINT, periods=20)
    assert rig.report("r").finding is Finding.UNRESPONSIVE


def test_a_punishment_is_obeyed_at_once_after_a_router_did_not_answer(rig: Rig) -> None:
    unresponsive(rig)
    rig.plant.routers["r"].plant = PAPER
    rig.ask(Activate("r", 1e3, kind=Kind.PUNISHMENT, ttl_s=600.0))
    rig.tick(1)
    assert rig.cap("r") is not None


def test_a_lease_that_is_only_renewed_does_not_hurry_the_next_try(rig: Rig) -> None:
    unresponsive(rig)
    for _ in range(RETRY_UNRESPONSIVE // 2):
        rig.ask(Activate("r", SETPOINT, ttl_s=10.0))
        rig.tick()
        assert rig.cap("r") is None


# The original


@pytest.fixture
def shielded(tmp_path: Path) -> Rig:
    """A rig whose router needs no cap before there is a flood."""
    return Rig(tmp_path, {"r": replace(plan("r"), shield=True)})


def test_a_cap_that_is_set_between_activation_and_the_first_cap_is_the_original(
    shielded: Rig,
) -> None:
    offer(shielded, QUIET)
    shielded.ask(Activate("r", SETPOINT))
    shielded.tick(100)
    shielded.plant.routers["r"].cap = CapFraction(0.77)
    shielded.sent["r"] = PacketsPerSecond(FLOOD)
    for _ in range(8):
        shielded.shield.drops["r"] = shielded.shield.drops.get("r", 0) + 80_000
        shielded.tick()
    assert shielded.cap("r") == pytest.approx(0.06, abs=0.05)
    shielded.ask(Deactivate("r"))
    assert shielded.cap("r") == 0.77


def test_the_changed_original_is_durable_before_the_first_cap(shielded: Rig) -> None:
    offer(shielded, QUIET)
    shielded.ask(Activate("r", SETPOINT))
    shielded.tick(3)
    shielded.plant.routers["r"].cap = CapFraction(0.77)
    offer(shielded, FLOOD)
    shielded.tick(3)
    shielded.restart()  # the journal alone knows
    shielded.ask(Deactivate("r"))
    assert shielded.cap("r") == 0.77


def test_what_a_failed_cap_left_there_is_not_the_original(rig: Rig) -> None:
    offer(rig, FLOOD)
    rig.faults.errors["r", "apply"] = Transient("r", "half-way")
    rig.ask(Activate("r", SETPOINT))
    rig.tick(2)
    rig.plant.routers["r"].cap = CapFraction(0.33)
    rig.faults.errors.clear()
    rig.tick(8)
    assert rig.throughput("r") == pytest.approx(SETPOINT, rel=0.05)
    rig.ask(Deactivate("r"))
    assert rig.cap("r") is None


def test_a_tenant_who_keeps_changing_what_is_captured_is_capped_all_the_same(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT))
    for second in range(6):
        if rig.cap("r") in {None, *(CapFraction(0.9 - n / 100) for n in range(6))}:
            rig.plant.routers["r"].cap = CapFraction(0.9 - second / 100)
        rig.tick()
    assert rig.throughput("r") == pytest.approx(SETPOINT, rel=0.1)


def test_a_cap_that_another_process_set_is_left_where_xtc_never_wrote_one(shielded: Rig) -> None:
    offer(shielded, QUIET)
    shielded.ask(Activate("r", SETPOINT))
    shielded.tick(3)
    shielded.plant.routers["r"].cap = CapFraction(0.77)
    shielded.tick(3)
    shielded.ask(Deactivate("r"))
    assert shielded.cap("r") == 0.77


def test_the_journal_knows_nothing_of_a_router_that_was_never_capped(shielded: Rig) -> None:
    offer(shielded, QUIET)
    shielded.ask(Activate("r", SETPOINT))
    shielded.tick(3)
    assert shielded.journal.ledger.entries == {}
    shielded.restart()
    shielded.plant.routers["r"].cap = CapFraction(0.77)
    shielded.ask(Deactivate("r"))
    assert shielded.cap("r") == 0.77


# Caps that alternate within a period


@pytest.fixture
def alternating(rig: Rig) -> Rig:
    """A router at 5.9 kp/s on a host of whole percents, each 3.2 kp/s."""
    router = rig.plant.routers["r"]
    router.limits = PERCENT
    rig.ask(Activate("r", 5.9e3))
    spend(rig, 12)
    assert rig.manager.falling_caps()
    return rig


def spend(rig: Rig, periods: int) -> None:
    """Let periods pass in which caps fall as they do in a daemon."""
    for _ in range(periods):
        high = 0.0
        for slot, managed in rig.manager.falling_caps():
            high = slot / SLOTS
            rig.clock.sleep(Seconds(high))
            rig.plant.read(rig.clock.now())
            rig.manager.fall(managed)
        rig.tick(lasting=Seconds(PERIOD - high))


@pytest.mark.parametrize("cause", ["pause", "blind"])
def test_a_cap_that_is_kept_is_kept_at_its_mean(alternating: Rig, cause: str) -> None:
    mean = alternating.manager.routers["r"]._period
    assert mean is not None
    if cause == "pause":
        alternating.ask(Pause("r"))
    alternating.blind = cause == "blind"
    alternating.tick()
    assert alternating.cap("r") == pytest.approx(mean.mean, abs=0.005)
    assert not alternating.manager.falling_caps()


def test_a_period_whose_caps_cannot_be_written_is_not_taken_for_one_at_its_mean(
    alternating: Rig,
) -> None:
    alternating.faults.errors["r", "apply"] = Transient("r", "no")
    standing = alternating.cap("r")
    spend(alternating, 40)
    assert alternating.cap("r") == standing
    alternating.faults.errors.clear()
    alternating.manager.retry()
    spend(alternating, 2)
    cap = alternating.cap("r")
    assert cap is not None
    assert cap <= 0.04


def test_a_router_goes_on_after_a_pause_where_it_was(alternating: Rig) -> None:
    alternating.ask(Pause("r"))
    spend(alternating, 5)
    alternating.ask(Resume("r"))
    spend(alternating, 8)
    caps = [alternating.cap("r") or 1.0]
    assert max(caps) <= 0.03


# Time in which the daemon itself stood still


def test_a_daemon_that_got_no_cpu_for_long_releases_no_router(rig: Rig) -> None:
    rig.hold("r", SETPOINT)
    before = rig.cap("r")
    rig.clock.sleep(Seconds(120.0))
    rig.blind = True
    rig.tick()
    assert rig.cap("r") == before
    rig.blind = False
    rig.tick(3)
    assert rig.report("r").mode is Mode.CLOSED_LOOP


def test_a_lease_ends_in_time_however_long_the_daemon_stood_still(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT, ttl_s=60.0))
    rig.tick(5)
    rig.clock.sleep(Seconds(120.0))
    rig.blind = True
    rig.tick()
    assert rig.cap("r") is None


# Released by hand


def test_a_reload_does_not_hold_what_was_released_by_hand(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, r=SETPOINT)
    rig.tick(3)
    rig.ask(Deactivate("r"))
    rig.manager.reconfigure(rig.plans, max_release_share=1.0)
    rig.tick(3)
    assert (rig.cap("r"), rig.report("r").active) == (None, False)


def test_another_setpoint_in_the_configuration_holds_it_again(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, r=SETPOINT)
    rig.ask(Deactivate("r"))
    changed = {"r": replace(rig.plans["r"], setpoint=Setpoint(SETPOINT / 2))}
    rig.manager.reconfigure(changed, max_release_share=1.0)
    assert rig.report("r").setpoint_pps == SETPOINT / 2


def test_an_order_is_not_repeated_after_a_release_and_a_reload(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, r=SETPOINT)
    order = Activate("r", 9e3, epoch=7, sequence=2, ttl_s=60.0)
    rig.ask(order)
    rig.ask(Deactivate("r"))
    changed = {"r": replace(rig.plans["r"], setpoint=Setpoint(SETPOINT / 2))}
    rig.manager.reconfigure(changed, max_release_share=1.0)
    refused = rig.refused(order)
    assert refused.code == "stale_sequence"


# Limits


def test_a_former_leader_lifts_no_limit_of_its_successor(rig: Rig) -> None:
    rig.tick(2)
    rig.ask(Limit("r", 30e3, epoch=8))
    assert rig.refused(Limit("r", None, epoch=7)).code == "stale_epoch"
    assert rig.refused(Activate("r", 9e3, epoch=7, sequence=1)).code == "stale_epoch"


def test_an_interface_that_is_replaced_is_limited_again(rig: Rig) -> None:
    rig.tick(2)
    rig.ask(Limit("r", 30e3))
    rig.tick()
    rig.limiter.limits.clear()
    rig.tick()
    assert rig.limiter.limits == {"r.0": 30e3}


def test_a_limit_that_cannot_be_set_again_is_a_problem_until_it_can(rig: Rig) -> None:
    rig.tick(2)
    rig.ask(Limit("r", 30e3))
    rig.tick()
    rig.limiter.limits.clear()
    rig.limiter.refusal = Transient("r.0", "somebody else's qdisc")
    rig.tick()
    assert "not in force" in rig.report("r").problem
    rig.limiter.refusal = None
    rig.tick()
    assert (rig.report("r").problem, rig.limiter.limits) == ("", {"r.0": 30e3})


# Observation


def test_a_router_under_observation_is_never_capped_and_shows_its_cap(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"r": replace(plan("r", SETPOINT), observe=True)})
    for _ in range(10):
        rig.tick()
        assert rig.cap("r") is None
    report = rig.report("r")
    assert report.observing
    assert report.throughput_pps is not None
    assert report.proposed_cap == pytest.approx(SETPOINT / report.throughput_pps, rel=0.01)
    assert ("r", "apply") not in rig.faults.calls


def test_a_host_under_observation_writes_nothing(rig: Rig) -> None:
    rig.hold("r", SETPOINT)
    before = rig.cap("r")
    rig.manager.observe = True
    rig.ask(Activate("r", SETPOINT / 2))
    rig.tick(5)
    assert rig.cap("r") == before
    rig.manager.observe = False
    rig.tick(8)
    assert rig.throughput("r") == pytest.approx(SETPOINT / 2, rel=0.05)


def test_a_release_that_falls_due_under_observation_follows_it(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT, ttl_s=6.0))
    rig.tick(4)
    before = rig.cap("r")
    rig.ask(Observe(on=True))
    rig.tick(10)
    assert rig.cap("r") == before is not None
    rig.ask(Observe(on=False))
    rig.tick(2)
    assert rig.cap("r") is None


def test_observation_is_ordered_and_ended_by_a_request(rig: Rig) -> None:
    rig.tick(2)
    rig.ask(Observe(on=True))
    rig.ask(Activate("r", SETPOINT))
    rig.tick(3)
    assert rig.cap("r") is None
    assert rig.report("r").problem.startswith("only observed")
    assert rig.refused(Limit("r", 30e3)).code == "observing"
    rig.ask(Observe(on=False))
    rig.tick(8)
    assert rig.throughput("r") == pytest.approx(SETPOINT, rel=0.05)


# Interfaces


def test_a_router_that_loses_one_of_two_interfaces_keeps_its_cap(rig: Rig) -> None:
    rig.hold("r", SETPOINT)
    before = rig.cap("r")
    half = Reading(None, None, ("r.0",), ("r.1: not there",), incomplete=True)
    for _ in range(3 * RELEASE_AFTER):
        rig.clock.sleep(PERIOD)
        rig.manager.tick({"r": half}, rig.clock.now())
        assert rig.cap("r") == before
    assert (rig.report("r").mode, rig.report("r").finding) == (Mode.HOLD, Finding.BLIND)


def test_a_router_that_lost_an_interface_is_lowered_by_what_the_others_carry(rig: Rig) -> None:
    """It may have removed a spare one itself, to be measured no longer."""
    rig.hold("r", SETPOINT)
    before = rig.cap("r") or 0.0
    rig.ask(Activate("r", SETPOINT / 4))
    rest = Reading(None, None, ("r.0",), ("r.1: not there",), True, PacketsPerSecond(SETPOINT))
    for _ in range(3):
        rig.clock.sleep(PERIOD)
        rig.manager.tick({"r": rest}, rig.clock.now())
    assert (rig.cap("r") or 1.0) < before / 2
    lowered, less = rig.cap("r"), structs.replace(rest, at_least=PacketsPerSecond(1.0))
    rig.clock.sleep(PERIOD)
    rig.manager.tick({"r": less}, rig.clock.now())
    assert rig.cap("r") == lowered


def test_a_router_that_loses_every_interface_goes_down_the_ladder(rig: Rig) -> None:
    rig.hold("r", SETPOINT)
    nothing = Reading(None, None, (), ("no interface matches",))
    for _ in range(RELEASE_AFTER + 1):
        rig.clock.sleep(PERIOD)
        rig.manager.tick({"r": nothing}, rig.clock.now())
    assert (rig.report("r").mode, rig.cap("r")) == (Mode.RELEASED, None)
