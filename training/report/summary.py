"""Describe a fit in plain words, with warnings; pure."""

import math
from collections.abc import Iterator
from itertools import pairwise

from common.units import format_cap, format_rate
from models.logcap import PACKETS_PER_KP
from training.design.gains import Design, Loop
from training.fit.eq1 import log_percent
from training.fit.fit import SCATTERED, Fit
from training.fit.interval import Interval
from training.fit.points import CapPoint
from training.fit.shape_candidate import Shape
from training.fit.verdict import MISSED, verdict_on
from training.recording.recording import Recording

NOISY = 0.10
"""Samples that scatter by more are a poor input for a loop that acts on every one."""
UNSURE = 0.1
"""Half the interval of `a` above which its value says little; smaller differences count as none."""
APART = 1.1
"""Caps closer than this ratio have no credible slope."""
POOR = 0.95
"""R² of Eq. 1 below which the gains designed from it are a rough guess."""
CHANCE = 0.05
"""A lack of fit with a larger probability under noise counts as none."""
VARIED = 0.03
"""A host with a speed that changes by more than this (standard deviation) has no single curve."""
STRAIGHT = 0.25
"""Largest distance of the curve's first slope from the line to zero for that line to be
credible."""


def plain_words(fit: Fit) -> list[str]:
    """Describe the host's behaviour, in a sentence or two each."""
    top, threshold = format_rate(fit.top_pps), format_cap(fit.cap_threshold)
    forwards = f"The router forwards up to {top} ({_between(fit.top)})."
    return [
        _verdict(fit),
        f"{forwards} The cap threshold is {threshold}: {_threshold(fit)}.",
        f"{_sentence(fit.shapes.words)}.{_bend(fit)}",
        measured_range(fit),
        _smallest(fit),
        _dynamics(fit),
        _eq1(fit),
        _noise(fit),
        *_variation(fit),
        _held_out(fit),
        *_outliers(fit),
    ]


def _between(top: Interval) -> str:
    return f"95 % interval {format_rate(top.low)} to {format_rate(top.high)}"


def _verdict(fit: Fit) -> str:
    found = verdict_on(fit)
    return "The model can be used." if found.usable else f"{_sentence(found.words)}."


def _threshold(fit: Fit) -> str:
    """Describe the certainty of the threshold, and what limits the top."""
    if doubt := threshold_doubt(fit):
        return doubt
    bends = f"the curve bends between {format_cap(fit.threshold_above)} and that"
    if fit.limited_by == "load":
        offered = format_rate(fit.offered_pps or fit.top_pps)
        return f"{bends}. It is the load of {offered} that limits the top, and not the host"
    return f"{bends}, and from there on more CPU adds nothing"


def threshold_doubt(fit: Fit) -> str:
    """Say why the cap threshold may not be the host's; empty if it was reached."""
    if fit.threshold_reached:
        return ""
    if fit.cap_threshold >= fit.points[-1].cap:
        return "the sweep's last; throughput still rises"
    uncapped = format_rate(fit.uncapped_pps or fit.top_pps)
    return f"uncapped, it forwards {uncapped}, more than at any cap measured"


def _eq1(fit: Fit) -> str:
    return f"Eq. 1 explains {fit.eq1.r_squared:.1%} of the samples' variance; {why_missed(fit)}."


def why_missed(fit: Fit) -> str:
    """Return the parts of the variance that Eq. 1 does not explain, as shares of all variance."""
    missed = fit.eq1.missed
    verdict = "more than chance" if missed.chance <= CHANCE else "no more than chance"
    return (
        f"{missed.noise:.1%} is noise within a visit, {missed.drift:.1%} change between visits of "
        f"one cap, {missed.line:.1%} because the curve is no straight line over log(cap) "
        f"({verdict})"
    )


def measured_range(fit: Fit) -> str:
    """Say at which caps the curve was measured, and whether it holds below them."""
    first, last = fit.points[0], fit.points[-1]
    words = f"The curve was measured at caps from {format_cap(first.cap)} to {format_cap(last.cap)}"
    if first.smoothed_pps <= 0:
        return f"{words}; the smallest forwards nothing."
    words += "; below them it is a straight line to zero, which was not measured"
    if _straight_to_zero(fit):
        return f"{words}, but agrees with what was."
    return (
        f"{words} and does not agree with what was: set no setpoint below "
        f"{format_rate(first.smoothed_pps)}, or measure smaller caps."
    )


