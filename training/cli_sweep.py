"""xtc-train sweep: measures a router at the caps that tell most."""

from pathlib import Path
from typing import Annotated

import typer

from training.cli_place import (
    STATE,
    ConfigPath,
    Json,
    LabKind,
    LabPeriod,
    LabState,
    Offered,
    RouterName,
    Source,
    measured_site,
    send,
)
from training.data import Recording, read_csv
from training.known import aims_for
from training.metadata import metadata_of
from training.progress import clock_time, describe, shown
from training.sweep import Progress, Sweep, resumed
from xtc.configfile import DEFAULT_PATH
from xtc.errors import ConfigError
from xtc.output import print_json
from xtc.units import format_rate, parse_duration

LEAST_SAMPLES = 40
"""Fewer cannot hold the caps and steps that a fit needs."""


def sweep(
    lab: LabKind = None,
    config: ConfigPath = DEFAULT_PATH,
    router: RouterName = None,
    source: Source = None,
    offered: Offered = None,
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
    with (
        measured_site(lab, config, router, source, period, lab_state_dir) as site,
        shown(quiet=json) as tell,
    ):
        if seconds < LEAST_SAMPLES * site.period:
            least = f"at least {LEAST_SAMPLES * site.period:g} s at a period of {site.period:g} s"
            raise ConfigError("--budget", f"{budget} is too short", least)

        def watcher(progress: Progress) -> None:
            tell(progress.done_s, progress.left_s, describe(progress))

        known = read_csv(output).metadata.offered_pps if output.exists() else None
        began = site.watch.clock.now()
        with site.bench() as bench:
            rate = send(site, bench, offered, known, lambda words: tell(0.0, seconds, words))
            metadata = metadata_of(site.plan.name, site.plan.spec, site.period, rate)
            left = seconds - (site.watch.clock.now() - began)
            recording = resumed(metadata, output)
            aims = aims_for(int(left / site.period))
            whole = Sweep(bench, recording, output, aims, watcher).run()
        took = site.watch.clock.now() - began
    _print(whole, output, took, json=json)


def _print(recording: Recording, output: Path, took: float, *, json: bool) -> None:
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
            }
        )
        return
    load = "the operator's load" if rate is None else f"{format_rate(rate)} offered"
    typer.echo(
        f"{output}: {len(recording.samples)} samples at {caps} caps in {clock_time(took)}, {load}; "
        f"next: xtc-train fit {output}"
    )
