"""Contents of a report as plain data: its page shows these figures, its files store them; pure."""

import msgspec

from models import HostModel
from training.design.expect import Outlook, outlooks
from training.design.validate import setpoints_of
from training.fit.eq1 import Residual
from training.fit.fit import Fit, HeldOut
from training.fit.points import CapPoint
from training.fit.verdict import Verdict, verdict_on
from training.recording.recording import Metadata, Phase, Recording
from training.report.responses import Responses, responses_of, settled_samples

LAWS = {
    "default": "default",
    "pi": "PI",
    "dead-beat-min3": "dead-beat",
}
"""Simulated laws, and their names on the page."""


class Corrected(msgspec.Struct, frozen=True):
    """One sample without the transients of earlier caps; packets/s."""

    at: float
    cap: float | None
    phase: Phase
    visit: int
    measured_pps: float
    corrected_pps: float | None
    """None under a load other than the fit's, where transients are not subtracted."""
    own: float | None
    """Weight of its own cap in the sample, 0 to 1; None likewise."""
    outlier: bool


class Contents(msgspec.Struct, frozen=True):
    """All tables of a report."""

    metadata: Metadata
    verdict: Verdict
    points: tuple[CapPoint, ...]
    samples: tuple[Corrected, ...]
    responses: Responses
    held_out: tuple[HeldOut, ...]
    residuals: tuple[Residual, ...]
    expectations: tuple[Outlook, ...]


def contents_of(recording: Recording, fit: Fit, host: HostModel) -> Contents:
    """Return the source of pages and files.

    Args:
        recording: the sweep.
        fit: its fit.
        host: the model of the fit, used to simulate the laws.
    """
    return Contents(
        metadata=recording.metadata,
        verdict=verdict_on(fit),
        points=fit.points,
        samples=corrected(recording, fit),
        responses=responses_of(recording, fit),
        held_out=fit.held_out,
        residuals=fit.eq1.residuals,
        expectations=expectations(host, fit),
    )


def corrected(recording: Recording, fit: Fit) -> tuple[Corrected, ...]:
    """Return all samples, those of the fit's load without their transients."""
    strays = {outlier.at for outlier in fit.outliers}
    settled = settled_samples(recording, fit)[1]
    known = iter(zip(settled.rates, settled.own, strict=True))
    found = []
    for sample in recording.samples:
        rate, own = (None, None) if sample.phase == "load" else map(float, next(known))
        found.append(
            Corrected(
                *(sample.at, sample.cap, sample.phase, sample.visit),
                *(sample.throughput_pps, rate, own, sample.at in strays),
            )
        )
    return tuple(found)


def speed_of(fit: Fit) -> float:
    """Return the host's change of speed from visit to visit, as a share; 0 if unknown."""
    return 0.0 if fit.variation is None else fit.variation.speed


def expectations(host: HostModel, fit: Fit) -> tuple[Outlook, ...]:
    """Return the expected behaviour of each law, by setpoint."""
    setpoints = setpoints_of(host, [])
    each = [outlooks(host, law, setpoints, noise=fit.noise, speed=speed_of(fit)) for law in LAWS]
    return tuple(outlook for at in zip(*each, strict=True) for outlook in at)
