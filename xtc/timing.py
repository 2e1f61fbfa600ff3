"""The timing inequality: how period, ladder, leases and watchdog must lie to each other.

    2 · meter period ≤ period
    3 · period ≤ watchdog
    HOLD (2T) < DEGRADED (5T) < RELEASED (30T)

A lease shorter than two periods would end before its effect could be seen; it is refused when it
is asked for. docs/timing.md tells why.
"""

from xtc.errors import ConfigError
from xtc.instance import DEGRADE_AFTER, HOLD_AFTER, RELEASE_AFTER
from xtc.units import Seconds

assert 1 < HOLD_AFTER < DEGRADE_AFTER < RELEASE_AFTER

LATE = 3
"""Periods after which a tick says nothing of the one before: rates start from anew."""
WATCHDOG_PERIODS = 3
LEASE_PERIODS = 2


def check_timing(period: Seconds, meter_period: Seconds, watchdog: Seconds | None) -> None:
    """Refuse times that cannot work together.

    Raises:
        ConfigError: names the field to change.
    """
    if 2 * meter_period > period:
        raise ConfigError(
            "daemon.meter_period_s",
            f"{meter_period:g} s is more than half the period of {period:g} s",
            f"at most {period / 2:g}",
        )
    if watchdog is not None and watchdog < WATCHDOG_PERIODS * period:
        raise ConfigError(
            "WatchdogSec",
            f"{watchdog:g} s is less than three periods of {period:g} s",
            f"set it to {WATCHDOG_PERIODS * period:g} s or more in the unit",
        )
