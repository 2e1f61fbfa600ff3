"""Scale a known curve by a few caps measured on a new host, or refuse to; pure.

The factor is the new host's throughput over the known curve's, at caps that limit the router on
both. It represents the hosts' speed, so it must be the same at all caps. If it is not, the new host
has another curve and needs its own sweep.
"""

import math
import statistics
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from common.units import format_cap
from models import HostModel
from training.compare.gls import Common, common_of, ratio_interval
from training.compare.interpolate import interpolated
from training.compare.known_curve import Known
from training.compare.ratio import below_load
from training.errors import TransferError
from training.fit.dynamics import LARGEST, Dynamics
from training.fit.fit import offered_in
from training.fit.interval import Interval
from training.fit.means import Means, means_of
from training.fit.points import LOADED, Rising, curve_of
from training.fit.verdict import PRECISE
from training.recording.recording import Recording

Array = npt.NDArray[np.float64]

LEAST_CAPS = 2
"""Binding caps needed to show that one factor fits the whole curve."""
SPREAD = 2.0
"""Minimum ratio of the largest to the smallest binding cap that distinguishes curves."""
SURELY = 0.01
"""Probability below which chance does not explain that factors differ between caps."""
SHORT = 0.05
"""Share by which the uncapped router may miss its predicted top."""


class CapFactor(msgspec.Struct, frozen=True):
    """The new host at one cap; throughputs in packets/s."""

    cap: float
    throughput_pps: float
    known_pps: float
    factor: Interval
    """The first over the second."""


class Transfer(msgspec.Struct, frozen=True):
    """Factor from a known curve to that of a new host."""

    factor: Interval
    caps: tuple[CapFactor, ...]
    """The caps that determine the factor, by rising cap."""
    unused: tuple[float, ...]
    """Measured caps that do not bind on both hosts."""
    chance: float
    """Probability that chance alone makes the factor vary so much between caps."""
    offered_pps: float | None
    """Load offered to the new host, if known."""
    uncapped_pps: float | None
    """Throughput of the new host uncapped, if measured."""
    cautions: tuple[str, ...] = ()


def transfer_of(known: Known, recording: Recording) -> Transfer:
    """Return the factor from a known curve to the new host of a recording.

    Raises:
        TransferError: too few caps bind, one is out of the known range, their factors differ, the
            factor is not known well enough, the top is not reached, or the samples have no one
            solution.
    """
    try:
        return _transferred(known, recording)
    except np.linalg.LinAlgError as error:
        problem = "their times or rates leave no one solution"
        fix = "look at at_s and throughput_pps: samples come one period after the other"
        raise TransferError("samples", problem, fix) from error


def _transferred(known: Known, recording: Recording) -> Transfer:
    samples = [sample for sample in recording.samples if sample.phase != "load"]
    _check_size(known, recording)
    offered = offered_in(recording)
    means = means_of(samples, recording.metadata.period_s, _dynamics(known.host, recording))
    _check_measured(means)
    measured = sorted({one.cap for one in means.visits if one.cap is not None})
    _check_range(known.host, measured)
    rising = _within(known.rising, below_load(curve_of(means, offered).rising, offered))
    _check_count(known.host, rising.caps, measured)
    factors, logs, covariance = _factors(known.rising, rising)
    common = common_of(logs, covariance, rising.freedom)
    _check_alike(common, factors)
    factor = ratio_interval(common.value, common.error)
    _check_precise(factor)
    uncapped = [r for one in means.visits if one.phase == "uncapped" for r in one.rates]
    found = Transfer(
        factor=factor,
        caps=factors,
        unused=tuple(cap for cap in measured if cap not in rising.caps),
        chance=common.chance,
        offered_pps=offered,
        uncapped_pps=statistics.fmean(uncapped) if uncapped else None,
    )
    return msgspec.structs.replace(found, cautions=_cautions(known.host, found))


def _dynamics(host: HostModel, recording: Recording) -> Dynamics:
    """Return the known lag and delay, at the recording's period: a few caps do not show them."""
    period = recording.metadata.period_s
    lag = min(host.lag_at(period), LARGEST)
    return Dynamics(Interval(lag, lag, lag), host.delay_at(period), 0)


def _within(known: Rising, new: Rising) -> Rising:
    """Return those of the new host's caps that are below the known cap threshold."""
    low, high = min(known.caps, default=math.inf), max(known.caps, default=0.0)
    kept = [number for number, cap in enumerate(new.caps) if low <= cap < high]
    covariance = new.covariance[np.ix_(kept, kept)]
    return Rising(tuple(new.caps[n] for n in kept), new.rates[kept], covariance, new.freedom)


