"""Checks whether a router accepts a request; a refusal names the field and the fix."""

from common.burst import burst_bounds, burst_words
from common.setpoint import Setpoint, Unit
from common.units import Seconds
from xtc.config.timing import least_ttl
from xtc.control.laws import NAMES_IN_BITS
from xtc.errors import Permanent, Refused
from xtc.manager.router import ManagedRouter


def check_active(managed: ManagedRouter) -> None:
    """Refuse to change the loop of a router without one.

    Raises:
        Refused: the router is not under control.
    """
    if managed.instance is None:
        raise Refused(
            "inactive",
            "vr",
            f"{managed.plan.name} is not being held",
            f"`xtc activate {managed.plan.name} --setpoint 20kpps` begins it",
        )


def check_unit(managed: ManagedRouter, setpoint: Setpoint) -> None:
    """Refuse bits/s for a law that supports packets/s only.

    Raises:
        Refused: the router's law is one of the paper's.
    """
    law = managed.plan.law
    if setpoint.unit is Unit.BITS and law not in NAMES_IN_BITS:
        fix = f"give packets/s, such as 20kpps, or configure the law {' or '.join(NAMES_IN_BITS)}"
        raise Refused("unit", "setpoint_bps", f"law {law} holds no bits/s", fix)


def check_burst(setpoint: Setpoint) -> None:
    """Refuse an invalid burst, or one that makes the setpoint invalid.

    Raises:
        Refused: it is less than a packet or a frame, or more than a minute of the setpoint.
    """
    if setpoint.burst is None:
        return
    least, most = burst_bounds(setpoint)
    if not least <= setpoint.burst <= most:
        fix = f"give one {burst_words(setpoint)}"
        raise Refused("burst", "burst", f"{setpoint.burst:g} is out of range", fix)


def check_possible(managed: ManagedRouter) -> None:
    """Refuse a setpoint that this host cannot hold; transient problems are accepted.

    Raises:
        Refused: the actuator cannot be prepared, and no retry can fix it.
    """
    managed.controller.retry()
    problem = None if managed.controller.prepare() else managed.controller.problem
    if isinstance(problem, Permanent):
        raise Refused(problem.kind, "vr", f"{problem.target}: {problem.problem}", problem.fix)


def check_long_enough(ttl_s: float | None, period: Seconds) -> None:
    """Refuse a lease that would end before its effect is visible (`xtc.config.timing`).

    Raises:
        Refused: the time to live is shorter than LEASE_PERIODS steps of the ladder.
    """
    least = least_ttl(period)
    if ttl_s is not None and ttl_s < least:
        raise Refused("too_short", "ttl_s", f"{ttl_s:g} s is too short", f"at least {least:g} s")
