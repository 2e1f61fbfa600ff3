"""Fit a host's model to a sweep, or report what the sweep lacks and what to measure.

The curve comes from steady samples, `a` of Eq. 1 from step responses, the quality check from
samples held out of both.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from models import InvalidModelError, ThroughputCurve
from training.errors import UnfitError
from training.fit import eq1
from training.fit.cost import CostFit, cost_of
from training.fit.drift import Variation, variation_of
from training.fit.dynamics import Dynamics, dynamics_of
from training.fit.eq1 import Eq1, Line, Pair
from training.fit.interval import Interval
from training.fit.loads import LoadEffect, load_effects
from training.fit.means import Outlier, VisitMean, means_of
from training.fit.points import LOADED, SILENT, CapPoint, Curve, curve_of, standard_error
from training.fit.shape import Comparison, compare
from training.recording.recording import Phase, Recording, Sample

LEAST_POINTS = 4
"""Minimum number of caps below the threshold for a credible interval of the slope."""
LEAST_CAPS = 5
"""Minimum number of caps: a shape of three parameters must be able to leave one out."""
ANSWERS = 0.10
"""A throughput that rises by less than this share over all caps does not respond to them."""
REACHED = 0.95
"""Share of the uncapped throughput at which the largest cap no longer binds."""
FALLS = 0.05
"""A fall of the mean by more than this share, and beyond the noise, is real."""
SURE = 4.0
"""Standard errors beyond which a fall between any two of some twenty caps is not chance."""
SCATTERED = 0.25
"""A cap with samples that scatter by more than this share does not hold a router."""
STEP_SAMPLES = 3
"""Samples of step responses needed beyond the number of their caps."""

Limit = Literal["load", "host"]


class HeldOut(msgspec.Struct, frozen=True):
    """One cap held out of the fit: packets/s as the curve predicts and as measured."""

    cap: float
    predicted_pps: float
    measured_pps: float

    @property
    def error(self) -> float:
        """The distance as a share of the measured value."""
        return abs(self.predicted_pps - self.measured_pps) / max(self.measured_pps, 1e-9)


class Fit(msgspec.Struct, frozen=True):
    """Result of a sweep: the host's fit."""

    points: tuple[CapPoint, ...]
    offered_pps: float | None
    """The offered load, if known."""
    top_pps: float
    """The largest throughput, by the monotone curve."""
    top: Interval
    """The same with its interval, from uncapped samples and all caps that do not limit the
    router."""
    limited_by: Limit | None
    """What limits the top; None if the sweep ended below it."""
    uncapped_pps: float | None
    cap_threshold: float
    """The smallest measured cap, in CPUs, from which on throughput no longer rises."""
    threshold_above: float
    """The largest cap measured below that: the curve bends between the two."""
    threshold_reached: bool
    """Whether the sweep went far enough to see the top; else the threshold is its last cap."""
    smallest_useful_cap: float
    """The smallest cap, in CPUs, at which samples scatter little enough for a loop to hold it."""
    noise: float
    """Standard deviation of a sample at a constant cap, as a share of its mean; the median cap's"""
    eq1: Eq1
    shapes: Comparison
    curve_r_squared: float
    """Share of the variance of the steady samples that the monotone curve explains."""
    held_out: tuple[HeldOut, ...] = ()
    loads: tuple[LoadEffect, ...] = ()
    """Effect of further offered rates on the curve."""
    variation: Variation | None = None
    """Change of the host's speed during the sweep; None if no cap was visited twice."""
    outliers: tuple[Outlier, ...] = ()
    """Outliers left out: samples far from the others of their visit."""
    cost: CostFit | None = None
    """Cost of packets by size; None if one size was measured, or if it is not known."""
    cost_unknown: str = ""
    """Why several sizes do not determine the cost, and what to measure; else empty."""

    @property
    def curve(self) -> ThroughputCurve:
        """The monotone curve, as stored in models."""
        return ThroughputCurve(
            tuple((p.cap, p.smoothed_pps) for p in self.points), self.offered_pps
        )

    @property
    def held_out_error(self) -> float | None:
        """The median error at held-out caps, as a share; None if there are none."""
        return statistics.median(h.error for h in self.held_out) if self.held_out else None

    @property
    def held_out_worst(self) -> float | None:
        """The largest error at held-out caps, as a share; None if there are none."""
        return max((h.error for h in self.held_out), default=None)


def fit(recording: Recording) -> Fit:
    """Fit everything that the recording supports.

    Raises:
        UnfitError: the samples cannot support a fit; the error says what to measure.
    """
    try:
        return _fitted(recording)
    except np.linalg.LinAlgError as error:
        problem = "their times or rates leave no one solution"
        fix = "look at at_s and throughput_pps: samples come one period after the other"
        raise UnfitError("samples", problem, fix) from error


