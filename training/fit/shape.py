"""Shapes of a host's curve: which of four it follows, which others it may follow, or none.

All rise and then stay at a top, u being the cap in CPUs: the hinge as min(k·u, top), on hosts that
spend the same CPU time on every packet; the affine hinge as clip(c + k·u, 0, top), if part of a cap
is lost, or if its first part is worth more; the logarithm as clip(c + d·log10(u), 0, top), which is
Eq. 1's steady state; the power law as min(k·u^p, top).
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from training.fit.shape_candidate import Candidate, Means, Shape
from training.fit.shape_fit import NAMES, PARAMETERS, Name

NESTED: Final[dict[Name, tuple[Name, ...]]] = {"hinge": ("affine hinge", "power law")}
"""Shapes that include another one as a special case."""
ARTICLES: Final[dict[Name, str]] = {name: "an" if name[0] == "a" else "a" for name in NAMES}
LAWS: Final[dict[Name, str]] = {
    "hinge": "throughput is proportional to the cap until it stops rising (a hinge)",
    "affine hinge": "throughput rises in a straight line that does not begin at zero, until it "
    "stops rising (an affine hinge)",
    "logarithm": "throughput rises with the logarithm of the cap, as the paper's host does",
    "power law": "throughput rises with a power of the cap until it stops rising (a power law)",
}


class Comparison(msgspec.Struct, frozen=True):
    """All shapes, the host's shape, and the reasons in words."""

    hinge: Shape
    affine_hinge: Shape
    logarithm: Shape
    power_law: Shape
    better: Name | None
    """The simplest shape that fits, if no other is significantly better; None if none fits."""
    alike: tuple[Name, ...]
    """Other shapes that fit equally well."""
    nearest: Name
    """The better shape; if none fits, the one with the least errors at caps left out."""
    words: str

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """All of them, the simplest first."""
        return (self.hinge, self.affine_hinge, self.logarithm, self.power_law)

    @property
    def chosen(self) -> Shape:
        """The better shape, or the nearest if none fits."""
        return next(shape for shape in self.shapes if shape.name == self.nearest)

    @property
    def possible(self) -> tuple[Shape, ...]:
        """The better shape and its equals; only the nearest if none fits."""
        return tuple(s for s in self.shapes if s.name in {self.nearest, *self.alike})

    @property
    def answer(self) -> str:
        """The host's shape, in a few words."""
        if self.better is None:
            return f"none (nearest: {self.nearest})"
        return " or ".join((self.better, *self.alike))


def compare(
    caps: Sequence[float], rates: Sequence[float], errors: Sequence[float] | None = None
) -> Comparison:
    """Fit all shapes to throughputs, and select the host's.

    A shape fits if the errors of the means, and `TOLERANCE`, explain what it misses them by
    (chi-square test, 1 %). The errors are correlated, since they share the host's speed. A common
    error moves no shape, so the test errs on the side of fitting: "none" was not the result in any
    of 660 sweeps of simulated hinges (`benchmarks.training.coverage` has some of those hosts). The
    result is the simplest shape that fits, unless another has significantly smaller errors at caps
    left out of the fit: Wilcoxon's signed-rank test of both shapes' errors in standard errors,
    paired by cap. The test is paired, since a cap that is hard to predict is so for both. It uses
    ranks, since errors at caps on the ends and at the knee are far larger than the others, and one
    cap must not decide.

    Args:
        caps: in CPUs, rising; five or more.
        rates: mean throughput at each, in packets/s.
        errors: their standard errors in packets/s. Caps that share rate and error are one
            measurement (a plateau). Without errors, all caps count the same and every shape fits.
    """
    known = None if errors is None else np.array(errors, float)
    means = Means(np.array(caps, float), np.array(rates, float), known)
    every = [Candidate(name, means) for name in NAMES]
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


def _chosen(fitting: Sequence[Candidate]) -> Candidate:
    """Return the shape with the fewest parameters, or one that is significantly better.

    Akaike's criterion must agree: with few caps a rank test says little.
    """
    fewest = min(PARAMETERS[one.name] for one in fitting)
    simple = [one for one in fitting if PARAMETERS[one.name] == fewest]
    best = min(simple, key=lambda one: one.error)
    richer = [one for one in fitting if one not in simple and one.surely_better(best)]
    paying = [one for one in richer if one.shape.aic < best.shape.aic]
    return min(paying, key=lambda one: one.error, default=best)


def _like(other: Candidate, chosen: Candidate) -> bool:
    """Whether the other shape fits the host equally well.

    A shape that includes the chosen one as a special case must justify its parameter.
    """
    if other.name in NESTED.get(chosen.name, ()):
        return other.shape.aic < chosen.shape.aic
    return not chosen.surely_better(other)


def _words(chosen: Candidate, alike: Sequence[Candidate]) -> str:
    errors = f"left out, a cap is missed by {chosen.shape.cv_error:.1%} of the top"
    if not alike:
        return f"{LAWS[chosen.name]}: {errors}"
    names = " or ".join(f"{ARTICLES[one.name]} {one.name}" for one in (chosen, *alike))
    others = ", ".join(f"by {one.shape.cv_error:.1%} with {_with_article(one)}" for one in alike)
    return (
        f"{names}: this sweep does not tell which; {errors} with {_with_article(chosen)}, {others}"
    )


def _with_article(one: Candidate) -> str:
    return f"{ARTICLES[one.name]} {one.name}"


def _nothing(nearest: Candidate) -> str:
    return (
        "the curve is neither a hinge, straight or affine, nor a logarithm nor a power law, beyond "
        f"the errors of its means; nearest is {_with_article(nearest)}: left out, a cap is missed "
        f"by {nearest.shape.cv_error:.1%} of the top"
    )
