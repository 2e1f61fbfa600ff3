"""The timing inequality."""

from dataclasses import replace

import pytest
from simulated_rig import plan

from common.errors import ConfigError
from common.units import Seconds
from xtc.config.timing import FAST, LEASE_PERIODS, check_followed, check_timing, least_ttl
from xtc.control.instance import DEGRADE_AFTER, HOLD_AFTER, LEAST_STEP, RELEASE_AFTER, ladder_step
from xtc.spec import ActuatorSpec, CgroupSpec, DeadlineSpec, LibvirtSpec, SimulatedSpec

DEADLINE = DeadlineSpec(netns="/run/netns/vr", interfaces=("eth0",))


def test_the_published_times_lie_to_each_other_as_published() -> None:
    assert (HOLD_AFTER, DEGRADE_AFTER, RELEASE_AFTER, LEASE_PERIODS) == (2, 5, 30, 2)


@pytest.mark.parametrize(
    ("period", "meter", "watchdog"), [(1.0, 0.1, None), (1.0, 0.5, 3.0), (0.2, 0.1, 60.0)]
)
def test_times_that_work_together(period: float, meter: float, watchdog: float | None) -> None:
    check_timing(Seconds(period), Seconds(meter), None if watchdog is None else Seconds(watchdog))


def test_a_meter_too_slow_for_the_period_is_named() -> None:
    with pytest.raises(ConfigError, match=r"daemon\.meter_period_s.*at most 0\.5"):
        check_timing(Seconds(1.0), Seconds(0.51), None)


def test_a_watchdog_too_fast_for_the_period_is_named() -> None:
    with pytest.raises(ConfigError, match=r"WatchdogSec.*set it to 6 s"):
        check_timing(Seconds(2.0), Seconds(0.1), Seconds(5.9))


@pytest.mark.parametrize(("period", "step"), [(0.1, 0.2), (0.2, 0.2), (1.0, 1.0), (60.0, 60.0)])
def test_a_fast_loop_climbs_the_ladder_no_faster(period: float, step: float) -> None:
    assert ladder_step(Seconds(period)) == step
    assert least_ttl(Seconds(period)) == 2 * step
    assert LEAST_STEP == FAST


@pytest.mark.parametrize(
    "spec", [CgroupSpec("/g"), DEADLINE, SimulatedSpec("a"), LibvirtSpec("gold")]
)
@pytest.mark.parametrize("period", [0.2, 1.0])
def test_every_actuator_follows_what_is_not_fast(spec: ActuatorSpec, period: float) -> None:
    check_followed({"a": replace(plan("a"), spec=spec)}, Seconds(period))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (CgroupSpec("/g"), ""),
        (DEADLINE, ""),
        (
            LibvirtSpec("gold"),
            r"router\.a\.actuator: daemon\.period_s 0\.1 .*libvirt.* 0\.2 or more",
        ),
        (
            DeadlineSpec(netns="/n", interfaces=("eth0",), period_us=20_001),
            r"router\.a\.actuator\.period_us: 20001 us .* 0\.1 .*at most 20000",
        ),
    ],
)
def test_a_period_that_an_actuator_cannot_follow_is_named(spec: ActuatorSpec, words: str) -> None:
    routers = {"a": replace(plan("a"), spec=spec), "b": replace(plan("b"), spec=DEADLINE)}
    if not words:
        check_followed(routers, Seconds(0.1))
        return
    with pytest.raises(ConfigError, match=words) as error:
        check_followed(routers, Seconds(0.1))
    assert "router.b" not in str(error.value)
