"""How fast one host is compared with another: the ratio of two swept curves, cap by cap; pure.

Only caps that limit both routers show the hosts' speed, and only between caps that each sweep
measured. The errors of one sweep's caps are correlated, since its host had one speed at a time
(`training.fit.levels`). The common ratio and the test of one ratio for all caps therefore weight
caps by that covariance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import linalg

from training.compare.gls import Common, common_of, log_error, ratio_interval
from training.compare.interpolate import Interpolated, interpolated
from training.errors import UnfitError
from training.fit.dynamics import LARGEST, Dynamics
from training.fit.fit import Fit, Limit, fit
from training.fit.interval import Interval
from training.fit.means import means_of
from training.fit.points import LOADED, Rising, curve_of
from training.recording.recording import Recording
from training.recording.sweep_model import NARROW

Array = npt.NDArray[np.float64]

LEAST_COMMON = 2
"""Caps that both sweeps must have before the ratio can be called the same at all of them."""
INDEPENDENT = 0.2
"""Share of a cap's weights that must be independent of the others for the cap to count: where two
sweeps interleave, some interpolated ratios follow from the others."""


class CapRatio(msgspec.Struct, frozen=True):
    """Both hosts at one cap; throughputs in packets/s."""

    cap: float
    a_pps: float
    b_pps: float
    ratio: Interval
    """B over A, with its 95 % interval."""
    interpolated: bool
    """Whether one of the two sweeps measured only the neighbours of this cap."""


class TopRatio(msgspec.Struct, frozen=True):
    """The largest throughput of each host, compared."""

    ratio: Interval
    a_limited_by: Limit | None
    """What limits the top of A; None if its sweep ended below the top."""
    b_limited_by: Limit | None

    @property
    def tells(self) -> bool:
        """Whether the hosts give the ratio: false if the load, or the sweep's end, limits one."""
        return self.a_limited_by == self.b_limited_by == "host"


class Answer(msgspec.Struct, frozen=True):
    """Response of one host to a change of cap."""

    period_s: float
    """Seconds between samples."""
    lag: Interval
    """Share of a step that is left after one sample of A's period."""
    delay_s: float
    """Seconds before a cap has any effect."""


class Ratio(msgspec.Struct, frozen=True):
    """Two hosts, compared."""

    points: tuple[CapRatio, ...]
    """By rising cap."""
    common: Interval
    """The one ratio of B over A at all caps."""
    chance: float
    """Probability that chance alone makes the ratio vary so much between caps."""
    top: TopRatio
    a: Answer
    b: Answer

    @property
    def lags_differ(self) -> bool:
        """Whether the lags, at A's period, differ by more than chance explains."""
        a, b = self.a.lag, self.b.lag
        return abs(a.value - b.value) > math.hypot(_half(a), _half(b))

    @property
    def delays_differ(self) -> bool:
        """Whether the delays differ by more than the longer period, which bounds the resolution."""
        return abs(self.a.delay_s - self.b.delay_s) >= max(self.a.period_s, self.b.period_s)


def ratio_of(a: Recording, b: Recording) -> Ratio:
    """Compare two sweeps.

    Raises:
        UnfitError: one of them supports no fit, or they have too few caps in common.
    """
    return ratio_of_fits((a, fit(a)), (b, fit(b)))


def ratio_of_fits(a: tuple[Recording, Fit], b: tuple[Recording, Fit]) -> Ratio:
    """Compare two sweeps that are fitted already.

    Raises:
        UnfitError: they have too few caps in common.
    """
    sizes = a[0].metadata.packet_bytes, b[0].metadata.packet_bytes
    if None not in sizes and sizes[0] != sizes[1]:
        raise UnfitError(
            "packet_bytes",
            f"A is of packets of {sizes[0]} bytes, B of {sizes[1]}: that is no ratio of hosts",
            "sweep both with the same --packet-size",
        )
    one, other = _side(*a), _side(*b)
    caps = _common_caps(one.rising.caps, other.rising.caps)
    pair = _Pair(one.rising, other.rising, caps)
    common = pair.common()
    return Ratio(
        points=pair.points(),
        common=ratio_interval(common.value, common.error),
        chance=common.chance,
        top=_top(a[1], b[1]),
        a=one.answer(one.period),
        b=other.answer(one.period),
    )


