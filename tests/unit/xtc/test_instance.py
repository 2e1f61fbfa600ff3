"""One loop: the ladder, the end of a lease, a pause, and a router that does not answer."""

import math
from dataclasses import replace

import msgspec
import pytest

from common.setpoint import Setpoint
from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.control.adaptive import AdaptiveLaw
from xtc.control.dither import SLOTS
from xtc.control.headroom import IN_A_ROW
from xtc.control.instance import (
    DEGRADE_AFTER,
    HOLD_AFTER,
    KEEP,
    RELEASE,
    RELEASE_AFTER,
    RETRY_UNRESPONSIVE,
    UNRESPONSIVE_AFTER,
    Act,
    Instance,
    Profile,
    proven,
    step,
)
from xtc.control.law import PI, Bounds, PaperLaw, Sample
from xtc.lease import Kind, Lease
from xtc.modes import Finding, Mode

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


def kernel(throughput: float, cap: float, used: float | None = 1e-4) -> Sample:
    """Return a sample of a router that forwards in the host's kernel, beside the cap."""
    return Sample(
        PacketsPerSecond(throughput),
        CapFraction(cap),
        used=None if used is None else CapFraction(used),
        binding=False,
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
    assert command.act is Act.SET


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
    profile = replace(PROFILE, default_setpoint=Setpoint(50e3))
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
    instance, command = step(instance, PROFILE, Seconds(now), kernel(40e3, BOUNDS.floor))
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
            instance, PROFILE, Seconds(START + count), kernel(30e3, BOUNDS.floor)
        )
        assert command.act is Act.SET
    assert instance.finding is Finding.AT_FLOOR


@pytest.mark.parametrize(
    ("seen", "given_up"),
    [
        (kernel(40e3, 0.01, used=0.00079), True),  # more than 50 Mp/s of one CPU
        (kernel(40e3, 0.01, used=0.00081), False),
        (
            msgspec.structs.replace(kernel(40e3, 0.01), binding=True),
            True,
        ),  # its daemons are throttled
        (kernel(40e3, 0.01, used=None), True),
        (msgspec.structs.replace(kernel(40e3, 0.01, used=None), binding=True), False),
    ],
)
def test_who_forwards_with_the_cpu_that_is_capped_answers_to_it(
    seen: Sample, *, given_up: bool
) -> None:
    """A quiet router's floor carries all that it is offered; a busy one is throttled at it."""
    instance = running()
    for count in range(1, UNRESPONSIVE_AFTER + 1):
        instance, command = step(instance, PROFILE, Seconds(START + count), seen)
    assert (command.act is Act.RELEASE) is given_up


def test_a_punishment_is_never_lifted_because_it_has_no_effect() -> None:
    instance = running(Lease(20e3, expires_at=START + 1e6, kind=Kind.PUNISHMENT))
    for count in range(3 * UNRESPONSIVE_AFTER):
        instance, act = at_floor(instance, START + count)
        assert act is Act.SET


@pytest.mark.parametrize(
    ("throughput", "offered", "cap", "finding"),
    [
        (17e3, 40e3, 0.5, Finding.STARVED),
        (17.9e3, 20e3, 0.5, Finding.STARVED),
        (18e3, 40e3, 0.5, Finding.NOT_BINDING),  # within 10 % of its setpoint
        (9e3, 10e3, 0.5, Finding.NOT_BINDING),  # and of what is offered, where that is less
        (8.9e3, 10e3, 0.5, Finding.STARVED),
        (17e3, 40e3, None, Finding.STARVED),
        (17e3, None, 0.5, Finding.NOT_BINDING),
    ],
)
def test_a_router_that_its_cap_does_not_hold_lacks_load_or_cpu(
    throughput: float, offered: float | None, cap: float | None, finding: Finding
) -> None:
    seen = msgspec.structs.replace(
        sample(throughput, cap, binding=False),
        offered=None if offered is None else PacketsPerSecond(offered),
    )
    instance, _ = step(Instance(Lease(20e3), Seconds(START)), PROFILE, Seconds(START), seen)
    assert instance.finding is finding


