"""Shapes of a host's curve: which of four it follows, which others it may follow, or none.

All rise and then stay at a top, u being the cap in CPUs: the hinge as min(k·u, top), as on hosts
that pay the same CPU for every packet; the affine hinge as clip(c + k·u, 0, top), where part of a
cap is lost, or where the first of it is worth more; the logarithm as clip(c + d·log10(u), 0, top),
which is Eq. 1's steady state; the power law as min(k·u^p, top).
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from scipy import stats

from training.shape_fit import NAMES, PARAMETERS, Array, Line, Name, fitted

TOLERANCE: Final = 0.025
"""Standard deviation by which a host's throughput may differ from a shape that it still has, as a
share: hosts are no formulas, and 5 % (twice this) is what `training.verdict` lets a curve miss. It
is added to the standard error of each mean."""
SILENT: Final = 1e-3
"""Share of the top below which a throughput is 0."""
UNLIKELY: Final = 0.01
"""Chance below which a shape misses the means by more than their errors explain."""
SURELY: Final = 0.05
"""Chance below which a shape that misses left-out caps by less is better than another."""
EQUAL: Final = 1e-6
"""Errors, in standard errors (or shares of the top), that differ by less are the same."""
NESTED: Final[dict[Name, tuple[Name, ...]]] = {"hinge": ("affine hinge", "power law")}
"""Shapes that hold another one as a special case."""
ARTICLES: Final[dict[Name, str]] = {name: "an" if name[0] == "a" else "a" for name in NAMES}
LAWS: Final[dict[Name, str]] = {
    "hinge": "throughput is proportional to the cap until it stops rising (a hinge)",
    "affine hinge": "throughput rises in a straight line that does not begin at zero, until it "
    "stops rising (an affine hinge)",
    "logarithm": "throughput rises with the logarithm of the cap, as the paper's host does",
    "power law": "throughput rises with a power of the cap until it stops rising (a power law)",
}


class Shape(msgspec.Struct, frozen=True):
    """One shape fitted to the means at each cap, by (weighted) least squares."""

    name: Name
    slope: float
    """k in packets/s per CPU (per CPU^p of a power law), or d in packets/s per decade of cap."""
    offset_pps: float
    """c: where the line would be at no cap, or the logarithm at one CPU; 0 for the others."""
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
    """The probability that errors of the means put them so far off; None without errors."""

    def throughput(self, cap: float) -> float:
        """Return the curve's packets/s at a cap in CPUs."""
        line = Line(self.name, self.slope, self.offset_pps, self.top_pps, self.power)
        return float(line.at(np.array([cap]))[0])


class Comparison(msgspec.Struct, frozen=True):
    """All shapes, the one that the host has, and why, in words."""

    hinge: Shape
    affine_hinge: Shape
    logarithm: Shape
    power_law: Shape
    better: Name | None
    """The simplest shape that fits, if no other is surely better; None where none fits."""
    alike: tuple[Name, ...]
    """Other shapes that the host may have just as well."""
    nearest: Name
    """The better shape; where none fits, the one with the least errors at caps left out."""
    words: str

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """All of them, the simplest first."""
        return (self.hinge, self.affine_hinge, self.logarithm, self.power_law)

    @property
    def chosen(self) -> Shape:
        """The better shape, or the nearest where none fits."""
        return next(shape for shape in self.shapes if shape.name == self.nearest)

    @property
    def possible(self) -> tuple[Shape, ...]:
        """The better shape and those alike; the nearest alone where none fits."""
        return tuple(s for s in self.shapes if s.name in {self.nearest, *self.alike})

    @property
    def answer(self) -> str:
        """What the host has, in a few words."""
        if self.better is None:
            return f"none (nearest: {self.nearest})"
        return " or ".join((self.better, *self.alike))


class _Fitted:
    """One shape, with what it misses each cap by that is left out of the fit."""

    def __init__(self, name: Name, means: "_Means") -> None:
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
        """Whether the errors of the means explain what it misses them by."""
        return self.shape.chance is None or self.shape.chance >= UNLIKELY

    @property
    def error(self) -> float:
        """Root mean square of the errors at caps left out, each in its standard errors."""
        return float(np.sqrt(np.mean(self.away**2)))

    def surely_better(self, other: "_Fitted") -> bool:
        """Whether it misses caps that are left out by less than the other, cap by cap."""
        less = other.away - self.away
        less = less[np.abs(less) > EQUAL]
        if not len(less):
            return False
        return float(stats.wilcoxon(less, alternative="greater").pvalue) <= SURELY

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


