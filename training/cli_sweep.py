"""xtc-train sweep: measures a router at the caps that tell most."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from training.cli_place import (
    LAB_BYTES,
    STATE,
    ConfigPath,
    Json,
    LabKind,
    LabPeriod,
    LabState,
    OfferedRates,
    PacketSizes,
    RouterName,
    Source,
    check_sizes,
    measured_site,
    send,
)
from training.data import Metadata, Recording, read_csv
from training.known import LOAD_SAMPLES, Traffic, aims_for
from training.metadata import metadata_of
from training.progress import clock_time, describe, shown
from training.sweep import Progress, Sweep, resumed
from xtc.configfile import DEFAULT_PATH
from xtc.errors import ConfigError
from xtc.output import print_json
from xtc.units import format_rate, parse_duration, parse_rate

if TYPE_CHECKING:
    from training.loads import LoadEffect

LEAST_SAMPLES = 40
"""Fewer cannot hold the caps and steps that a fit needs."""


def sweep(
    lab: LabKind = None,
    config: ConfigPath = DEFAULT_PATH,
    router: RouterName = None,
    source: Source = None,
    offered: OfferedRates = None,
    packet_size: PacketSizes = None,
    budget: Annotated[str, typer.Option(help="The time it may take, such as 5min.")] = "5min",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV; goes on with it if there.")
    ] = (Path("sweep.csv")),
    period: LabPeriod = "1s",
    lab_state_dir: LabState = STATE,
    json: Json = False,
) -> None:
    """Measure a router's throughput at the caps that tell most, and put its cap back.

    Stopped or killed, the same command goes on with its file where it was. No daemon may run on
    the same state directory meanwhile.

    Packet sizes are bytes of the Ethernet frame without its checksum (FCS), as the kernel counts
    them in /proc/net/dev. What packets of several sizes cost is what `xtc-train fit` prints.
    """
    seconds = parse_duration(budget, field="--budget")
    first = offered[0] if offered else None
    rates = list(dict.fromkeys(parse_rate(t, field="--offered") for t in (offered or ())[1:]))
    sizes = list(dict.fromkeys(packet_size or ()))
    check_sizes(lab, source, sizes)
    known = read_csv(output).metadata if output.exists() else None
    size = _first_size(sizes, known, lab)
    with (
        measured_site(lab, config, router, source, period, lab_state_dir, size) as site,
        shown(quiet=json) as tell,
    ):
        _check_budget(budget, seconds, site.period, len(rates), len(sizes[1:]))

        def watcher(progress: Progress) -> None:
            tell(progress.done_s, progress.left_s, describe(progress))

        began = site.watch.clock.now()
        with site.bench() as bench:
            before = known.offered_pps if known else None
            rate = send(site, bench, first, before, lambda words: tell(0.0, seconds, words))
            metadata = metadata_of(site.plan.name, site.plan.spec, site.period, rate, size)
            left = seconds - (site.watch.clock.now() - began)
            recording = resumed(metadata, output)
            loads = _loads(rate, rates, size, sizes[1:])
            aims = aims_for(int(left / site.period), loads)
            whole = Sweep(bench, recording, output, aims, watcher, load=site.load).run()
        took = site.watch.clock.now() - began
    _print(whole, output, took, loads, json=json)


def _first_size(sizes: Sequence[int], known: Metadata | None, lab: str | None) -> int | None:
    """Return the packet size of the whole curve: what is asked for, the file's, or the lab's."""
    if sizes:
        return sizes[0]
    if known is not None:
        return known.packet_bytes
    return None if lab is None else LAB_BYTES


def _loads(
    rate: float | None, rates: Sequence[float], size: int | None, sizes: Sequence[int]
) -> list[Traffic]:
    """Return the further loads: each rate at the curve's size, each size at the curve's rate."""
    if rate is None:
        return []
    return [*(Traffic(one, size) for one in rates), *(Traffic(rate, one) for one in sizes)]


def _check_budget(budget: str, seconds: float, period: float, rates: int, sizes: int) -> None:
    least = (LEAST_SAMPLES + LOAD_SAMPLES * (rates + sizes)) * period
    if seconds < least:
        extra = f" and {rates} further --offered" if rates else ""
        extra += f" and {sizes} further --packet-size" if sizes else ""
        fix = f"at least {least:g} s at a period of {period:g} s{extra}"
        raise ConfigError("--budget", f"{budget} is too short", fix)


def _print(
    recording: Recording, output: Path, took: float, loads: Sequence[Traffic], *, json: bool
) -> None:
    # scipy comes with it, which takes a second to load: not before there is something to tell
    from training.loads import load_effects  # noqa: PLC0415

    effects = load_effects(recording)
    caps = len({s.cap for s in recording.samples if s.phase == "steady"})
    rate = recording.metadata.offered_pps
    if json:
        print_json(
            {
                "output": str(output),
                "samples": len(recording.samples),
                "caps": caps,
                "offered_pps": rate,
                "seconds": round(took, 1),
                "loads": effects,
            }
        )
        return
    for words in _words(effects, loads):
        typer.echo(words)
    load = "the operator's load" if rate is None else f"{format_rate(rate)} offered"
    typer.echo(
        f"{output}: {len(recording.samples)} samples at {caps} caps in {clock_time(took)}, {load}; "
        f"next: xtc-train fit {output}"
    )


def _words(effects: Sequence["LoadEffect"], loads: Sequence[Traffic]) -> Iterator[str]:
    """Yield what each further load did to the curve, and which were not measured."""
    from training.loads import in_words, named  # noqa: PLC0415

    seen = {effect.traffic for effect in effects}
    for effect in effects:
        yield f"{named(effect.traffic)} offered: {in_words(effect)}"
    for traffic in dict.fromkeys(loads):
        if traffic not in seen:
            fix = "give a longer --budget, or another --output"
            yield f"{named(traffic)} offered: not measured; {fix}"