def _straight_to_zero(fit: Fit) -> bool:
    """Whether the first two caps are on one line through zero, and the shape continues on it below.

    The tolerance is a quarter, or the noise. On a logarithm two caps may do so by chance, while the
    host forwards nothing below them; an affine hinge or a power law may leave the line below them.
    """
    if not all(_halves(shape, fit.points[0].cap) for shape in fit.shapes.possible):
        return False
    first, second = fit.points[:2]
    proportional = first.smoothed_pps * (second.cap / first.cap - 1)
    gap = abs(second.smoothed_pps - first.smoothed_pps - proportional)
    # The first error counts as often as it is propagated.
    doubt = math.hypot(
        first.error_pps * second.cap / first.cap,
        second.error_pps,
    )
    return gap <= max(STRAIGHT * proportional, 2 * doubt)


def _halves(shape: Shape, cap: float) -> bool:
    """Whether half a cap gives about half the throughput, by a shape other than a logarithm."""
    half = shape.throughput(cap) / 2
    return shape.name != "logarithm" and abs(shape.throughput(cap / 2) - half) <= STRAIGHT * half


def cautions(recording: Recording, fit: Fit, design: Design) -> list[str]:
    """Return the warnings; empty if nothing stands out."""
    return [*_of_curve(recording, fit), *_of_eq1(fit), *_of_design(fit, design)]


def steepest(fit: Fit) -> float:
    """Return the curve's largest local slope in log(cap), as a multiple of Eq. 1's steady gain."""
    slopes = (_slope(low, high) for low, high in _far_apart(fit.points))
    return max(slopes, default=0.0) / fit.eq1.line.gain.value


def _slope(low: CapPoint, high: CapPoint) -> float:
    """Return kp/s per decade of cap."""
    rise = (high.smoothed_pps - low.smoothed_pps) / PACKETS_PER_KP
    return rise / (log_percent(high.cap) - log_percent(low.cap))


def _far_apart(points: tuple[CapPoint, ...]) -> Iterator[tuple[CapPoint, CapPoint]]:
    return ((low, high) for low, high in pairwise(points) if high.cap >= APART * low.cap)


def _bend(fit: Fit) -> str:
    """Say where a hinge bends: the threshold is a measured cap, mostly above the bend."""
    shape = fit.shapes.chosen
    if fit.shapes.better not in {"hinge", "affine hinge"} or shape.slope <= 0:
        return ""
    bend = format_cap((shape.top_pps - shape.offset_pps) / shape.slope)
    line = f"{format_rate(shape.slope)} per CPU"
    if shape.offset_pps > 0:
        line += f", and {format_rate(shape.offset_pps)} more,"
    elif shape.offset_pps < 0:
        line += f" from a cap of {format_cap(-shape.offset_pps / shape.slope)}"
    return f" The {shape.name} is {line} up to a cap of {bend}."


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _smallest(fit: Fit) -> str:
    smallest = format_cap(fit.smallest_useful_cap)
    if fit.smallest_useful_cap <= fit.points[0].cap:
        return f"The smallest useful cap is {smallest} or less: it is the smallest one measured."
    return (
        f"The smallest useful cap is {smallest}: below it, samples scatter by more than "
        f"{SCATTERED:.0%}, or nothing is forwarded."
    )


def _noise(fit: Fit) -> str:
    return (
        f"At a constant cap, one sample scatters by {fit.noise:.1%} of its mean (median of all "
        "caps). No loop can be quieter than this."
    )


def _variation(fit: Fit) -> Iterator[str]:
    """Say how far the host's speed changed between visits of one cap."""
    variation = fit.variation
    if variation is None:
        return
    caps = "1 cap that was" if variation.caps == 1 else f"{variation.caps} caps that were"
    visits = f"{caps} visited {variation.visits} times in all"
    if not variation.sure:
        yield (
            f"No change of the host's speed was found, by {visits}; one of {variation.high:.1%} or "
            "more (standard deviation) would have shown."
        )
        return
    yield (
        f"The host's speed varied by {variation.speed:.1%} (standard deviation, 95 % interval "
        f"{variation.low:.1%} to {variation.high:.1%}, from {visits}); two visits of one cap were "
        f"up to {variation.span:.0%} apart. No curve predicts better."
    )
    if variation.drifts:
        yield (
            f"From begin to end of the sweep it changed by {variation.trend:+.1%} "
            f"(± {2 * variation.trend_error:.1%}); the curve is that of the middle."
        )


def _outliers(fit: Fit) -> Iterator[str]:
    if fit.outliers:
        count = len(fit.outliers)
        samples = "1 sample was" if count == 1 else f"{count} samples were"
        yield f"{samples} left out as far from the others of the same visit."