class _Means:
    """Throughput at each cap, and how sure it is."""

    def __init__(self, caps: Array, rates: Array, errors: Array | None) -> None:
        self.caps, self.rates, self.known = caps, rates, errors is not None
        most = float(rates.max())
        self.shares = np.ones(len(caps))
        """How much of a measurement each cap is: those of a plateau are one together."""
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
        return float(stats.chi2.sf(squares, over)) if over > 0.5 else 1.0


def compare(
    caps: Sequence[float], rates: Sequence[float], errors: Sequence[float] | None = None
) -> Comparison:
    """Fit all shapes to throughputs, and say which of them the host has.

    A shape fits if the errors of the means explain what it misses them by (chi-square test). Of
    those that fit it is the simplest, unless another surely misses less where a cap is left out of
    the fit: Wilcoxon's signed-rank test of both shapes' errors in standard errors, paired by cap.
    Paired, since a cap that is hard to predict is so for both; ranks, since errors at caps on the
    ends and at the knee are far larger than the others, and one cap must not decide.

    Args:
        caps: in CPUs, rising; five or more.
        rates: mean throughput at each, in packets/s.
        errors: their standard errors in packets/s. Caps that share rate and error are one
            measurement (a plateau). Without errors, all caps count the same and every shape fits.
    """
    known = None if errors is None else np.array(errors, float)
    means = _Means(np.array(caps, float), np.array(rates, float), known)
    every = [_Fitted(name, means) for name in NAMES]
    fitting = [one for one in every if one.fits]
    chosen = _chosen(fitting) if fitting else min(every, key=lambda one: one.error)
    alike = [one for one in fitting if one is not chosen and _like(one, chosen)]
    better = chosen.name if fitting else None
    return Comparison(
        hinge=every[0].shape,
        affine_hinge=every[1].shape,
        logarithm=every[2].shape,
        power_law=every[3].shape,
        better=better,
        alike=tuple(one.name for one in alike),
        nearest=chosen.name,
        words=_words(chosen, alike) if fitting else _nothing(chosen),
    )


def _chosen(fitting: Sequence[_Fitted]) -> _Fitted:
    """Return the shape with the fewest parameters, or one that is surely better.

    Akaike's criterion has to agree: with five caps a rank test has one way only to say so.
    """
    fewest = min(PARAMETERS[one.name] for one in fitting)
    simple = [one for one in fitting if PARAMETERS[one.name] == fewest]
    best = min(simple, key=lambda one: one.error)
    richer = [one for one in fitting if one not in simple and one.surely_better(best)]
    paying = [one for one in richer if one.shape.aic < best.shape.aic]
    return min(paying, key=lambda one: one.error, default=best)


def _like(other: _Fitted, chosen: _Fitted) -> bool:
    """Whether the host may have the other shape just as well.

    One that holds the chosen shape as a special case has to pay for its parameter.
    """
    if other.name in NESTED.get(chosen.name, ()):
        return other.shape.aic < chosen.shape.aic
    return not chosen.surely_better(other)


def _words(chosen: _Fitted, alike: Sequence[_Fitted]) -> str:
    errors = f"left out, a cap is missed by {chosen.shape.cv_error:.1%} of the top"
    if not alike:
        return f"{LAWS[chosen.name]}: {errors}"
    names = " or ".join(f"{ARTICLES[one.name]} {one.name}" for one in (chosen, *alike))
    others = ", ".join(f"by {one.shape.cv_error:.1%} with {_with_article(one)}" for one in alike)
    return (
        f"{names}: this sweep does not tell which; {errors} with {_with_article(chosen)}, {others}"
    )


def _with_article(one: _Fitted) -> str:
    return f"{ARTICLES[one.name]} {one.name}"


def _nothing(nearest: _Fitted) -> str:
    return (
        "the curve is neither a hinge, straight or affine, nor a logarithm nor a power law, beyond "
        f"the errors of its means; nearest is {_with_article(nearest)}: left out, a cap is missed "
        f"by {nearest.shape.cv_error:.1%} of the top"
    )
