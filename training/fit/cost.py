"""Fit the CPU cost of a packet by its size: a part per packet, and a part per byte.

At the same binding cap, the throughput at size s over that at the curve's size s0 is

    (per_packet + per_byte * s0) / (per_packet + per_byte * s) = 1 / (1 + g * (s - s0))

so ratios give g, the cost of a byte as a share of a packet's at s0. The cost of that packet in CPU
seconds is the CPU time used over the packets forwarded; the cap replaces CPU time if the platform
does not count it. Both come from one mixed model (`training.fit.levels`), as do ratios under other
loads, with the covariance of its levels (generalized least squares).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from models.cost import PacketCost
from training.errors import UnfitError
from training.fit.interval import Interval, beyond, quantile
from training.fit.loads import Compared, compared_in
from training.recording.recording import Recording

Array = npt.NDArray[np.float64]

FREEDOM: Final = 60.0
"""Degrees of freedom of the noise, estimated from all samples of the sweep."""
ROUNDS: Final = 20
"""Gauss-Newton steps; five are enough for any ratio between 1/100 and 100."""
CHANCE: Final = 0.05
"""Probability below which chance does not explain the distance from a straight line."""
VAGUE: Final = 0.25
"""Half of a 95 % interval of the cost at a measured size, as a share, above which it is useless."""

Scale = Literal["used", "cap"]


class SizeCost(msgspec.Struct, frozen=True):
    """Cost of packets of one size, relative to those of the curve's size."""

    packet_bytes: int
    ratio: Interval
    """As measured: 1 is the same cost."""
    line: float
    """As predicted by the straight line."""
    caps: int
    """Number of compared caps."""

    @property
    def excess(self) -> float:
        """Excess over the straight line, as a share."""
        return self.ratio.value / self.line - 1


class CostFit(msgspec.Struct, frozen=True):
    """Cost of packets by their size, with 95 % intervals."""

    per_packet_us: Interval
    """CPU microseconds of any packet."""
    per_byte_ns: Interval
    """CPU nanoseconds of a byte of its frame."""
    packet_us: Interval
    """CPU microseconds of a packet of the reference size."""
    reference_bytes: int
    """Packet size of the curve."""
    scale: Scale
    """Source of the CPU time: the platform's counter, or the cap."""
    sizes: tuple[SizeCost, ...]
    """By rising size, without the reference."""
    straight: float | None
    """Probability that chance puts the sizes so far off a line; None with two sizes."""

    @property
    def bends(self) -> bool:
        """Whether no straight line goes through the sizes."""
        return self.straight is not None and self.straight < CHANCE

    @property
    def cost(self) -> PacketCost:
        """The cost as stored in models; a part that noise makes negative is 0."""
        whole, reference = self.packet_us.value * 1e-6, self.reference_bytes
        of_byte = min(max(self.per_byte_ns.value * 1e-9, 0.0), whole / reference)
        return PacketCost(max(whole - of_byte * reference, 0.0), of_byte, float(reference))


def in_words(cost: CostFit) -> str:
    """Describe the cost of packets."""
    words = (
        f"{_shown(cost.per_packet_us)} us a packet and {_shown(cost.per_byte_ns)} ns a byte, "
        f"by the {'CPU time used' if cost.scale == 'used' else 'cap'}"
    )
    return f"{words}; {bend(cost)}" if cost.bends else words


def bend(cost: CostFit) -> str:
    """Describe which size is farthest from the straight line."""
    worst = max(cost.sizes, key=lambda one: abs(one.excess))
    side = "more" if worst.excess > 0 else "less"
    return (
        f"packets of {worst.packet_bytes} bytes cost {abs(worst.excess):.0%} {side} than a "
        "straight line says"
    )


def _shown(value: Interval) -> str:
    return f"{value.value:.3g} (95 %: {value.low:.3g} to {value.high:.3g})"


@dataclass(frozen=True)
class _Pair:
    """A cap at another packet size and at the curve's: the indices of their levels."""

    size: int
    here: int
    there: int


