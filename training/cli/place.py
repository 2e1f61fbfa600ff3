"""The options that select the router to measure, and its load."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, get_type_hints

import typer

from common.errors import ConfigError
from common.units import Seconds, parse_duration, parse_rate
from lab.errors import BadRequestError
from lab.plan import RouterKind, check_kind
from lab.programs.source import HEADERS, LARGEST_PAYLOAD, PAYLOAD
from models.cost import LARGEST, SMALLEST
from training.sweep.bench import Bench
from training.sweep.load import arrives, check_size, saturating_rate, short_of, words_of
from training.sweep.targets import LAB_STATE, Site, configured_site, lab_site
from training.sweep.watch import PATIENCE, Stop
from xtc.config.schema import DaemonSection

LabKind = Annotated[
    str | None,
    typer.Option("--lab", help="Measure a flooded router made for it: user-space or kernel."),
]
ConfigPath = Annotated[
    Path,
    typer.Option(
        "--config", "-c", envvar="XTC_CONFIG", help="Configuration of the routers to measure."
    ),
]
RouterName = Annotated[
    str | None,
    typer.Option("--router", help="Router to measure, by its name in the configuration."),
]
Source = Annotated[
    str | None,
    typer.Option(
        help="Command that floods the router; {rate} is replaced by packets/s, {size} by the "
        "bytes of --packet-size."
    ),
]
Offered = Annotated[
    str | None,
    typer.Option(help="Packet rate to send, e.g. 200kpps (default: what saturates the router)."),
]
OfferedRates = Annotated[
    list[str] | None,
    typer.Option(
        "--offered",
        help="Packet rate to send, e.g. 200kpps (default: what saturates the router). "
        "Repeatable: a few caps are measured at each further rate, too.",
    ),
]
PacketSize = Annotated[
    int | None,
    typer.Option(help="Packet size to send: bytes of the Ethernet frame without its checksum."),
]
PacketSizes = Annotated[
    list[int] | None,
    typer.Option(
        "--packet-size",
        help="Packet size to send: bytes of the Ethernet frame without its checksum (FCS). "
        "In a lab, the default is 64. Repeatable: a few caps are measured at each further size.",
    ),
]
LabPeriod = Annotated[
    str, typer.Option("--period", help="Sampling period in a lab (else the configuration's).")
]
LabState = Annotated[
    Path, typer.Option("--lab-state-dir", help="Directory of the journal of a lab's router.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
STATE = LAB_STATE
LAB_BYTES = HEADERS + PAYLOAD
"""Default size of a lab's packets."""
LAB_SMALLEST, LAB_LARGEST = HEADERS + 1, HEADERS + LARGEST_PAYLOAD


@contextmanager
def measured_site(
    lab: str | None,
    config: Path,
    router: str | None,
    source: str | None,
    period: str,
    lab_state: Path,
    packet_bytes: int | None = None,
) -> Iterator[Site]:
    """Hold the router that the options name; signals stop the work between two samples.

    Raises:
        ConfigError: the options contradict each other, or the configuration cannot be used.
        BadRequestError: the lab has no such kind of router, or sends no packets of that size.
        UnitError: the period is not a duration.
    """
    _check(lab, router, source)
    check_sizes(lab, source, [] if packet_bytes is None else [packet_bytes])
    seconds = check_period(period)
    with Stop() as stop:
        if lab is None:
            found = configured_site(config, router, source, stop, packet_bytes=packet_bytes)
            with found as site:
                yield site
        else:
            size = LAB_BYTES if packet_bytes is None else packet_bytes
            with lab_site(_kind(lab), seconds, lab_state, stop, size) as site:
                yield site


def _check(lab: str | None, router: str | None, source: str | None) -> None:
    if lab is not None and (router is not None or source is not None):
        raise ConfigError("--lab", "brings its own router and source", "leave --router, --source")
    if source is not None:
        words_of(source)  # before anything is locked


def check_sizes(lab: str | None, source: str | None, sizes: Sequence[int]) -> None:
    """Reject packet sizes that no source sends, and a source that lacks the size it needs.

    Raises:
        ConfigError: one of the two applies, or a size is out of bounds.
    """
    for size in sizes:
        least, most = (SMALLEST, LARGEST) if lab is None else (LAB_SMALLEST, LAB_LARGEST)
        if not least <= size <= most:
            problem = f"{size} bytes are out of bounds"
            raise ConfigError("--packet-size", problem, f"give {least} to {most} bytes of a frame")
    if lab is None:
        check_size(source, sizes[0] if sizes else None)


def check_period(text: str) -> Seconds:
    """Parse a period, in seconds, within the daemon's bounds.

    Raises:
        UnitError: it is not a duration.
        ConfigError: it is out of bounds.
    """
    seconds = parse_duration(text, field="--period")
    (bounds,) = get_type_hints(DaemonSection, include_extras=True)["period_s"].__metadata__
    if not bounds.ge <= seconds <= bounds.le:
        fix = f"give {bounds.ge:g}s to {bounds.le:g}s, as for the daemon's period_s"
        raise ConfigError("--period", f"{text} is out of bounds", fix)
    return seconds


def _kind(lab: str) -> RouterKind:
    try:
        return check_kind(lab)
    except BadRequestError as error:
        raise BadRequestError("--lab", lab, error.expected) from error


def send(
    site: Site, bench: Bench, offered: str | None, known: float | None, tell: Callable[[str], None]
) -> float | None:
    """Send at the requested rate, else the known one, else one that saturates the router.

    Returns:
        The offered load in packets/s; None where the operator's own traffic is used.

    Raises:
        ConfigError: a rate is given, but no source to send it.
        MeasureError: the source ends immediately, the requested rate does not arrive, or the router
            cannot be measured.
    """
    rate = None if offered is None else parse_rate(offered, field="--offered")
    if site.load is None:
        if rate is not None:
            raise ConfigError("--offered", "nothing sends it", "give --source or --lab")
        return None
    wanted = rate or known
    if wanted is None:
        tell("looking for the rate that saturates the router")
        return saturating_rate(site.load, lambda: _flow(bench))
    site.load.set_rate(wanted)
    site.watch.next()  # detect a source that ends immediately, even if nothing is left to measure
    if rate is not None:
        _check_arrival(bench, rate)
    return wanted


def _check_arrival(bench: Bench, rate: float) -> None:
    """Wait until a requested rate arrives: a source may take some periods to start.

    Raises:
        MeasureError: it does not arrive, or the router cannot be measured.
    """
    for _ in range(PATIENCE):
        offered = bench.sample().offered
        if arrives(offered, rate):
            return
    raise short_of(offered, rate)


def _flow(bench: Bench) -> tuple[float, float | None]:
    """Return throughput and offered load once a new rate takes effect."""
    bench.sample()
    measured = bench.sample()
    return measured.throughput, measured.offered
