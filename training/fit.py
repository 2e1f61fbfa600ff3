"""Fits a host's model to a sweep, or says what the sweep lacks and what to measure.

The curve comes from steady samples, `a` of Eq. 1 from step responses, the verdict from samples
that were held out of both.
"""

import math
import statistics
from collections.abc import Sequence

import msgspec

from models import InvalidModelError, ThroughputCurve
from training import eq1
from training.data import Phase, Recording, Sample
from training.eq1 import Eq1, Line, Pair
from training.errors import UnfitError
from training.loads import LoadEffect, load_effects
from training.points import CapPoint, points_of, pooled_scatter, standard_error, threshold_of
from training.shape import Comparison, compare
from training.wander import Wander, wander_of

LEAST_POINTS = 4
"""Caps below the threshold without which a slope has no believable interval."""
LEAST_CAPS = 5
"""Caps in all, so that a shape of three parameters can leave one out."""
ANSWERS = 0.10
"""A throughput that rises by less than this share over all caps does not answer to them."""
REACHED = 0.95
"""Share of the uncapped throughput at which the largest cap no longer binds."""
FALLS = 0.05
"""A fall of the mean by more than this share, and beyond the noise, is no noise."""
SURE = 4.0
"""Standard errors beyond which a fall between any two of some twenty caps is no chance."""
SCATTERED = 0.25
"""A cap whose samples scatter by more than this share holds no router still."""
STEP_SAMPLES = 3
"""Samples of step responses needed beyond the number of their caps."""


class HeldOut(msgspec.Struct, frozen=True):
    """One cap that no fit saw: packets/s as the curve foretells it and as it was measured."""

    cap: float
    predicted_pps: float
    measured_pps: float

    @property
    def error(self) -> float:
        """The distance as a share of what was measured."""
        return abs(self.predicted_pps - self.measured_pps) / max(self.measured_pps, 1e-9)


class Fit(msgspec.Struct, frozen=True):
    """What a sweep says of its host."""

    points: tuple[CapPoint, ...]
    offered_pps: float | None
    """The offered load, where it is known."""
    top_pps: float
    """The largest throughput, by the monotone curve."""
    uncapped_pps: float | None
    cap_threshold: float
    """The smallest cap, in CPUs, from which on throughput rises by less than 1 % of the top."""
    threshold_reached: bool
    """Whether the sweep went far enough to see the top; else the threshold is its last cap."""
    smallest_useful_cap: float
    """The smallest cap, in CPUs, whose samples scatter little enough to be held by a loop."""
    noise: float
    """Standard deviation of a sample at a constant cap, as a share of its mean; the median cap's"""
    eq1: Eq1
    shapes: Comparison
    curve_r_squared: float
    """Share of the variance of the steady samples that the monotone curve explains."""
    held_out: tuple[HeldOut, ...] = ()
    loads: tuple[LoadEffect, ...] = ()
    """What further offered rates did to the curve."""
    wander: Wander | None = None
    """How the host's speed changed during the sweep; None where no cap was visited twice."""

    @property
    def curve(self) -> ThroughputCurve:
        """The monotone curve, as models keep it."""
        return ThroughputCurve(
            tuple((p.cap, p.smoothed_pps) for p in self.points), self.offered_pps
        )

    @property
    def held_out_error(self) -> float | None:
        """The median error at caps that were held out, as a share; None where none was."""
        return statistics.median(h.error for h in self.held_out) if self.held_out else None


def fit(recording: Recording) -> Fit:
    """Fit everything that the recording supports.

    Raises:
        UnfitError: the samples cannot support a fit; it says what to measure.
    """
    # Samples under another load tell of the load, and nothing of what is fitted here.
    samples = tuple(s for s in recording.samples if s.phase != "load")
    loads = load_effects(recording)
    recording = Recording(recording.metadata, samples)
    points = points_of(_of(samples, "steady"))
    uncapped = [s.throughput_pps for s in _of(samples, "uncapped")]
    top = statistics.fmean(uncapped) if uncapped else None
    _check_points(points, top)
    threshold = threshold_of(points)
    line = _line(points, threshold)
    found = Fit(
        points=points,
        offered_pps=_offered(recording),
        top_pps=points[-1].smoothed_pps,
        uncapped_pps=top,
        cap_threshold=threshold,
        threshold_reached=_reached(points, threshold, top),
        smallest_useful_cap=_smallest_useful(points),
        noise=statistics.median(point.scatter for point in points),
        eq1=_eq1(recording, line, threshold),
        shapes=compare([p.cap for p in points], [p.throughput_pps.value for p in points]),
        curve_r_squared=_explained(points, _of(samples, "steady")),
        wander=wander_of((*_of(samples, "steady"), *_of(samples, "held_out")), threshold),
    )
    _check_offered(found)
    return msgspec.structs.replace(found, held_out=_held_out(found.curve, samples), loads=loads)


def _of(samples: Sequence[Sample], phase: Phase) -> list[Sample]:
    return [sample for sample in samples if sample.phase == phase]