def _fitted(recording: Recording) -> Fit:
    # Samples under another load show the effect of the load, which is not fitted here.
    samples = tuple(s for s in recording.samples if s.phase != "load")
    loads = load_effects(recording)
    whole = recording
    recording = Recording(recording.metadata, samples)
    period = recording.metadata.period_s
    host = dynamics_of(samples, period)
    means = means_of(samples, period, host)
    offered = offered_in(recording)
    _check_sizes(samples)
    _check_caps(means.visits)
    curve = curve_of(means, offered)
    uncapped = _uncapped(means.visits)
    _check_answer(curve.points, uncapped)
    _check_monotone(curve.single)
    points, threshold = curve.points, curve.threshold
    chance = eq1.lack_of_fit(curve.rising)
    line = _line(points, threshold, chance)
    cost, cost_unknown = _cost(whole, threshold)
    return Fit(
        points=points,
        offered_pps=offered,
        top_pps=points[-1].smoothed_pps,
        top=curve.top,
        limited_by=_limit(curve, offered),
        uncapped_pps=uncapped,
        cap_threshold=threshold,
        threshold_above=curve.knee[0],
        threshold_reached=_reached(points, threshold, uncapped),
        smallest_useful_cap=_smallest_useful(points),
        noise=statistics.median(point.scatter for point in points),
        eq1=_eq1(recording, line, threshold, host, chance),
        shapes=_shapes(points),
        curve_r_squared=_explained(points, _of(samples, "steady")),
        held_out=_held_out(points, offered, curve.held_out),
        variation=variation_of(means.visits, curve),
        outliers=means.outliers,
        loads=loads,
        cost=cost,
        cost_unknown=cost_unknown,
    )


def _cost(recording: Recording, threshold: float) -> tuple[CostFit | None, str]:
    """Return the cost of packets, or why it is not known: the curve does not need it."""
    try:
        return cost_of(recording, threshold), ""
    except UnfitError as error:
        return None, str(error)


def _of(samples: Sequence[Sample], phase: Phase) -> list[Sample]:
    return [sample for sample in samples if sample.phase == phase]


def _uncapped(means: Sequence[VisitMean]) -> float | None:
    rates = [rate for one in means if one.phase == "uncapped" for rate in one.rates]
    return statistics.fmean(rates) if rates else None


def _limit(curve: Curve, offered: float | None) -> Limit | None:
    """Return what limits the top; None if there is no plateau."""
    if curve.knee[0] >= curve.knee[1]:
        return None
    return "load" if offered is not None and curve.top.value >= LOADED * offered else "host"


def _check_caps(means: Sequence[VisitMean]) -> None:
    """Reject too few caps, and caps that forward nothing."""
    steady = [one for one in means if one.phase == "steady" and one.cap is not None]
    if len({one.cap for one in steady}) < LEAST_CAPS:
        raise UnfitError(
            "points",
            f"steady samples at {len({one.cap for one in steady})} caps",
            f"measure {LEAST_CAPS} caps or more, most of them where throughput still rises",
        )
    most = max((one.mean for one in means), default=0.0)
    if not any(one.mean > SILENT * most for one in steady):
        raise UnfitError(
            "throughput",
            "no packet was forwarded at any cap",
            "check that packets are sent towards the router, and that its interfaces are the ones",
        )


def _check_sizes(samples: Sequence[Sample]) -> None:
    """Reject a curve of packets of several sizes: each size has its own curve."""
    sizes = sorted({s.packet_bytes for s in samples if s.packet_bytes is not None})
    if len(sizes) > 1:
        raise UnfitError(
            "packet_bytes",
            f"the curve is of packets of {', '.join(map(str, sizes))} bytes",
            "sweep with one --packet-size first; further ones are measured apart",
        )


def _check_answer(points: Sequence[CapPoint], uncapped: float | None) -> None:
    """Reject a throughput that does not respond to the cap."""
    low, high = points[0].smoothed_pps, points[-1].smoothed_pps
    if high - low >= ANSWERS * high:
        return
    smallest = f"{points[0].cap * 100:.3g} %"
    if not any(p.binding for p in points) or (uncapped is not None and low >= REACHED * uncapped):
        raise UnfitError(
            "binding",
            f"no cap from {smallest} up held the router back",
            "offer more load, or measure smaller caps",
        )
    raise UnfitError(
        "answer",
        f"throughput does not follow the cap from {smallest} up",
        "check that the actuator reaches what forwards: no quota touches the host's own kernel",
    )


