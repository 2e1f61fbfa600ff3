"""Reports of routers: the state of their loops, loads and problems, as the daemon publishes it."""

import math

from common.setpoint import Unit
from common.units import BitsPerSecond, PacketsPerSecond, Seconds
from xtc.control.headroom import is_held
from xtc.control.law import Sample
from xtc.control.laws import name_in_bits
from xtc.manager.router import ManagedRouter
from xtc.measure.collector import Side, with_dropped
from xtc.modes import Finding, Mode
from xtc.wire import Report


def report(managed: ManagedRouter, now: Seconds) -> Report:
    """Return the report of a router."""
    instance, reading, view = managed.instance, managed.reading, managed.view
    remaining = math.inf if instance is None else instance.lease.remaining(now)
    setpoint = None if instance is None else instance.setpoint
    shield, accounting = managed.shielded.rate, managed.accounting
    return Report(
        vr=managed.plan.name,
        active=instance is not None,
        mode=Mode.RELEASED if instance is None else instance.mode,
        finding=Finding.NONE if instance is None else instance.finding,
        setpoint_pps=None if setpoint is None else setpoint.pps,
        throughput_pps=None if reading is None else reading.throughput,
        offered_pps=_offered(managed),
        cap=None if view is None else view.cap,
        used=None if view is None else view.used,
        binding=_binding(managed),
        lease_remaining_s=None if math.isinf(remaining) else remaining,
        sample_age_s=None if instance is None else now - instance.seen_at,
        interfaces=managed.interfaces,
        problem=_problem(managed),
        law=_law(managed),
        limit_pps=managed.limit,
        shield_pps=None if shield is None else shield.pps,
        shield_bps=None if shield is None else shield.bps,
        shield_problem=managed.shielded.problem or managed.shielded.overruled,
        cap_known=view is not None or instance is None,
        epoch=None if instance is None else instance.lease.epoch,
        sequence=None if instance is None else instance.lease.sequence,
        observing=managed.observing,
        proposed_cap=managed.proposed,
        setpoint_bps=None if setpoint is None else setpoint.bps,
        throughput_bps=None if reading is None else reading.throughput_bps,
        offered_bps=_offered_bps(managed),
        burst=None if setpoint is None else setpoint.allowance,
        over_promise_packets=accounting.over(Unit.PACKETS),
        under_promise_packets=accounting.under(Unit.PACKETS),
        over_promise_bits=accounting.over(Unit.BITS),
        under_promise_bits=accounting.under(Unit.BITS),
        breach_seconds=accounting.breach_s,
        weight=managed.floor.weight if managed.controller.weights is not None else None,
        floor_problem=managed.floor.problem if instance is not None else "",
        uuid=managed.uuid,
    )


def bare_report(managed: ManagedRouter) -> Report:
    """Return a minimal report of a router whose full report failed: its name, and why."""
    return Report(
        vr=managed.plan.name,
        active=managed.instance is not None,
        mode=Mode.RELEASED if managed.instance is None else managed.instance.mode,
        finding=Finding.NONE,
        setpoint_pps=None,
        throughput_pps=None,
        offered_pps=None,
        cap=None,
        used=None,
        binding=None,
        lease_remaining_s=None,
        sample_age_s=None,
        interfaces=(),
        problem=managed.fault,
        cap_known=False,
    )


def _binding(managed: ManagedRouter) -> bool | None:
    """Return whether the cap or the shield limits the router."""
    instance, sample = managed.instance, managed.sample
    if sample is None or sample.binding or instance is None:
        return None if sample is None else sample.binding
    counted = sample.counted_in(instance.lease.unit)
    return counted is not None and is_held(counted, instance.lease.target)


def _offered(managed: ManagedRouter) -> PacketsPerSecond | None:
    """Return the packets/s sent towards the router, including what limit and shield dropped."""
    reached = None if managed.reading is None else managed.reading.offered
    dropped = _dropped(managed)
    return None if reached is None or dropped is None else PacketsPerSecond(reached + dropped)


def _offered_bps(managed: ManagedRouter) -> BitsPerSecond | None:
    reading = managed.reading
    if reading is None or reading.offered is None:
        return None
    return with_dropped(reading.offered, reading.offered_bps, _dropped(managed))


def _dropped(managed: ManagedRouter) -> PacketsPerSecond | None:
    """Return what limit and shield dropped and no counter contains; None where unknown."""
    if managed.kept_back is None or managed.shielded.dropped is None:
        return None
    uncounted = managed.shielded.dropped if managed.plan.binding.side is Side.HOST else 0.0
    return PacketsPerSecond(managed.kept_back + uncounted)


def _law(managed: ManagedRouter) -> str:
    in_bits = managed.instance is not None and managed.instance.lease.unit is Unit.BITS
    return name_in_bits(managed.plan.law) if in_bits else managed.plan.law


def _problem(managed: ManagedRouter) -> str:
    if problem := managed.fault or _problem_of_cap(managed):
        return problem
    if managed.reading is not None and managed.reading.problems:
        return "; ".join(managed.reading.problems)
    if managed.sample is not None and not _is_counted(managed, managed.sample):
        return "its interfaces do not count bytes plausibly (hold it in packets/s)"
    if managed.limit_problem or managed.observed:
        return managed.limit_problem or managed.observed
    if managed.instance is not None and managed.instance.finding is Finding.UNRESPONSIVE:
        return (
            "throughput does not follow the cap (a router that forwards in the host's "
            'kernel needs actuator kind = "deadline")'
        )
    return ""


def _is_counted(managed: ManagedRouter, sample: Sample) -> bool:
    """Whether a sample is known in the setpoint's unit."""
    return managed.instance is None or sample.counted_in(managed.instance.lease.unit) is not None


def _problem_of_cap(managed: ManagedRouter) -> str:
    held = managed.instance is not None or managed.controller.original is not None
    if held and managed.controller.problem is not None:
        return str(managed.controller.problem)
    if managed.instance is not None and managed.undurable:
        return managed.undurable
    if managed.controller.yielded:
        return "another process keeps changing the cap (find it, then `xtc resume`)"
    if held and managed.instance is None:
        return "the original cap is not restored yet"
    return ""
