"""The timing inequality of period, ladder, leases and watchdog.

    2 · meter period ≤ period
    3 · period ≤ watchdog
    HOLD (2L) < DEGRADED (5L) < RELEASED (30L), where L = max(T, 0.2 s)

A lease shorter than two steps L of the ladder would end before its effect is visible; such requests
are refused. docs/reference/timing.md explains why.
"""

from collections.abc import Mapping

from common.errors import ConfigError, Mistakes
from common.units import Seconds
from xtc.config.plan import RouterPlan
from xtc.control.instance import DEGRADE_AFTER, HOLD_AFTER, RELEASE_AFTER, ladder_step
from xtc.spec import ActuatorSpec, DeadlineSpec, LibvirtSpec

assert 1 < HOLD_AFTER < DEGRADE_AFTER < RELEASE_AFTER

EARLY = 0.4
"""Share of a period below which a sample says too little: it becomes part of the next one.

One that begins with a repeated reading lasts half a period, less the delay of that reading."""
LATE = 3
"""Periods after which a tick is unrelated to the previous one: rates start again."""
WATCHDOG_PERIODS = 3
LEASE_PERIODS = 2
"""Steps of the ladder."""
FAST = Seconds(0.2)
"""Below this period not every actuator can follow. Domains cannot: their calls take tens of
milliseconds, Xen grants CPU time in slices of 30 ms, and QEMU counts it in steps of 10 ms."""
REFILLS = 5
"""Minimum scheduling periods of a deadline router in a sample of a fast loop."""


def least_ttl(period: Seconds) -> Seconds:
    """Return the shortest lease under a loop of this period."""
    return Seconds(LEASE_PERIODS * ladder_step(period))


def check_followed(routers: Mapping[str, RouterPlan], period: Seconds) -> None:
    """Refuse a period that a router's actuator cannot follow.

    Raises:
        ConfigError: names each such router, and the shortest period that it supports.
    """
    mistakes = Mistakes()
    for name, plan in routers.items() if period < FAST else ():
        with mistakes.noted():
            _check_follows(f"router.{name}.actuator", plan.spec, period)
    mistakes.check()


def _check_follows(where: str, spec: ActuatorSpec, period: Seconds) -> None:
    if isinstance(spec, LibvirtSpec):
        raise ConfigError(
            where,
            f"daemon.period_s {period:g} is too short for libvirt: caps take tens of milliseconds "
            "there, and CPU time is counted in steps of 10 to 30 ms",
            f"set daemon.period_s to {FAST:g} or more, or run another daemon for it",
        )
    if isinstance(spec, DeadlineSpec) and REFILLS * spec.period_us > period * 1e6:
        raise ConfigError(
            f"{where}.period_us",
            f"{spec.period_us} us is too long for daemon.period_s {period:g}",
            f"at most {round(period * 1e6 / REFILLS)}",
        )


def check_timing(period: Seconds, meter_period: Seconds, watchdog: Seconds | None) -> None:
    """Refuse incompatible times.

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