def _factors(known: Rising, new: Rising) -> tuple[tuple[CapFactor, ...], Array, Array]:
    """Return the factor at each cap, their logarithms, and the covariance of those."""
    curve = interpolated(known.caps, np.log(known.rates), new.caps)
    logs = np.asarray(np.log(new.rates) - curve.logs, np.float64)
    covariance = new.covariance + curve.covariance(known.covariance)
    factors = tuple(
        CapFactor(
            cap=cap,
            throughput_pps=float(new.rates[n]),
            known_pps=math.exp(curve.logs[n]),
            factor=ratio_interval(float(logs[n]), math.sqrt(covariance[n, n])),
        )
        for n, cap in enumerate(new.caps)
    )
    return factors, logs, covariance


def _check_size(known: Known, recording: Recording) -> None:
    """Reject packets of another size, which cost the same host a different CPU share."""
    here, there = recording.metadata.packet_bytes, known.packet_bytes
    if here is None or there is None or abs(here - there) < 1:
        return
    raise TransferError(
        "packet_bytes",
        f"the known curve is of packets of {there:g} bytes, the recording of {here}",
        f"sweep with --packet-size {there:.0f}, or scale the known curve first: "
        f"xtc-train mix KNOWN --mix {here}:1 --output FILE",
    )


def _check_measured(means: Means) -> None:
    """Reject a sweep without a cap: on a slow host, the first samples show the one before."""
    if not any(one.phase == "steady" and one.cap is not None for one in means.visits):
        fix = "let sweep --cap finish: the same command continues"
        raise TransferError("caps", "no cap was measured yet", fix)


def _check_range(host: HostModel, caps: Sequence[float]) -> None:
    low, high = host.curve.points[0][0], host.curve.points[-1][0]
    for cap in caps:
        if not low * (1 - 1e-9) <= cap <= high * (1 + 1e-9):
            measured = f"{format_cap(low)} to {format_cap(high)}"
            problem = f"a cap of {format_cap(cap)} is outside of the known curve ({measured})"
            raise TransferError("range", problem, "measure caps within it", cap=cap)


def _check_count(host: HostModel, binding: Sequence[float], measured: Sequence[float]) -> None:
    threshold = format_cap(host.curve.cap_threshold)
    if len(binding) < LEAST_CAPS:
        raise TransferError(
            "caps",
            f"{len(binding)} of {len(measured)} caps bind below the known threshold of {threshold}",
            f"measure {LEAST_CAPS} or more that do, such as --cap 20% --cap 60%",
        )
    if binding[-1] < SPREAD * binding[0]:
        raise TransferError(
            "spread",
            f"binding caps from {format_cap(binding[0])} to {format_cap(binding[-1])} are too near "
            "to each other to show another curve",
            f"measure a cap {SPREAD:g} times as large as another, below {threshold}",
        )


def _check_alike(common: Common, factors: Sequence[CapFactor]) -> None:
    if common.chance >= SURELY:
        return
    worst = int(np.argmax(np.abs(common.deviations)))
    others = [f"{one.factor.value:.2f}" for n, one in enumerate(factors) if n != worst]
    at = format_cap(factors[worst].cap)
    raise TransferError(
        "shape",
        f"one factor does not serve all caps: it is {factors[worst].factor.value:.2f} at {at} and "
        f"{', '.join(others)} at the others",
        "the host has another curve: sweep it in full",
        cap=factors[worst].cap,
    )


def _check_precise(factor: Interval) -> None:
    half = (factor.high - factor.low) / 2 / factor.value
    if half > PRECISE:
        raise TransferError(
            "precision",
            f"the factor is known to ±{half:.0%} only ({factor.low:.2f} to {factor.high:.2f})",
            "measure more caps, or each for longer, with nothing else on the host",
        )


def predicted_top(host: HostModel, found: Transfer) -> float:
    """Return the predicted top of the new host under its offered load, in packets/s."""
    top = found.factor.value * host.curve.top
    return top if found.offered_pps is None else min(top, found.offered_pps)


def _cautions(host: HostModel, found: Transfer) -> tuple[str, ...]:
    """Return the warnings.

    Raises:
        TransferError: the uncapped router forwards significantly less than its predicted top.
    """
    top, uncapped = predicted_top(host, found), found.uncapped_pps
    if uncapped is None:
        return ("the uncapped router was not measured: nothing confirms the top",)
    lowest = top * found.factor.low / found.factor.value
    if uncapped < (1 - SHORT) * lowest:
        raise TransferError(
            "top",
            f"the uncapped router forwards {uncapped:.0f} packets/s, and {top:.0f} are predicted",
            "the host has another top, or too little was offered: sweep it in full",
        )
    cautions = []
    if uncapped > (1 + SHORT) * top * found.factor.high / found.factor.value:
        cautions.append("the uncapped router forwards more than the top that is predicted")
    known = host.curve.offered
    if known is not None and host.curve.top >= LOADED * known:
        cautions.append("the load limited the known top: the new host may be capable of more")
    return tuple(cautions)
