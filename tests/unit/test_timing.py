"""The timing inequality."""

import pytest

from xtc.errors import ConfigError
from xtc.instance import DEGRADE_AFTER, HOLD_AFTER, RELEASE_AFTER
from xtc.timing import LEASE_PERIODS, check_timing
from xtc.units import Seconds


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