def cost_of(recording: Recording, threshold: float = math.inf) -> CostFit | None:
    """Fit the cost; None if only one packet size was measured.

    Args:
        recording: a sweep at several packet sizes.
        threshold: the cap in CPUs from which on throughput no longer rises. A router does not use
            more than that, so there the cap is not the cost of its packets.

    Raises:
        UnfitError: the samples of several sizes do not determine it; the error says what to
            measure.
    """
    sizes = {s.packet_bytes for s in recording.samples if s.phase == "load"} - {None}
    reference = recording.metadata.packet_bytes
    if not sizes - {reference}:
        return None
    if reference is None:
        raise UnfitError(
            "packet_bytes",
            "the packet size of the curve is not recorded",
            "write `# packet_bytes = N` at the top of the file, or sweep with --packet-size",
        )
    compared = compared_in(recording)
    pairs = _pairs(compared, reference, threshold)
    if not pairs:
        raise UnfitError(
            "sizes",
            "there is no cap that binds at two packet sizes",
            "offer more load, and measure caps below the threshold",
        )
    return _fitted(compared, pairs, reference)


def _pairs(compared: Compared, reference: int, threshold: float) -> list[_Pair]:
    """Return what to compare: fed caps below the threshold that bind at both sizes."""
    return [
        _Pair(load.packet_bytes, here, there)
        for load in compared.loads
        if load.packet_bytes is not None and load.packet_bytes != reference
        for here, there in compared.pairs(load)
        if not compared.point(load, here, there).starved
        and compared.cap_at(there) < threshold
        and _binds(compared, here)
        and _binds(compared, there)
    ]


def _binds(compared: Compared, number: int) -> bool:
    """Whether the cap limited the router, or this is unknown."""
    known = [one.bound for one in compared.visits_at(number) if one.bound is not None]
    return not known or 2 * sum(known) >= len(known)


def _fitted(compared: Compared, pairs: Sequence[_Pair], reference: int) -> CostFit:
    levels = compared.levels
    assert levels is not None  # there are pairs of them
    contrast = np.zeros((len(pairs), len(levels.logs)))
    for row, pair in enumerate(pairs):  # logarithm of the cost, which falls with throughput
        contrast[row, pair.there] += 1.0
        contrast[row, pair.here] -= 1.0
    weights = _inverse(contrast @ levels.covariance @ contrast.T)
    logs = contrast @ levels.logs
    apart = np.array([float(pair.size - reference) for pair in pairs])
    slope, gain = _slope(logs, weights, apart)
    scale, used, of_scale, spread = _scale(compared, pairs)
    # Both as sums of levels, so that their covariance counts.
    parts = np.vstack((gain @ contrast, of_scale))
    covariance = parts @ levels.covariance @ parts.T
    covariance[1, 1] += spread
    sizes = _sizes(pairs, logs, contrast @ levels.covariance @ contrast.T, slope, reference)
    _check_precise(sizes, slope, math.sqrt(covariance[0, 0]), reference)
    found = _parts(slope, used, covariance, reference)
    if found[0].high < 0 or found[1].high < 0:
        lacks = "a packet" if found[0].high < 0 else "a byte"
        raise UnfitError(
            "sizes",
            f"by these sizes {lacks} costs less than nothing",
            "check that --source sends the sizes it is given, and measure more sizes",
        )
    straight = _straight(pairs, logs, weights, apart, slope)
    return CostFit(*found, reference, scale, sizes, straight)


def _inverse(covariance: Array) -> Array:
    return np.asarray(np.linalg.pinv(covariance, hermitian=True), np.float64)


def _slope(logs: Array, weights: Array, apart: Array) -> tuple[float, Array]:
    """Return g, and its derivative by each log ratio; by least squares on log(1 + g * apart)."""
    weight = np.diag(weights) * apart**2
    start = float(weight @ (np.expm1(logs) / apart) / weight.sum())
    slope, least = start, -0.999 / max(float(apart.max()), 1e-9)
    most = 0.999 / max(float(-apart.min()), 1e-9)
    gain = np.zeros(len(logs))
    for _ in range(ROUNDS):
        slope = min(max(slope, least), most)
        column = apart / (1 + slope * apart)
        gain = column @ weights / float(column @ weights @ column)
        slope += float(gain @ (logs - np.log1p(slope * apart)))
    return min(max(slope, least), most), gain


