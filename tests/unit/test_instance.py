"""One loop: the ladder, the end of a lease, a pause, and a router that does not answer."""

from dataclasses import replace

import msgspec
import pytest

from xtc.adaptive import AdaptiveLaw
from xtc.dither import SLOTS
from xtc.instance import (
    DEGRADE_AFTER,
    HOLD_AFTER,
    KEEP,
    RELEASE,
    RELEASE_AFTER,
    RETRY_UNRESPONSIVE,
    UNRESPONSIVE_AFTER,
    Act,
    Finding,
    Instance,
    Mode,
    Profile,
    step,
)
from xtc.law import PI, Bounds, PaperLaw, Sample
from xtc.lease import Kind, Lease
from xtc.units import CapFraction, PacketsPerSecond, Seconds

START = 100.0
BOUNDS = Bounds(CapFraction(0.01), CapFraction(1.0))
PROFILE = Profile(AdaptiveLaw(), BOUNDS)
SAFE = replace(PROFILE, safe_cap=CapFraction(0.2))


def sample(
    throughput: float = 40e3, cap: float | None = 0.5, *, binding: bool | None = True
) -> Sample:
    return Sample(
        PacketsPerSecond(throughput), None if cap is None else CapFraction(cap), binding=binding
    )


def running(lease: Lease | None = None, profile: Profile = PROFILE) -> Instance:
    """Return a loop that has just set a cap."""
    instance = Instance(lease or Lease(20e3), Seconds(START))
    instance, command = step(instance, profile, Seconds(START), sample())
    assert command.act is Act.SET
    return instance


def blind(instance: Instance, periods: float, profile: Profile = PROFILE) -> tuple[Instance, Act]:
    instance, command = step(instance, profile, Seconds(START + periods * profile.period), None)
    return instance, command.act


@pytest.mark.parametrize(
    ("periods", "mode", "act"),
    [
        (HOLD_AFTER - 0.01, Mode.CLOSED_LOOP, Act.KEEP),
        (HOLD_AFTER, Mode.HOLD, Act.KEEP),
        (DEGRADE_AFTER - 0.01, Mode.HOLD, Act.KEEP),
        (DEGRADE_AFTER, Mode.DEGRADED, Act.KEEP),
        (RELEASE_AFTER - 0.01, Mode.DEGRADED, Act.KEEP),
        (RELEASE_AFTER, Mode.RELEASED, Act.RELEASE),
    ],
)
@pytest.mark.parametrize("period", [0.2, 1.0, 60.0])
def test_the_ladder_is_stepped_at_its_periods(
    periods: float, mode: Mode, act: Act, period: float
) -> None:
    profile = replace(PROFILE, period=Seconds(period))
    instance, done = blind(running(profile=profile), periods, profile)
    assert (instance.mode, done) == (mode, act)


def test_degraded_goes_to_the_safe_cap_where_there_is_one() -> None:
    instance, command = step(running(), SAFE, Seconds(START + DEGRADE_AFTER), None)
    assert instance.mode is Mode.DEGRADED
    assert command.period is not None
    assert command.period.caps == (0.2,) * SLOTS


def test_degraded_caps_nothing_that_is_not_capped() -> None:
    uncapped = Instance(Lease(20e3), Seconds(START))
    assert blind(uncapped, DEGRADE_AFTER, SAFE)[1] is Act.KEEP


def test_a_safe_cap_out_of_bounds_is_drawn_in() -> None:
    profile = replace(SAFE, bounds=Bounds(CapFraction(0.3), CapFraction(0.6)))
    _, command = step(running(), profile, Seconds(START + DEGRADE_AFTER), None)
    assert command.period is not None
    assert command.period.mean == pytest.approx(0.3)


def test_release_is_commanded_once() -> None:
    instance, first = blind(running(), RELEASE_AFTER)
    assert (first, blind(instance, RELEASE_AFTER + 1)[1]) == (Act.RELEASE, Act.KEEP)


def test_a_loop_that_sees_again_begins_anew() -> None:
    instance, _ = blind(running(), RELEASE_AFTER)
    assert instance.law_state is None
    instance, command = step(instance, PROFILE, Seconds(START + 31), sample(cap=None))
    assert instance.mode is Mode.CLOSED_LOOP
    assert command.act in {Act.SET, Act.KEEP}


