"""A curve measured on another host, from a model file or from a sweep; pure."""

from dataclasses import dataclass

import numpy as np

from models import HostModel
from training.compare.gls import log_error
from training.compare.ratio import rising_of
from training.design.gains import design
from training.design.host_model import b_of, host_model, lag_of
from training.errors import DesignError, TransferError
from training.fit.fit import Fit, fit
from training.fit.points import Rising
from training.fit.verdict import verdict_on
from training.recording.recording import Recording

FILE_ERROR = 0.02
"""Standard error of a point of a model file, which has no errors: `xtc-train fit` writes no curve
with a 95 % interval wider than 5 % to either side."""
SETTLING_S, OVERSHOOT = 5.0, 0.08
"""Target of the gains, the default of `xtc-train fit`."""


@dataclass(frozen=True)
class Known:
    """A known curve."""

    host: HostModel
    rising: Rising
    """Its points up to the cap threshold, with the covariance of their logarithms."""
    packet_bytes: float | None = None
    """Packet size of the curve, if known."""


def known_from_model(host: HostModel) -> Known:
    """Return the curve of a model file; its points have the error `FILE_ERROR`."""
    curve = host.curve
    points = [(cap, rate) for cap, rate in curve.points if rate > 0 and cap <= curve.cap_threshold]
    rates = np.array([rate for _, rate in points])
    covariance = FILE_ERROR**2 * np.eye(len(points))
    rising = Rising(tuple(cap for cap, _ in points), rates, covariance, 1.0)
    return Known(host, rising, None if host.cost is None else host.cost.reference_bytes)


def known_from_sweep(recording: Recording) -> Known:
    """Return the curve of a sweep, with the errors that its fit found.

    Raises:
        UnfitError: it supports no fit, or none that is precise enough.
    """
    found = fit(recording)
    verdict = verdict_on(found)
    if not verdict.usable:
        raise TransferError("precision", "the known sweep is not precise enough", verdict.words)
    period = recording.metadata.period_s
    try:
        gains = design(
            *(lag_of(found), b_of(found)),
            settling_s=SETTLING_S,
            overshoot=OVERSHOOT,
            period_s=period,
        )
    except DesignError as error:
        fix = "write the model with xtc-train fit --settling, and give its file"
        raise TransferError("gains", f"no gains for the known sweep: {error}", fix) from error
    host = host_model(found, gains, recording.metadata)
    rising = _with_threshold(rising_of(recording, found), found)
    return Known(host, rising, recording.metadata.packet_bytes)


def _with_threshold(rising: Rising, found: Fit) -> Rising:
    """Return the rising caps and the threshold: few are near it on a straight curve."""
    if not found.threshold_reached or found.cap_threshold <= max(rising.caps, default=0.0):
        return rising
    covariance = np.pad(rising.covariance, (0, 1))
    covariance[-1, -1] = log_error(found.top) ** 2
    caps, rates = (*rising.caps, found.cap_threshold), np.append(rising.rates, found.top_pps)
    return Rising(caps, rates, covariance, rising.freedom)