def _scale(compared: Compared, pairs: Sequence[_Pair]) -> tuple[Scale, float, Array, float]:
    """Return the source of the CPU seconds of a packet at the curve's size.

    Returns:
        The source of the CPU time, the seconds, their logarithm as a sum of levels, and the
        variance between caps: where the curve bends, a packet costs more at one cap than at
        another.
    """
    assert compared.levels is not None  # there are pairs of them
    numbers = sorted({pair.there for pair in pairs})
    counted = [_used(compared, number) for number in numbers]
    scale: Scale = "used" if all(counted) else "cap"
    cpus = [
        used if scale == "used" and used else compared.cap_at(number)
        for number, used in zip(numbers, counted, strict=True)
    ]
    contrast = np.zeros(len(compared.levels.logs))
    contrast[numbers] = -1 / len(numbers)
    each = np.log(cpus) - compared.levels.logs[numbers]
    spread = 0.0
    if len(numbers) > 1:
        block = compared.levels.covariance[np.ix_(numbers, numbers)]
        expected = float(np.trace(block) - block.sum() / len(numbers)) / (len(numbers) - 1)
        spread = max(float(each.var(ddof=1)) - expected, 0.0) / len(numbers)
    return scale, math.exp(float(each.mean())), contrast, spread


def _used(compared: Compared, number: int) -> float | None:
    """Return the mean CPUs used in the visits of a level, if all are counted."""
    counted = [one.used for one in compared.visits_at(number)]
    known = [used for used in counted if used]
    return sum(known) / len(known) if known and len(known) == len(counted) else None


def _parts(
    slope: float, used: float, covariance: Array, reference: int
) -> tuple[Interval, Interval, Interval]:
    """Return the costs of a packet, a byte and a packet of the reference size, with errors.

    Args:
        slope: g, of a byte.
        used: CPU seconds of a packet of the reference size.
        covariance: of g, and of the logarithm of those seconds.
        reference: that size, in bytes.
    """
    packet, byte = 1 - slope * reference, slope
    gradients = (
        (1e6 * used * packet, np.array([-1e6 * used * reference, 1e6 * used * packet])),
        (1e9 * used * byte, np.array([1e9 * used, 1e9 * used * byte])),
        (1e6 * used, np.array([0.0, 1e6 * used])),
    )
    found = []
    for value, gradient in gradients:
        half = quantile(FREEDOM) * math.sqrt(float(gradient @ covariance @ gradient))
        found.append(Interval(value, value - half, value + half))
    return found[0], found[1], found[2]


def _sizes(
    pairs: Sequence[_Pair], logs: Array, covariance: Array, slope: float, reference: int
) -> tuple[SizeCost, ...]:
    """Return the measured cost of each size: the mean of its caps weighted by their errors."""
    found = []
    for size in sorted({pair.size for pair in pairs}):
        rows = [row for row, pair in enumerate(pairs) if pair.size == size]
        weights = _inverse(covariance[np.ix_(rows, rows)])
        value = float(weights.sum(axis=0) @ logs[rows] / weights.sum())
        half = quantile(FREEDOM) / math.sqrt(float(weights.sum()))
        ratio = Interval(*(math.exp(one) for one in (value, value - half, value + half)))
        found.append(SizeCost(size, ratio, 1 + slope * (size - reference), len(rows)))
    return tuple(found)


def _check_precise(sizes: Sequence[SizeCost], slope: float, error: float, reference: int) -> None:
    """Reject a slope that leaves the cost of a measured size uncertain."""
    far = max(sizes, key=lambda one: abs(one.packet_bytes - reference))
    apart = far.packet_bytes - reference
    half = quantile(FREEDOM) * error * abs(apart) / (1 + slope * apart)
    if half > VAGUE:
        raise UnfitError(
            "precision",
            f"what packets of {far.packet_bytes} bytes cost is known to {half:.0%} only",
            "give a longer --budget, with nothing else on the host",
        )


def _straight(
    pairs: Sequence[_Pair], logs: Array, weights: Array, apart: Array, slope: float
) -> float | None:
    """Return the probability that chance puts the sizes so far off a line; None with two sizes."""
    sizes = sorted({pair.size for pair in pairs})
    if len(sizes) < 2:
        return None
    columns = np.array([[float(pair.size == size) for size in sizes] for pair in pairs])
    own = np.linalg.solve(columns.T @ weights @ columns, columns.T @ weights @ logs)
    missed, rest = logs - np.log1p(slope * apart), logs - columns @ own
    over = len(sizes) - 1
    more = float(missed @ weights @ missed - rest @ weights @ rest)
    return beyond(more / over, over, FREEDOM)
