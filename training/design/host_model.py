"""Turn a fit and a design into the host of a model file."""

from common.units import format_cap
from models import ControlGains, HostModel, LogCapModel, Uncertainty
from models.curve import MAX_RATE
from training.design.gains import Design, Loop
from training.fit.fit import Fit
from training.fit.interval import Interval
from training.fit.levels import USUAL
from training.fit.verdict import verdict_on
from training.recording.recording import Metadata

LARGEST_LAG = 0.95
"""A loop of one sample cannot hold a host that keeps more than this share of a step."""
PAPER_FLOOR = 0.01
"""The smallest cap of Xen, and of a quota with a period of 100 ms."""


def host_model(fit: Fit, design: Design, metadata: Metadata) -> HostModel:
    """Return the host as `models.dump_host` writes it and the daemon reads it.

    The minimum cap of the dead-beat law, which the paper found by trial (section 7.2.2), is the
    smallest useful cap of the fit.

    Raises:
        models.InvalidModelError: the numbers do not describe a host.
    """
    floor = min(PAPER_FLOOR, fit.points[0].cap)
    return HostModel(
        name=metadata.host,
        description=_description(fit, metadata),
        hypervisor=metadata.hypervisor,
        cpu=metadata.cpu,
        kernel=metadata.kernel,
        measured_curve=fit.curve,
        log_model=_log_model(fit),
        lag=lag_of(fit),
        delay_samples=fit.eq1.delay,
        cap_floor=floor,
        cap_ceiling=max(1.0, fit.points[-1].cap),
        uncertainty=uncertainty_of(fit),
        pi=_gains(design.pi, design.period_s, floor),
        dead_beat=_gains(design.dead_beat, design.period_s, fit.smallest_useful_cap),
        cost=None if fit.cost is None else fit.cost.cost,
    )


def uncertainty_of(fit: Fit) -> Uncertainty:
    """Return the precision of the curve, for the daemon and for promises.

    If no cap was visited twice, the change of the host's speed is unknown; the mixed model's prior,
    which fits most hosts, stands in.
    """
    variation = fit.variation
    trend = variation.trend if variation is not None and variation.drifts else 0.0
    points = [point for point in fit.points if point.throughput_pps.value > 0]
    return Uncertainty(
        noise=min(fit.noise, 1.0),
        speed_sd=USUAL if variation is None else min(variation.speed, 1.0),
        trend=min(max(trend, -1.0), 1.0),
        intervals=tuple((point.cap, *_ends(point.throughput_pps)) for point in points),
        top=_ends(fit.top),
        limited_by=fit.limited_by,
    )


def _ends(rate: Interval) -> tuple[float, float]:
    """Return the ends of an interval in packets/s, in significant digits."""
    low, high = (float(f"{end:.6g}") for end in (rate.low, rate.high))
    return max(low, 0.0), min(high, MAX_RATE)


def lag_of(fit: Fit) -> float:
    """Return the fitted `a`, limited to that of a stable host."""
    return min(max(fit.eq1.a.value, 0.0), LARGEST_LAG)


def b_of(fit: Fit) -> float:
    """Return the `b` that matches the lag and keeps the measured steady slope."""
    return fit.eq1.line.gain.value * (1 - lag_of(fit))


def _log_model(fit: Fit) -> LogCapModel:
    eq1 = fit.eq1
    return LogCapModel(
        a=lag_of(fit),
        b=b_of(fit),
        mean_throughput=eq1.line.mean_throughput,
        mean_log_cap=eq1.line.mean_log_cap,
        cap_threshold=fit.cap_threshold,
        offered=fit.offered_pps or fit.top_pps,
        r_squared=min(max(eq1.r_squared, 0.0), 1.0),
    )


def _gains(loop: Loop, period_s: float, min_cap: float) -> ControlGains:
    return ControlGains(kp=loop.kp, ki=loop.ki, period=period_s, min_cap=min_cap)


def _description(fit: Fit, metadata: Metadata) -> str:
    parts = [
        f"Measured {metadata.started}" if metadata.started else "Measured",
        f"through {metadata.actuator}" if metadata.actuator else "",
        f"on router {metadata.router}" if metadata.router else "",
        f"by xtc {metadata.xtc_version}" if metadata.xtc_version else "",
    ]
    caps = f"caps from {format_cap(fit.points[0].cap)} to {format_cap(fit.points[-1].cap)}"
    error = fit.held_out_error
    held_out = (
        "" if error is None else f" Caps held out were predicted within {error:.1%} (median)."
    )
    verdict = verdict_on(fit)
    rough = "" if verdict.usable else f" Rough: {verdict.words}."
    where = " ".join(filter(None, parts))
    text = f"{where}, {caps}: {fit.shapes.words}.{held_out}{rough}"[:1000]
    # A control character takes six in the file, where lines have a maximum length.
    return "".join(one if one.isprintable() else " " for one in text)