def test_one_sample_ends_every_step_of_the_ladder() -> None:
    for periods in (HOLD_AFTER, DEGRADE_AFTER):
        instance, _ = blind(running(), periods)
        instance, _ = step(instance, PROFILE, Seconds(START + periods + 1), sample())
        assert (instance.mode, instance.seen_at) == (Mode.CLOSED_LOOP, START + periods + 1)


def test_the_punished_stay_until_their_lease_ends() -> None:
    lease = Lease(1e3, expires_at=START + 100, kind=Kind.PUNISHMENT)
    for periods in (HOLD_AFTER, DEGRADE_AFTER, RELEASE_AFTER, 99.9):
        instance, act = blind(running(lease), periods, SAFE)
        assert (instance.mode, act) == (Mode.HOLD, Act.KEEP)
    instance, act = blind(running(lease), 100, SAFE)
    assert (instance.finding, act) == (Finding.LEASE_ENDED, Act.RELEASE)


def test_a_lease_that_ends_without_a_default_releases_once() -> None:
    instance = running(Lease(20e3, expires_at=START + 5))
    instance, command = step(instance, PROFILE, Seconds(START + 4.9), sample())
    assert command.act is Act.SET
    instance, command = step(instance, PROFILE, Seconds(START + 5), sample())
    assert (instance.mode, instance.finding, command) == (
        Mode.RELEASED,
        Finding.LEASE_ENDED,
        RELEASE,
    )
    assert step(instance, PROFILE, Seconds(START + 6), sample())[1] == KEEP


def test_a_lease_that_ends_falls_back_to_the_default() -> None:
    profile = replace(PROFILE, default_setpoint=PacketsPerSecond(50e3))
    instance = running(Lease(20e3, epoch=3, sequence=9, expires_at=START + 5), profile)
    instance, command = step(instance, profile, Seconds(START + 5), sample())
    assert instance.lease == Lease(50e3, epoch=3, sequence=9, configured=True)
    assert command.act is Act.SET


def test_a_pause_leaves_the_cap_alone_but_not_the_lease() -> None:
    loop = running(Lease(20e3, expires_at=START + 50))
    paused = msgspec.structs.replace(loop, paused=True)
    instance, command = step(paused, PROFILE, Seconds(START + 40), None)
    assert (instance.mode, command) == (Mode.MANUAL, KEEP)
    assert step(instance, PROFILE, Seconds(START + 50), sample())[1] == RELEASE


def test_an_idle_router_is_not_capped_blindly() -> None:
    instance = Instance(Lease(20e3), Seconds(START))
    instance, command = step(instance, PROFILE, Seconds(START), sample(100, None, binding=None))
    assert (instance.finding, command) == (Finding.NOT_BINDING, KEEP)


def at_floor(instance: Instance, now: float) -> tuple[Instance, Act]:
    instance, command = step(instance, PROFILE, Seconds(now), sample(40e3, BOUNDS.floor))
    return instance, command.act


def test_a_router_that_does_not_answer_is_given_up_and_tried_again_later() -> None:
    instance = running()
    for count in range(1, UNRESPONSIVE_AFTER + 1):
        instance, act = at_floor(instance, START + count)
        assert (act is Act.RELEASE) is (count == UNRESPONSIVE_AFTER)
    assert (instance.mode, instance.finding) == (Mode.RELEASED, Finding.UNRESPONSIVE)
    for count in range(RETRY_UNRESPONSIVE):
        instance, command = step(instance, PROFILE, Seconds(START + 4 + count), sample(cap=None))
        assert command == KEEP
    instance, command = step(instance, PROFILE, Seconds(START + 65), sample(cap=None))
    assert command.act is Act.SET


def test_a_router_that_answers_even_a_little_is_not_given_up() -> None:
    instance = running()
    for count in range(1, 10):
        instance, command = step(
            instance, PROFILE, Seconds(START + count), sample(30e3, BOUNDS.floor)
        )
        assert command.act is Act.SET
    assert instance.finding is Finding.AT_FLOOR


def test_no_law_leaves_the_configured_bounds() -> None:
    """Within its dead zone the paper's law keeps the cap it began with, a whole CPU."""
    profile = Profile(PaperLaw(PI), Bounds(CapFraction(0.1), CapFraction(0.5)))
    instance = Instance(Lease(20e3), Seconds(START))
    _, command = step(instance, profile, Seconds(START), sample(20e3, None))
    assert command.period is not None
    assert command.period.caps == (0.5,) * SLOTS