@pytest.mark.parametrize(
    ("waited", "finding"),
    [(None, Finding.STARVED), (0.6, Finding.STARVED), (0.02, Finding.NOT_BINDING)],
)
@pytest.mark.parametrize("shielded", [True, False])
def test_a_router_that_never_waited_for_a_cpu_lacks_something_else(
    waited: float | None, finding: Finding, *, shielded: bool
) -> None:
    seen = msgspec.structs.replace(
        sample(5e3, 0.5, binding=False),
        offered=PacketsPerSecond(20e3),
        shielded=shielded,
        guarded=shielded,
    )
    instance = Instance(Lease(20e3), Seconds(START))
    for at in range(IN_A_ROW):
        instance, _ = step(instance, PROFILE, Seconds(START + at), seen)
    assert proven(instance, waited).finding is finding


def test_what_a_router_waited_changes_no_other_finding() -> None:
    instance = Instance(Lease(20e3), Seconds(START), finding=Finding.AT_CEILING)
    assert proven(instance, 0.0) == instance


def test_no_law_leaves_the_configured_bounds() -> None:
    """Within its dead zone the paper's law keeps the cap it began with, a whole CPU."""
    profile = Profile(PaperLaw(PI), Bounds(CapFraction(0.1), CapFraction(0.5)))
    instance = Instance(Lease(20e3), Seconds(START))
    _, command = step(instance, profile, Seconds(START), sample(20e3, None))
    assert command.period is not None
    assert command.period.caps == (0.5,) * SLOTS


def _watching(samples: list[tuple[float, float]], profile: Profile = PROFILE) -> list[Act]:
    """Return what a loop held at 20 kp/s commands at (throughput, cap) of each second."""
    instance, acts = Instance(Lease(20e3), Seconds(START)), []
    for second, (throughput, cap) in enumerate(samples):
        instance, command = step(
            instance, profile, Seconds(START + second), kernel(throughput, cap)
        )
        acts.append(command.act)
    return acts


@pytest.mark.parametrize(
    ("throughput", "cap", "given_up"),
    [
        (33e3, 0.01, True),  # 82.5 % of the 40 kp/s at cap 50
        (32.1e3, 0.01, True),
        (31.9e3, 0.01, False),  # under 80 %: it answers, if only a little
        (33e3, 0.0101, True),  # the floor, as near as an actuator comes to it
        (33e3, 0.0102, False),
        (33e3, 0.03, False),
    ],
)
def test_unresponsive_is_who_keeps_80_percent_of_its_throughput_at_the_floor(
    throughput: float, cap: float, *, given_up: bool
) -> None:
    acts = _watching([(40e3, 0.5)] + [(throughput, cap)] * 3)
    assert (acts[-1] is Act.RELEASE) is given_up


@pytest.mark.parametrize(("throughput", "given_up"), [(22.1e3, True), (21.9e3, False)])
def test_within_10_percent_of_its_setpoint_a_router_is_held(
    throughput: float, *, given_up: bool
) -> None:
    acts = _watching([(23e3, 0.5)] + [(throughput, 0.01)] * 3)
    assert (acts[-1] is Act.RELEASE) is given_up


@pytest.mark.parametrize(("cap", "given_up"), [(0.039, True), (0.04, True), (0.041, False)])
def test_only_above_four_times_the_floor_a_sample_says_what_the_router_forwards(
    cap: float, *, given_up: bool
) -> None:
    """40 kp/s at cap 50; a later sample of 60 kp/s counts if its cap is far above the floor."""
    acts = _watching([(40e3, 0.5), (60e3, cap)] + [(45e3, 0.01)] * 3)
    assert (acts[-1] is Act.RELEASE) is given_up


def test_a_sample_that_answers_starts_the_count_again() -> None:
    stubborn = (40e3, 0.01)
    acts = _watching([(40e3, 0.5), stubborn, stubborn, (30e3, 0.01), stubborn, stubborn])
    assert Act.RELEASE not in acts


def test_without_a_sample_far_above_the_floor_nothing_is_concluded() -> None:
    assert Act.RELEASE not in _watching([(40e3, 0.01)] * 5)


def test_from_the_safe_cap_the_law_starts_again() -> None:
    loop = running(profile=SAFE)
    assert loop.law_state is not None
    degraded, _ = step(loop, SAFE, Seconds(START + DEGRADE_AFTER), None)
    assert degraded.law_state is None
    seeing, command = step(degraded, SAFE, Seconds(START + DEGRADE_AFTER + 1), sample(10e3, 0.2))
    assert seeing.mode is Mode.CLOSED_LOOP
    assert command.period is not None
    assert command.period.mean == pytest.approx(0.4, rel=0.01)  # in proportion, as a first step


