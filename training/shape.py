"""Hinge or logarithm: which of the two curves a host follows, and how surely.

Both rise and then stay at a top: the hinge as min(k·cap, top), as hosts do that pay the same CPU
for every packet; the logarithm as min(c + d·log10(cap), top), which is Eq. 1's steady state.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Name = Literal["hinge", "logarithm"]

NEAR = 1.1
"""Errors whose ratio is below this do not decide."""


class Shape(msgspec.Struct, frozen=True):
    """One curve fitted to the means at each cap, by least squares."""

    name: Name
    slope: float
    """k in packets/s per CPU, or d in packets/s per decade of cap."""
    offset_pps: float
    """c: the throughput that the rising line has at one CPU; 0 for the hinge."""
    top_pps: float
    r_squared: float
    """Share of the variance of the means that the curve explains."""
    aic: float
    """Akaike's criterion, corrected for few points; less is better."""
    cv_error: float
    """Root mean square error at a cap left out of the fit, as a share of the top."""

    def throughput(self, cap: float) -> float:
        """Return the curve's packets/s at a cap in CPUs."""
        at = cap if self.name == "hinge" else math.log10(cap)
        return min(max(self.offset_pps + self.slope * at, 0.0), self.top_pps)


class Comparison(msgspec.Struct, frozen=True):
    """Both shapes, the better of them, and why, in words."""

    hinge: Shape
    logarithm: Shape
    better: Name
    words: str

    @property
    def chosen(self) -> Shape:
        """The better shape."""
        return self.hinge if self.better == "hinge" else self.logarithm


def compare(caps: Sequence[float], rates: Sequence[float]) -> Comparison:
    """Fit both shapes to throughputs (packets/s) at caps (CPUs, rising; at least five).

    The error at a cap that was left out decides; Akaike's criterion is told beside it.
    """
    x, y = np.array(caps, float), np.array(rates, float)
    hinge, logarithm = _shape("hinge", x, y), _shape("logarithm", x, y)
    better = hinge if hinge.cv_error <= logarithm.cv_error else logarithm
    other = logarithm if better is hinge else hinge
    return Comparison(hinge, logarithm, better.name, _words(better, other))


def _words(better: Shape, other: Shape) -> str:
    ratio = other.cv_error / max(better.cv_error, 1e-12)
    law = {
        "hinge": "throughput is proportional to the cap until it stops rising (a hinge)",
        "logarithm": "throughput rises with the logarithm of the cap, as the paper's host does",
    }[better.name]
    errors = f"left out, a cap is missed by {better.cv_error:.1%} of the top"
    against = f"by {other.cv_error:.1%} with a {other.name}"
    if ratio < NEAR:
        return f"hinge and logarithm fit about equally well: {errors}, {against}"
    agrees = "agrees" if better.aic <= other.aic else "disagrees"
    return f"{law}: {errors}, {against}; Akaike's criterion {agrees}"


def _shape(name: Name, x: Array, y: Array) -> Shape:
    predict, parameters = _fitted(name, x, y)
    squares = max(float(((y - predict(x)) ** 2).sum()), 1e-12 * float((y**2).sum()))
    count, free = len(y), len(parameters) + 1
    corrected = 2 * free * (free + 1) / max(count - free - 1, 1)
    slope, offset, top = parameters if name == "logarithm" else (parameters[0], 0.0, parameters[1])
    return Shape(
        name=name,
        slope=slope,
        offset_pps=offset,
        top_pps=top,
        r_squared=1 - squares / max(float(((y - y.mean()) ** 2).sum()), 1e-300),
        aic=count * math.log(squares / count) + 2 * free + corrected,
        cv_error=_left_out_error(name, x, y),
    )


def _left_out_error(name: Name, x: Array, y: Array) -> float:
    misses = []
    for index in range(len(x)):
        kept = np.arange(len(x)) != index
        predict, _ = _fitted(name, x[kept], y[kept])
        misses.append(float(predict(x[index : index + 1])[0]) - y[index])
    return float(np.sqrt(np.mean(np.square(misses)))) / float(y.max())


def _fitted(name: Name, x: Array, y: Array) -> tuple[Callable[[Array], Array], tuple[float, ...]]:
    """Fit the rising line to the first points and the top to the rest, wherever that fits best.

    With the right split these are the least squares of the whole curve: on either side of the
    knee it depends on one part of the parameters only.
    """
    columns = _columns(name, x)
    best: tuple[float, Array, float] | None = None
    for split in range(columns.shape[1], len(x) + 1):
        line = np.asarray(np.linalg.lstsq(columns[:split], y[:split], rcond=None)[0], np.float64)
        rest = y[split:]
        top = float(rest.mean()) if len(rest) else float((columns @ line).max())
        squares = float(((y - np.clip(columns @ line, 0.0, max(top, 0.0))) ** 2).sum())
        if best is None or squares < best[0]:
            best = squares, line, top
    assert best is not None  # the caller gives more points than a line has parameters
    _, line, top = best

    def predict(at: Array) -> Array:
        return np.clip(_columns(name, at) @ line, 0.0, max(top, 0.0))

    return predict, (*map(float, line), top)


def _columns(name: Name, x: Array) -> Array:
    return x[:, None] if name == "hinge" else np.column_stack((np.log10(x), np.ones(len(x))))