def _check_points(points: Sequence[CapPoint], uncapped: float | None) -> None:
    """Refuse what is no curve: too few caps, no answer, or a fall beyond the noise."""
    if len(points) < LEAST_CAPS:
        raise UnfitError(
            "points",
            f"steady samples at {len(points)} caps",
            f"measure {LEAST_CAPS} caps or more, most of them where throughput still rises",
        )
    if points[-1].smoothed_pps <= 0:
        raise UnfitError(
            "throughput",
            "no packet was forwarded at any cap",
            "check that packets are sent towards the router, and that its interfaces are the ones",
        )
    _check_answer(points, uncapped)
    _check_monotone(points)


def _check_answer(points: Sequence[CapPoint], uncapped: float | None) -> None:
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
        f"throughput does not answer to the cap from {smallest} up",
        "check that the actuator reaches what forwards: no quota touches the host's own kernel",
    )


def _check_monotone(points: Sequence[CapPoint]) -> None:
    best, scatter = points[0], pooled_scatter(points)
    for point in points[1:]:
        before, here = best.throughput_pps.value, point.throughput_pps.value
        doubt = SURE * math.hypot(_doubt(best, scatter), _doubt(point, scatter))
        if before - here > max(FALLS * before, doubt):
            raise UnfitError(
                "monotone",
                f"throughput falls from {before:.0f} to {here:.0f} packets/s as the cap rises "
                f"from {best.cap * 100:.3g} to {point.cap * 100:.3g} %",
                "measure again at a constant offered load, with nothing else on the host",
            )
        if here > before:
            best = point


def _doubt(point: CapPoint, scatter: float) -> float:
    """Return a mean's standard error; samples that lie together by chance are not believed."""
    usual = scatter * point.throughput_pps.value / math.sqrt(point.samples)
    return max(standard_error(point), usual)


def _line(points: Sequence[CapPoint], threshold: float) -> Line:
    region = [p for p in points if p.cap < threshold and p.binding and p.smoothed_pps > 0]
    if len(region) < LEAST_POINTS:
        raise UnfitError(
            "region",
            f"{len(region)} caps below the threshold of {threshold * 100:.3g} % bind",
            f"measure {LEAST_POINTS} caps or more below it",
        )
    line = eq1.steady_line([(p.cap, p.throughput_pps.value) for p in region])
    if line.gain.value <= 0:
        raise UnfitError(
            "gain",
            "below the threshold more cap gives no more throughput",
            "measure caps that are further apart",
        )
    return line


def _eq1(recording: Recording, line: Line, threshold: float) -> Eq1:
    """Find the dynamics from the steps, and judge Eq. 1 by all neighbours below the threshold."""
    period = recording.metadata.period_s
    begun = _with_starts(recording.samples)

    def steps_at(delay: int) -> list[Pair]:
        return eq1.pairs_of(begun, period, threshold, delay)

    _check_steps(steps_at(0))
    delay = eq1.delay_of(steps_at)
    every = eq1.pairs_of(recording.samples, period, threshold, delay)
    return eq1.eq1_of(line, steps_at(delay), every, delay)


def _with_starts(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of the step responses, and the one before each, where the step began."""
    following = [*samples[1:], *samples[-1:]]
    return [
        s for s, after in zip(samples, following, strict=True) if "step" in (s.phase, after.phase)
    ]


def _check_steps(steps: Sequence[Pair]) -> None:
    moves = sum(pair.moved for pair in steps)
    caps = len({pair.cap for pair in steps})
    if moves < eq1.LEAST_STEPS or len(steps) < caps + 1 + STEP_SAMPLES:
        raise UnfitError(
            "steps",
            f"{moves} changes of cap below the threshold were followed sample by sample, so that "
            "a of Eq. 1 is not known (steady samples alone give b/(1 - a))",
            f"measure {eq1.LEAST_STEPS} steps or more between two caps, each for 3 samples or more",
        )


def _offered(recording: Recording) -> float | None:
    if recording.metadata.offered_pps is not None:
        return recording.metadata.offered_pps
    seen = [s.offered_pps for s in recording.samples if s.offered_pps]
    return statistics.median(seen) if seen else None


def _check_offered(found: Fit) -> None:
    """Say it in the words of a sweep where the curve and the offered load contradict."""
    try:
        _ = found.curve
    except InvalidModelError as error:
        raise UnfitError("offered", f"{error.field}: {error.problem}", error.fix) from error


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
    level = {point.cap: point.smoothed_pps for point in points}
    seen = [(s.throughput_pps, level[s.cap]) for s in samples if s.cap is not None]
    mean = statistics.fmean(actual for actual, _ in seen)
    spread = sum((actual - mean) ** 2 for actual, _ in seen)
    return 1 - sum((actual - curve) ** 2 for actual, curve in seen) / spread


def _held_out(curve: ThroughputCurve, samples: Sequence[Sample]) -> tuple[HeldOut, ...]:
    found = points_of(_of(samples, "held_out"))
    return tuple(
        HeldOut(point.cap, curve.throughput(point.cap), point.throughput_pps.value)
        for point in found
    )