def test_without_a_safe_cap_a_degraded_loop_keeps_what_it_learned() -> None:
    loop = running()
    degraded, command = step(loop, PROFILE, Seconds(START + DEGRADE_AFTER), None)
    assert (degraded.mode, degraded.law_state, command) == (Mode.DEGRADED, loop.law_state, KEEP)


@pytest.mark.parametrize("blind_for", [HOLD_AFTER, DEGRADE_AFTER, RELEASE_AFTER])
def test_a_loop_that_does_not_see_says_so(blind_for: int) -> None:
    instance, _ = blind(running(), blind_for)
    assert instance.finding is Finding.BLIND


def test_a_release_leaves_nothing_of_the_loop() -> None:
    instance, _ = blind(running(profile=replace(PROFILE, quantum=0.01)), RELEASE_AFTER)
    assert (instance.law_state, instance.owed, instance.capped) == (None, 0.0, False)


def test_a_released_loop_stays_released_while_it_is_blind() -> None:
    instance, _ = blind(running(), RELEASE_AFTER)
    for periods in (RELEASE_AFTER + 1, 3 * RELEASE_AFTER):
        later, act = blind(instance, periods)
        assert (later.mode, act) == (Mode.RELEASED, Act.KEEP)


def test_a_lease_that_ends_uncapped_commands_nothing() -> None:
    uncapped = Instance(Lease(20e3, expires_at=START), Seconds(START))
    instance, command = step(uncapped, PROFILE, Seconds(START), sample())
    assert (instance.mode, command) == (Mode.RELEASED, KEEP)


@pytest.mark.parametrize("throughput", [math.nan, math.inf])
def test_a_throughput_that_is_no_number_is_no_sample(throughput: float) -> None:
    instance, command = step(running(), PROFILE, Seconds(START + 2), sample(throughput))
    assert (instance.mode, command) == (Mode.HOLD, KEEP)


def test_a_pause_is_no_blindness() -> None:
    paused = msgspec.structs.replace(running(), paused=True)
    paused, _ = step(paused, PROFILE, Seconds(START + 100), None)
    resumed = msgspec.structs.replace(paused, paused=False)
    resumed, command = step(resumed, PROFILE, Seconds(START + 101), None)
    assert (resumed.mode, command) == (Mode.MANUAL, KEEP)


@pytest.mark.parametrize(
    ("throughput", "cap", "binding", "finding"),
    [
        (20e3, 0.5, True, Finding.NONE),
        (22e3, 0.5, True, Finding.NONE),
        (22.1e3, 0.5, True, Finding.SETTLING),
        (18e3, 0.5, True, Finding.NONE),
        (17.9e3, 0.5, True, Finding.SETTLING),
        (15e3, 0.5, False, Finding.NOT_BINDING),
        (10e3, 1.0, True, Finding.AT_CEILING),
        (22.1e3, 0.01, True, Finding.AT_FLOOR),
        (21.9e3, 0.01, True, Finding.NONE),
    ],
)
def test_what_a_loop_finds(
    throughput: float, cap: float, *, binding: bool, finding: Finding
) -> None:
    instance = Instance(Lease(20e3), Seconds(START))
    instance, _ = step(instance, PROFILE, Seconds(START), sample(throughput, cap, binding=binding))
    assert instance.finding is finding


@pytest.mark.parametrize(
    ("quantum", "slow", "levels"), [(0.0, False, 1), (0.01, False, 2), (0.01, True, 1)]
)
def test_a_period_alternates_where_caps_are_coarse_and_writes_quick(
    quantum: float, *, slow: bool, levels: int
) -> None:
    profile = replace(PROFILE, quantum=quantum, slow=slow)
    instance = Instance(Lease(20e3), Seconds(START))
    instance, command = step(instance, profile, Seconds(START), sample(30e3, 0.05))
    assert command.period is not None
    assert len(set(command.period.caps)) == levels


def test_what_a_period_owes_is_paid_in_the_next() -> None:
    """A mean of 3.34 % from caps of whole percents and tenths of a period."""
    profile = replace(PROFILE, quantum=0.01)
    instance, means = Instance(Lease(20e3), Seconds(START)), []
    cap = 0.0334
    for second in range(10):
        instance, command = step(
            instance, profile, Seconds(START + second), sample(20e3, cap, binding=True)
        )
        assert command.period is not None
        means.append(command.period.mean)
    assert sum(means) / len(means) == pytest.approx(cap, abs=1.5e-4)
    assert len({round(mean, 6) for mean in means}) > 1