@dataclass(frozen=True)
class _Side:
    """One sweep in the form that the comparison needs."""

    rising: Rising
    period: float
    host: Dynamics

    def answer(self, period: float) -> Answer:
        """Return its response, the lag at another period (`HostModel.lag_at`), in seconds."""
        power = period / self.period
        low, value, high = (
            min(max(share, 0.0), LARGEST) ** power
            for share in (self.host.lag.low, self.host.lag.value, self.host.lag.high)
        )
        return Answer(self.period, Interval(value, low, high), self.host.delay * self.period)


def _side(recording: Recording, found: Fit) -> _Side:
    return _Side(rising_of(recording, found), recording.metadata.period_s, _host(found))


def _host(found: Fit) -> Dynamics:
    return Dynamics(found.eq1.a, found.eq1.delay, 0)


def rising_of(recording: Recording, found: Fit) -> Rising:
    """Return the caps that limit a router, from a sweep and its fit."""
    samples = [sample for sample in recording.samples if sample.phase != "load"]
    means = means_of(samples, recording.metadata.period_s, _host(found))
    return below_load(curve_of(means, found.offered_pps).rising, found.offered_pps)


def below_load(rising: Rising, offered: float | None) -> Rising:
    """Return the caps at which the cap, not the load, limits throughput; packets/s where known."""
    if offered is None:
        return rising
    kept = [n for n, rate in enumerate(rising.rates) if rate < LOADED * offered]
    return Rising(
        tuple(rising.caps[n] for n in kept),
        rising.rates[kept],
        rising.covariance[np.ix_(kept, kept)],
        rising.freedom,
    )


def _common_caps(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """Return the caps that one sweep measured and the other measured or brackets, rising.

    Raises:
        UnfitError: there are too few.
    """
    low, high = (
        max(min(a, default=0.0), min(b, default=0.0)),
        min(max(a, default=0.0), max(b, default=0.0)),
    )
    found = list[float]()
    for cap in sorted(cap for cap in {*a, *b} if low <= cap <= high):
        if not found or cap - found[-1] > NARROW * cap:
            found.append(cap)
    if len(found) < LEAST_COMMON or min(len(a), len(b)) < LEAST_COMMON:
        raise UnfitError(
            "caps",
            f"{len(found)} caps below both thresholds are within both sweeps",
            f"sweep both over caps of which {LEAST_COMMON} or more hold both routers back",
        )
    return found


class _Pair:
    """Both curves at the same caps."""

    def __init__(self, a: Rising, b: Rising, caps: Sequence[float]) -> None:
        self._a, self._b, self._caps = a, b, caps
        self._of_a, self._of_b = (interpolated(one.caps, np.log(one.rates), caps) for one in (a, b))
        self._logs = self._of_b.logs - self._of_a.logs
        self._covariance = self._of_a.covariance(a.covariance) + self._of_b.covariance(b.covariance)

    def common(self) -> Common:
        """Return the common ratio of the caps, as a logarithm."""
        kept = _independent(self._of_a, self._of_b)
        freedom = min(self._a.freedom, self._b.freedom)
        return common_of(self._logs[kept], self._covariance[np.ix_(kept, kept)], freedom)

    def points(self) -> tuple[CapRatio, ...]:
        """Return the ratio at each cap."""
        measured = {*self._a.caps} & {*self._b.caps}
        return tuple(
            CapRatio(
                cap=cap,
                a_pps=math.exp(self._of_a.logs[n]),
                b_pps=math.exp(self._of_b.logs[n]),
                ratio=ratio_interval(float(self._logs[n]), math.sqrt(self._covariance[n, n])),
                interpolated=cap not in measured,
            )
            for n, cap in enumerate(self._caps)
        )


def _independent(a: Interpolated, b: Interpolated) -> list[int]:
    """Return the rising indices of the caps with ratios that do not follow from one another."""
    rows = np.hstack((a.weights, -b.weights))
    columns = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T
    _, triangle, order = linalg.qr(columns, mode="economic", pivoting=True)
    own = np.abs(np.diag(triangle)) > INDEPENDENT
    return sorted(int(number) for number in order[: len(own)][own])


def _top(a: Fit, b: Fit) -> TopRatio:
    error = math.hypot(log_error(a.top), log_error(b.top))
    log = math.log(b.top.value / a.top.value)
    return TopRatio(ratio_interval(log, error), a.limited_by, b.limited_by)


def _half(found: Interval) -> float:
    return (found.high - found.low) / 2
