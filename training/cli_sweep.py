"""xtc-train sweep: measures a router at the caps that tell most."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from training.cli_place import (
    STATE,
    ConfigPath,
    Json,
    LabKind,
    LabPeriod,
    LabState,
    OfferedRates,
    RouterName,
    Source,
    measured_site,
    send,
)
from training.data import Recording, read_csv
from training.known import LOAD_SAMPLES, aims_for
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
    """
    seconds = parse_duration(budget, field="--budget")
    first = offered[0] if offered else None
    rates = list(dict.fromkeys(parse_rate(t, field="--offered") for t in (offered or ())[1:]))
    with (
        measured_site(lab, config, router, source, period, lab_state_dir) as site,
        shown(quiet=json) as tell,
    ):
        _check_budget(budget, seconds, site.period, len(rates))

        def watcher(progress: Progress) -> None:
            tell(progress.done_s, progress.left_s, describe(progress))

        known = read_csv(output).metadata.offered_pps if output.exists() else None
        began = site.watch.clock.now()
        with site.bench() as bench:
            rate = send(site, bench, first, known, lambda words: tell(0.0, seconds, words))
            metadata = metadata_of(site.plan.name, site.plan.spec, site.period, rate)
            left = seconds - (site.watch.clock.now() - began)
            recording = resumed(metadata, output)
            aims = aims_for(int(left / site.period), rates)
            whole = Sweep(bench, recording, output, aims, watcher, load=site.load).run()
        took = site.watch.clock.now() - began
    _print(whole, output, took, rates, json=json)


def _check_budget(budget: str, seconds: float, period: float, rates: int) -> None:
    least = (LEAST_SAMPLES + LOAD_SAMPLES * rates) * period
    if seconds < least:
        extra = f" and {rates} further --offered" if rates else ""
        fix = f"at least {least:g} s at a period of {period:g} s{extra}"
        raise ConfigError("--budget", f"{budget} is too short", fix)


def _print(
    recording: Recording, output: Path, took: float, rates: Sequence[float], *, json: bool
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
    for words in _words(effects, rates):
        typer.echo(words)
    load = "the operator's load" if rate is None else f"{format_rate(rate)} offered"
    typer.echo(
        f"{output}: {len(recording.samples)} samples at {caps} caps in {clock_time(took)}, {load}; "
        f"next: xtc-train fit {output}"
    )


def _words(effects: Sequence["LoadEffect"], rates: Sequence[float]) -> Iterator[str]:
    """Yield what each further rate did to the curve, and which were not measured."""
    from training.loads import in_words  # noqa: PLC0415

    for effect in effects:
        yield f"{format_rate(effect.offered_pps)} offered: {in_words(effect)}"
    for rate in sorted({*rates} - {effect.offered_pps for effect in effects}):
        fix = "give a longer --budget, or another --output"
        yield f"{format_rate(rate)} offered: not measured; {fix}"