def _check_monotone(caps: Sequence[tuple[float, Interval]]) -> None:
    """Reject a fall that neither noise nor the change of the host between visits explains."""
    best_cap, best = caps[0]
    for cap, here in caps[1:]:
        doubt = SURE * math.hypot(standard_error(best), standard_error(here))
        if best.value - here.value > max(FALLS * best.value, doubt):
            raise UnfitError(
                "monotone",
                f"throughput falls from {best.value:.0f} to {here.value:.0f} packets/s as the cap "
                f"rises from {best_cap * 100:.3g} to {cap * 100:.3g} %",
                "measure again at a constant offered load, with nothing else on the host",
            )
        if here.value > best.value:
            best_cap, best = cap, here


def _line(points: Sequence[CapPoint], threshold: float, chance: float) -> Line:
    region = [p for p in points if p.cap < threshold and p.binding and p.smoothed_pps > 0]
    if len(region) < LEAST_POINTS:
        raise UnfitError(
            "region",
            f"{len(region)} caps below the threshold of {threshold * 100:.3g} % bind",
            f"measure {LEAST_POINTS} caps or more below it",
        )
    line = eq1.steady_line([(p.cap, p.throughput_pps.value) for p in region], chance)
    if line.gain.value <= 0:
        raise UnfitError(
            "gain",
            "below the threshold more cap gives no more throughput",
            "measure caps that are further apart",
        )
    return line


def _shapes(points: Sequence[CapPoint]) -> Comparison:
    rates = [point.throughput_pps.value for point in points]
    return compare([point.cap for point in points], rates, [point.error_pps for point in points])


def _eq1(
    recording: Recording, line: Line, threshold: float, host: Dynamics | None, chance: float
) -> Eq1:
    """Evaluate Eq. 1 on all consecutive samples below the threshold, with known lag and delay."""
    period = recording.metadata.period_s
    host = _check_steps(eq1.pairs_of(recording.samples, period, threshold), host)
    every = eq1.pairs_of(recording.samples, period, threshold, host.delay)
    return eq1.eq1_of(line, host, every, chance)


def _check_steps(pairs: Sequence[Pair], host: Dynamics | None) -> Dynamics:
    """Reject too few changes of cap that were followed sample by sample."""
    visits = {pair.visit for pair in pairs if pair.moved}
    followed = [pair for pair in pairs if pair.visit in visits]
    moves, caps = len(visits), len({pair.cap for pair in followed})
    if host is None or moves < eq1.LEAST_STEPS or len(followed) < caps + 1 + STEP_SAMPLES:
        raise UnfitError(
            "steps",
            f"{moves} changes of cap below the threshold were followed sample by sample, so that "
            "a of Eq. 1 is not known (steady samples alone give b/(1 - a))",
            f"measure {eq1.LEAST_STEPS} steps or more between two caps, each for 3 samples or more",
        )
    return host


def offered_in(recording: Recording) -> float | None:
    """Return the offered load of a recording in packets/s; None if unknown."""
    if recording.metadata.offered_pps is not None:
        return recording.metadata.offered_pps
    seen = [s.offered_pps for s in recording.samples if s.offered_pps]
    return statistics.median(seen) if seen else None


def _reached(points: Sequence[CapPoint], threshold: float, uncapped: float | None) -> bool:
    if uncapped is not None and points[-1].smoothed_pps < REACHED * uncapped:
        return False
    return threshold < points[-1].cap or not points[-1].binding


def _smallest_useful(points: Sequence[CapPoint]) -> float:
    """Return the smallest cap from which on samples forward something and scatter little."""
    useful = points[-1].cap
    for point in reversed(points):
        if point.smoothed_pps <= 0 or point.scatter > SCATTERED:
            break
        useful = point.cap
    return useful


def _explained(points: Sequence[CapPoint], samples: Sequence[Sample]) -> float:
    level: dict[float | None, float] = {point.cap: point.smoothed_pps for point in points}
    seen = [(s.throughput_pps, level[s.cap]) for s in samples if s.cap in level]
    mean = statistics.fmean(actual for actual, _ in seen)
    spread = sum((actual - mean) ** 2 for actual, _ in seen)
    return 1 - sum((actual - curve) ** 2 for actual, curve in seen) / spread


def _held_out(
    points: Sequence[CapPoint], offered: float | None, held_out: Sequence[CapPoint]
) -> tuple[HeldOut, ...]:
    try:
        curve = ThroughputCurve(tuple((p.cap, p.smoothed_pps) for p in points), offered)
    except InvalidModelError as error:
        raise UnfitError("offered", f"{error.field}: {error.problem}", error.fix) from error
    return tuple(
        HeldOut(point.cap, curve.throughput(point.cap), point.throughput_pps.value)
        for point in held_out
    )
