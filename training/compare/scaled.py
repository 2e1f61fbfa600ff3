"""Make the model of a host from a transferred curve; pure."""

from dataclasses import replace

from common.units import format_cap
from models import ControlGains, HostModel, LogCapModel, ThroughputCurve, Uncertainty
from training.compare.gls import log_error
from training.compare.transfer import Transfer, predicted_top
from training.recording.recording import Metadata

LONGEST = 1000
"""Maximum length of a description in a model file."""


def scaled_host(host: HostModel, found: Transfer, metadata: Metadata) -> HostModel:
    """Return the new host: the known one, its throughputs scaled, under the new one's name.

    Lag and delay stay. Eq. 1's b is proportional to throughput, so gains go with 1/factor, and
    the loop stays the one that was designed.

    Raises:
        models.InvalidModelError: the numbers do not describe a host.
    """
    factor = found.factor.value
    curve = scaled_curve(host, found)
    line = host.log_model
    return replace(
        host,
        name=metadata.host,
        description=_description(host, found, metadata),
        hypervisor=metadata.hypervisor,
        cpu=metadata.cpu,
        kernel=metadata.kernel,
        measured_curve=curve,
        log_model=None if line is None else _line(line, factor, curve),
        uncertainty=_uncertainty(host, found, curve),
        cost=host.cost and host.cost.on_a_host(factor),
        pi=_gains(host.pi, factor),
        dead_beat=_gains(host.dead_beat, factor),
    )


def scaled_curve(host: HostModel, found: Transfer) -> ThroughputCurve:
    """Return the known curve, scaled, and flat above the new host's top."""
    factor, top = found.factor.value, predicted_top(host, found)
    points = {cap: min(factor * rate, top) for cap, rate in host.curve.points}
    if top < factor * host.curve.top:
        points.setdefault(host.curve.cap_for(top / factor), top)
    return ThroughputCurve(tuple(sorted(points.items())), found.offered_pps)


def _uncertainty(host: HostModel, found: Transfer, curve: ThroughputCurve) -> Uncertainty | None:
    """Return the known curve's errors with that of the factor; keep noise and speed."""
    if host.uncertainty is None:
        return None
    return host.uncertainty.carried_to(curve, log_error(found.factor))


def _line(line: LogCapModel, factor: float, curve: ThroughputCurve) -> LogCapModel:
    return replace(
        line,
        b=factor * line.b,
        mean_throughput=factor * line.mean_throughput,
        cap_threshold=min(line.cap_threshold, curve.cap_threshold),
        offered=curve.offered or factor * line.offered,
    )


def _gains(gains: ControlGains | None, factor: float) -> ControlGains | None:
    return None if gains is None else replace(gains, kp=gains.kp / factor, ki=gains.ki / factor)


def _description(host: HostModel, found: Transfer, metadata: Metadata) -> str:
    factor = found.factor
    when = f" on {metadata.started}" if metadata.started else ""
    caps = ", ".join(format_cap(one.cap) for one in found.caps)
    cautions = "".join(f" Caution: {caution}." for caution in found.cautions)
    text = (
        f"Transferred{when} from the model {host.name}: throughputs times {factor.value:.3f} "
        f"(95 %: {factor.low:.3f} to {factor.high:.3f}), measured at caps of {caps}. Lag and "
        f"delay are the known model's; b is scaled, and gains are divided by the factor.{cautions}"
    )
    known = f" Of the known model: {host.description}" if host.description else ""
    return (text + known)[:LONGEST]
