"""One candidate shape: its fit to the means at each cap, and its errors."""

from typing import Final

import msgspec
import numpy as np
from scipy import special

from training.fit.shape_fit import PARAMETERS, Array, Line, Name, fitted

TOLERANCE: Final = 0.025
"""Standard deviation by which a host's throughput may differ from its shape, as a share: hosts are
not formulas, and `training.fit.verdict` allows a curve an error of 5 % (twice this). It is added to
the standard error of each mean."""
SILENT: Final = 1e-3
"""Share of the top below which a throughput is 0."""
UNLIKELY: Final = 0.01
"""Probability below which the errors of the means do not explain a shape's residuals."""
SURELY: Final = 0.05
"""Probability below which a shape with smaller errors at left-out caps is better than another."""
EQUAL: Final = 1e-6
"""Errors, in standard errors (or shares of the top), that differ by less count as equal."""


class Shape(msgspec.Struct, frozen=True):
    """One shape fitted to the means at each cap, by (weighted) least squares."""

    name: Name
    slope: float
    """k in packets/s per CPU (per CPU^p of a power law), or d in packets/s per decade of cap."""
    offset_pps: float
    """c: the value of the line at cap 0, or of the logarithm at one CPU; 0 for the others."""
    top_pps: float
    power: float
    """p of the power law; 1 for the others."""
    r_squared: float
    """Share of the variance of the means that the curve explains."""
    aic: float
    """Akaike's criterion, corrected for few points; less is better."""
    cv_error: float
    """Root mean square error at a cap left out of the fit, as a share of the top."""
    chance: float | None
    """Probability that errors of the means put them so far off; None without errors."""

    def throughput(self, cap: float) -> float:
        """Return the curve's packets/s at a cap in CPUs."""
        line = Line(self.name, self.slope, self.offset_pps, self.top_pps, self.power)
        return float(line.at(np.array([cap]))[0])


class Means:
    """Throughput at each cap, and its uncertainty."""

    def __init__(self, caps: Array, rates: Array, errors: Array | None) -> None:
        """Take caps in CPUs, and packets/s at each with their standard errors, if known."""
        self.caps, self.rates, self.known = caps, rates, errors is not None
        most = float(rates.max())
        self.shares = np.ones(len(caps))
        """Weight of each cap as a measurement: the caps of a plateau together count as one."""
        self.errors = np.full(len(caps), most)
        if errors is not None:
            pairs = list(zip(rates, errors, strict=True))
            self.shares = np.array([1 / pairs.count(pair) for pair in pairs])
            floor = np.hypot(TOLERANCE * rates, SILENT * most)
            self.errors = np.hypot(errors, floor)
        self.weights = self.shares / self.errors**2
        self.own = self.shares == 1.0
        if not self.own.any():
            self.own[:] = True
        self.count = float(self.shares.sum())

    def chance(self, squares: float, free: int) -> float | None:
        """Return the probability of a larger sum of squares, by chi-square."""
        over = self.count - free
        if not self.known:
            return None
        return float(special.chdtrc(over, squares)) if over > 0.5 else 1.0


class Candidate:
    """One shape, with its error at each cap when that cap is left out of the fit."""

    def __init__(self, name: Name, means: Means) -> None:
        """Fit the shape to all means, and to all but one, each in turn."""
        caps, rates, weights = means.caps, means.rates, means.weights
        self.means, self.name = means, name
        self.line = fitted(name, caps, rates, weights)
        misses = []
        for index in range(len(caps)):
            kept = np.arange(len(caps)) != index
            line = fitted(name, caps[kept], rates[kept], weights[kept])
            misses.append(line.at(caps[index : index + 1])[0] - rates[index])
        self.misses = np.array(misses)
        self.away = np.abs(self.misses[means.own]) / means.errors[means.own]
        self.shape = self._shape()

    @property
    def fits(self) -> bool:
        """Whether the errors of the means explain its residuals."""
        return self.shape.chance is None or self.shape.chance >= UNLIKELY

    @property
    def error(self) -> float:
        """Root mean square of the errors at caps left out, each in its standard errors."""
        return float(np.sqrt(np.mean(self.away**2)))

    def surely_better(self, other: "Candidate") -> bool:
        """Whether its errors at left-out caps are smaller than the other's, cap by cap."""
        less = other.away - self.away
        less = less[np.abs(less) > EQUAL]
        return bool(len(less)) and by_chance(less) <= SURELY

    def _shape(self) -> Shape:
        means, line = self.means, self.line
        missed = means.rates - line.at(means.caps)
        spread = float(((means.rates - means.rates.mean()) ** 2).sum())
        squares = float((means.weights * missed**2).sum())
        free, count = PARAMETERS[self.name], means.count
        least = 1e-12 * float((means.weights * means.rates**2).sum())
        total = free + 1
        return Shape(
            name=self.name,
            slope=line.slope,
            offset_pps=line.offset,
            top_pps=line.top,
            power=line.power,
            r_squared=1 - float((missed**2).sum()) / max(spread, 1e-300),
            aic=count * float(np.log(max(squares, least) / count))
            + 2 * total
            + 2 * total * (total + 1) / max(count - total - 1, 1),
            cv_error=float(np.sqrt(np.mean(self.misses**2))) / float(means.rates.max()),
            chance=means.chance(squares, free),
        )


def by_chance(above: Array) -> float:
    """Return the probability that values by chance lie as far above zero as these; none is zero.

    Wilcoxon's signed-rank test: the share of all signs that give the positive values as large a sum
    of ranks. It is exact also with equal sizes, which share their ranks; `scipy.stats` takes a
    second to load, and seconds for equal sizes.
    """
    sizes = np.abs(above)
    below = (sizes[:, None] > sizes).sum(axis=1)
    equal = (sizes[:, None] == sizes).sum(axis=1)
    ranks = 2 * below + equal + 1  # doubled, so that shared ones are whole numbers
    shares = np.ones(1)
    """Of each sum of ranks, over the signs so far."""
    for rank in ranks:
        shares = (np.append(shares, np.zeros(rank)) + np.append(np.zeros(rank), shares)) / 2
    return float(shares[ranks[above > 0].sum() :].sum())
