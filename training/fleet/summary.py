"""Results of a fleet: a row for each host, and the hosts that stand out; pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from models import HostModel, ModelError
from training.compare.relative import Ratio, relative_speed
from training.design.gains import Design, design
from training.design.host_model import b_of, host_model, lag_of
from training.errors import TrainingError
from training.fit.drift import Variation
from training.fit.fit import Fit, fit
from training.fit.interval import Interval
from training.fit.verdict import verdict_on
from training.recording.recording import Recording

APART = 0.05
"""A speed that differs from the median host's by more than this share gets a sentence."""
SETTLING_S = 5.0
OVERSHOOT = 0.08
"""Target of the gains, the default of `xtc-train design`."""
LEAST_SETTLING_PERIODS = 5.0
"""A host with a long period gets the same number of periods."""
REFUSED = "refused"

_COUNT = re.compile(r"^\d+x ")


@dataclass(frozen=True)
class HostFit:
    """A recording that supports a fit."""

    recording: Recording
    fit: Fit
    design: Design
    model: HostModel


class HostRow(msgspec.Struct, frozen=True):
    """One host's row of the table; figures are None if the fit is refused."""

    name: str
    """Base name of its files."""
    host: str
    """The host's own name."""
    cpu: str
    usable: bool
    verdict: str
    """`usable`, what to measure, or why the fit is refused."""
    top_pps: Interval | None = None
    cap_threshold: float | None = None
    """In CPUs, like all caps."""
    threshold_reached: bool = False
    smallest_useful_cap: float | None = None
    reference: str | None = None
    """The median host of the same CPU model, the reference of `speed`."""
    speed: Ratio | None = None
    noise: float | None = None
    """Standard deviation of a sample, as a share."""
    variation: Variation | None = None


class Summary(msgspec.Struct, frozen=True):
    """Results of a fleet's recordings."""

    findings: tuple[str, ...]
    """A sentence for each host with a speed that differs from its kind's."""
    hosts: tuple[HostRow, ...]
    """By name."""


def fitted(recording: Recording) -> HostFit | str:
    """Return the fit of one recording, or why it is refused."""
    try:
        found = fit(recording)
        period = recording.metadata.period_s
        settling = max(SETTLING_S, LEAST_SETTLING_PERIODS * period)
        gains = design(
            lag_of(found), b_of(found), settling_s=settling, overshoot=OVERSHOOT, period_s=period
        )
        model = host_model(found, gains, recording.metadata)
    except (TrainingError, ModelError) as error:
        return str(error)
    return HostFit(recording, found, gains, model)


def summarize(recordings: Mapping[str, Recording], fits: Mapping[str, HostFit | str]) -> Summary:
    """Return the rows of all hosts, by name, and the sentences on those that stand out."""
    known = {name: found for name, found in fits.items() if isinstance(found, HostFit)}
    speeds: dict[str, tuple[str, Ratio | None]] = {}
    findings = list[str]()
    for kind in _kinds(known):
        median = median_host(kind)
        ratios = {
            name: None if name == median else relative_speed(one.fit, kind[median].fit)
            for name, one in kind.items()
        }
        speeds |= {name: (median, ratio) for name, ratio in ratios.items()}
        findings += _findings(ratios, median)
    rows = (_row(name, recordings[name], fits[name], speeds.get(name)) for name in sorted(fits))
    return Summary(tuple(findings), tuple(rows))


def cpu_kind(recording: Recording) -> str:
    """Return the CPU model without the count; empty if unknown."""
    return _COUNT.sub("", recording.metadata.cpu).strip()


def _kinds(known: Mapping[str, HostFit]) -> Iterator[dict[str, HostFit]]:
    """Yield the hosts of each CPU model and packet size, if there are two or more."""
    groups: dict[tuple[str, int | None], dict[str, HostFit]] = {}
    for name in sorted(known):
        recording = known[name].recording
        kind = cpu_kind(recording), recording.metadata.packet_bytes
        groups.setdefault(kind, {})[name] = known[name]
    yield from (group for (cpu, _), group in groups.items() if cpu and len(group) > 1)


def median_host(kind: Mapping[str, HostFit]) -> str:
    """Return the host in the middle by speed; of an even number, the faster of the middle two."""
    first = kind[min(kind)].fit
    ranks = {name: _rank(one.fit, first) for name, one in kind.items()}
    return sorted(kind, key=ranks.__getitem__)[len(kind) // 2]


def _rank(host: Fit, first: Fit) -> float:
    """Return the approximate speed of a host; without common caps, from its top."""
    ratio = relative_speed(host, first)
    return ratio.value if ratio is not None else host.top_pps / first.top_pps


def _findings(ratios: Mapping[str, Ratio | None], median: str) -> Iterator[str]:
    apart = {name: ratio for name, ratio in ratios.items() if ratio is not None and _apart(ratio)}
    for name, ratio in apart.items():
        than = "slower" if ratio.value < 1 else "faster"
        share = f"{abs(1 - ratio.value):.0%}".replace("%", " %")
        sure = f"95 %: {ratio.low:.2f} to {ratio.high:.2f} of its speed"
        others = _others(sorted({*ratios} - {name}), median, alone=len(apart) == 1)
        yield f"{name} is {share} {than} than {others} ({sure})."


def _apart(ratio: Ratio) -> bool:
    return ratio.high < 1 - APART or ratio.low > 1 + APART


def _others(others: Sequence[str], median: str, *, alone: bool) -> str:
    """Name the reference of a host; the others are one group if none stands out."""
    if len(others) == 1:
        return f"{others[0]}, the only other with the same CPU"
    if alone:
        return f"the {len(others)} others with the same CPU"
    return f"{median}, the median of the {len(others) + 1} with the same CPU"


def _row(
    name: str,
    recording: Recording,
    found: HostFit | str,
    speed: tuple[str, Ratio | None] | None,
) -> HostRow:
    metadata = recording.metadata
    if isinstance(found, str):
        return HostRow(name, metadata.host, metadata.cpu, False, f"{REFUSED}: {found}")
    fit, verdict = found.fit, verdict_on(found.fit)
    reference, ratio = speed or (None, None)
    return HostRow(
        name=name,
        host=metadata.host,
        cpu=metadata.cpu,
        usable=verdict.usable,
        verdict=verdict.words,
        top_pps=fit.top,
        cap_threshold=fit.cap_threshold,
        threshold_reached=fit.threshold_reached,
        smallest_useful_cap=fit.smallest_useful_cap,
        reference=reference,
        speed=ratio,
        noise=fit.noise,
        variation=fit.variation,
    )