def _dynamics(fit: Fit) -> str:
    a = fit.eq1.a
    late = f", after {_delay(fit)} in which it does not show at all" if fit.eq1.delay else ""
    return (
        f"One sample after a change of cap, {max(a.value, 0):.1%} of the way is still to go{late} "
        f"(a of Eq. 1: {a.value:.3f}, 95 % interval {a.low:.3f} to {a.high:.3f})."
    )


def _held_out(fit: Fit) -> str:
    if fit.held_out_error is None:
        return "No cap was held out, so that nothing judges the curve but its own data."
    return (
        f"The curve predicts {len(fit.held_out)} caps that it has not seen within "
        f"{fit.held_out_error:.1%} (median; the worst by {fit.held_out_worst or 0.0:.1%})."
    )


def _of_curve(recording: Recording, fit: Fit) -> Iterator[str]:
    if not fit.threshold_reached:
        yield (
            f"The sweep ended below the top ({threshold_doubt(fit)}): setpoints above "
            f"{format_rate(fit.top_pps)} are beyond what is known. Measure larger caps."
        )
    if fit.noise > NOISY:
        yield (
            f"Samples scatter by {fit.noise:.0%}: look for other work on the host's CPUs, or "
            "use a longer period."
        )
    if varied(fit):
        yield (
            "The host did not run at one speed while it was swept: other work shares its CPUs, or "
            "their clock changes. Sweep again when it is quiet; the default law follows the host "
            "as it is, but the published laws' gains are those of an average."
        )
    if fit.held_out_error is not None and fit.held_out_error > MISSED:
        yield (
            f"Held-out caps are missed by {fit.held_out_error:.1%} (median), more than "
            f"{MISSED:.0%}: {_why_held_out(fit)}."
        )
    if recording.metadata.offered_pps is None:
        yield (
            "The offered load was not controlled: where it varied, the curve shows the traffic "
            "and not the host."
        )


def varied(fit: Fit) -> bool:
    """Whether the host's speed changed by more than a curve may be wrong."""
    return fit.variation is not None and fit.variation.sure and fit.variation.speed > VARIED


def _why_held_out(fit: Fit) -> str:
    if varied(fit):
        return "the host's speed changed during the sweep"
    return "the host changed during the sweep, or has a bend between two caps"


def _of_eq1(fit: Fit) -> Iterator[str]:
    a, joint = fit.eq1.a, fit.eq1.joint.a.value
    if a.high - a.value > UNSURE:
        yield (
            f"a of Eq. 1 is known to ±{a.high - a.value:.2f} only: a longer sweep follows more "
            "steps."
        )
    if not a.low <= joint <= a.high and abs(joint - a.value) > UNSURE:
        yield (
            f"The paper's own regression, a and b at once, would say a = {joint:.3f}: it takes "
            "the bend of the curve for lag. The value from step responses is used."
        )
    if fit.eq1.r_squared < POOR:
        yield (f"Eq. 1 explains {fit.eq1.r_squared:.1%} of what samples do. {_to_blame(fit)}")


def _to_blame(fit: Fit) -> str:
    """Say why Eq. 1 does not explain more, and what that means."""
    missed = fit.eq1.missed
    if missed.chance <= CHANCE and missed.line >= missed.noise + missed.drift:
        return (
            "Most of the rest is the host's curve, which is no straight line over log(cap): the "
            "gains of the published laws are a rough guess here. The default law needs none."
        )
    return (
        "Most of the rest is noise, which no model predicts: look for other work on the host's "
        "CPUs, or use a longer period."
    )


def _of_design(fit: Fit, design: Design) -> Iterator[str]:
    if fit.eq1.delay:
        yield (
            f"A new cap shows {_delay(fit)} late. The published laws are designed "
            "without a delay: their margins below do not hold. The default law knows of it."
        )
    slope = steepest(fit)
    for name, loop in (("PI", design.pi), ("dead-beat", design.dead_beat)):
        if slope >= loop.largest_gain:
            yield (
                f"Somewhere the curve is {slope:.1f} times as steep as Eq. 1 says; the "
                f"{name} law bears {_times(loop)}, so that it swings there."
            )


def _delay(fit: Fit) -> str:
    return "1 sample" if fit.eq1.delay == 1 else f"{fit.eq1.delay} samples"


def _times(loop: Loop) -> str:
    return "any" if math.isinf(loop.largest_gain) else f"{loop.largest_gain:.2f} times"
