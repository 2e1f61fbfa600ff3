"""Judges whether a daemon holds a router: over ticks of its own, from above and from below.

From above by what the kernel counted: no load excuses a router that forwards more than its
setpoint. From below by what was wanted, the smaller of setpoint and offered load, and by the part
of its caps that the kernel gave it. Ticks in which it was offered more, and its cap was not what
limited it, tell of the machine's other work. All rates are in the unit that the router is held in.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from support.inconclusive import inconclusive
from support.rates import Rate
from xtc.cli.status import Shown
from xtc.daemon.client import Client
from xtc.wire import Report, Telemetry

TICKS: Final = 4
"""So many in a row make a mean that says whether a router is near its setpoint."""
NEAR: Final = 0.2
PATIENCE_S: Final = 60.0
SILENCE_S: Final = 15.0
"""A daemon that streams nothing for so long is not merely late."""


def stream(runtime: Path, seconds: float = PATIENCE_S) -> Iterator[Telemetry]:
    """Yield a daemon's ticks for so long by its own clock."""
    with Client(runtime, timeout=SILENCE_S) as client:
        ticks = client.telemetry()
        first = next(ticks)
        yield first
        for tick in ticks:
            yield tick
            if tick.at - first.at > seconds:
                return


def of(vr: str, ticks: Sequence[Telemetry]) -> list[Report]:
    """Return one router's reports."""
    return [report for tick in ticks for report in tick.routers if report.vr == vr]


def is_near(reports: Sequence[Report]) -> bool:
    """Whether the last ticks' mean throughput is near the setpoint, and all were capped."""
    last = reports[-TICKS:]
    rates = throughputs(last)
    setpoint = Shown(last[-1]).setpoint()
    if len(rates) < TICKS or setpoint is None or None in [report.cap for report in last]:
        return False
    return abs(fmean(rates) / setpoint - 1) < NEAR


def wait_until_near(runtime: Path, *vrs: str, without_problem: bool = False) -> None:
    """Wait until routers are near their setpoints.

    Raises:
        AssertionError: they are not in time; with the last tick.
    """
    seen: list[Telemetry] = []
    for tick in stream(runtime):
        seen = [*seen[1 - TICKS :], tick]
        near = all(is_near(of(vr, seen)) for vr in vrs)
        if near and not (without_problem and any(of(vr, [tick])[0].problem for vr in vrs)):
            return
    raise AssertionError(f"not held after {PATIENCE_S:g} s: {seen}")


def watch(runtime: Path, ticks: int) -> list[Telemetry]:
    """Return the daemon's next so many ticks."""
    return list(islice(stream(runtime), ticks))


def check_held(
    ticks: Sequence[Telemetry], rates: Mapping[str, Rate], most: float, **setpoints: float
) -> None:
    """Check that routers were held at setpoints for the time of some ticks.

    Args:
        ticks: what the daemon streamed meanwhile.
        rates: what the kernel counted meanwhile, by router.
        most: the largest error of the mean beyond its noise, as a part of the setpoint.
        setpoints: by router.

    Raises:
        AssertionError: a router was not held.
        Inconclusive: none was wrong, but for one more than half of the ticks tell nothing.
    """
    unknown = []
    for vr, setpoint in setpoints.items():
        error = setpoint * most + noise(of(vr, ticks))
        assert rates[vr].least <= setpoint + error, f"{vr} forwarded {rates[vr]}"
        telling = [report for report in of(vr, ticks) if is_telling(report, setpoint)]
        if 2 * len(telling) < len(ticks):
            unknown.append(vr)
            continue
        mean = fmean(throughputs(telling))
        wanted = fmean(min(setpoint, offered(one) or setpoint) for one in telling)
        wanted *= received(telling)
        assert mean >= wanted - error, f"{vr} forwarded {mean:.0f} of {wanted:.0f}"
    if unknown:
        inconclusive(f"{unknown}: in most of {len(ticks)} ticks no cap is known to have bound")


def noise(reports: Sequence[Report]) -> float:
    """Return two standard errors of the mean throughput.

    So few samples say no more of the mean; a router under a small cap scatters by a tenth.
    """
    rates = throughputs(reports)
    return 2 * stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0


def received(reports: Sequence[Report]) -> float:
    """Return the part of the caps that bound which a router got as CPU time, at most all of it.

    A cap binds from three quarters of it on: a busy machine may keep back the rest. Behind a
    shield it is not to bind, and excuses nothing.
    """
    bound = [
        (one.used, one.cap)
        for one in reports
        if one.binding and one.cap and one.used and not is_shielded(one)
    ]
    used, caps = (sum(column) for column in zip(*bound, strict=True)) if bound else (1.0, 1.0)
    return min(1.0, used / caps)


def is_shielded(report: Report) -> bool:
    """Whether a shield holds the rate."""
    return report.shield_pps is not None or report.shield_bps is not None


def is_telling(report: Report, setpoint: float) -> bool:
    """Whether a router that forwarded too little in this tick was held too low."""
    shown = Shown(report)
    if shown.throughput() is None:
        return False
    return bool(report.binding) or (offered(report) or setpoint) < setpoint


def offered(report: Report) -> float | None:
    """Return what a router was offered, in bits as frames of the size that it forwards.

    A veth counts less of a frame than its peer where that polls.
    """
    if not Shown(report).in_bits:
        return report.offered_pps
    if not (report.throughput_pps and report.throughput_bps and report.offered_pps):
        return None
    return report.throughput_bps * report.offered_pps / report.throughput_pps


def throughputs(reports: Sequence[Report]) -> list[float]:
    """Return the throughputs that are known."""
    rates = (Shown(report).throughput() for report in reports)
    return [rate for rate in rates if rate is not None]
