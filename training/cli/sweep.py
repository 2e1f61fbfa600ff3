"""xtc-train sweep: measure a router at the most informative caps."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from common.errors import ConfigError
from common.output import print_json
from common.units import format_cap, format_rate, parse_cap, parse_duration, parse_rate
from training.cli.place import (
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
from training.cli.progress import clock_time, describe, shown
from training.recording.metadata import metadata_of
from training.recording.recording import Metadata, Recording, read_csv
from training.recording.sweep_model import (
    LOAD_SAMPLES,
    Span,
    Traffic,
    aims_for,
    aims_for_caps,
    least_for_caps,
)
from training.sweep.sweep import Progress, Sweep, resumed
from xtc.config.file import DEFAULT_PATH

if TYPE_CHECKING:
    from training.fit.loads import LoadEffect

BUDGET, CAPS_BUDGET = "5min", "1min"
"""The time of a whole sweep, and of a few caps."""
LEAST_SAMPLES = 40
"""Fewer samples have no room for the caps and steps that a fit needs."""


def sweep(
    lab: LabKind = None,
    config: ConfigPath = DEFAULT_PATH,
    router: RouterName = None,
    source: Source = None,
    offered: OfferedRates = None,
    packet_size: PacketSizes = None,
    cap: Annotated[
        list[str] | None,
        typer.Option(
            "--cap",
            help="Measure the uncapped router and this cap only, such as 20%; repeatable. "
            "For xtc-train transfer.",
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Duration of the sweep (default: 5min, with --cap 1min).")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV file; an existing one is continued.")
    ] = (Path("sweep.csv")),
    period: LabPeriod = "1s",
    lab_state_dir: LabState = STATE,
    json: Json = False,
) -> None:
    """Measure a router's throughput at the most informative caps, and restore its cap.

    After a stop or a kill, the same command resumes from its file. No daemon may use the same state
    directory meanwhile.

    Packet sizes are bytes of the Ethernet frame without its checksum (FCS), as the kernel counts
    them in /proc/net/dev. `xtc-train fit` prints what packets of several sizes cost.
    """
    caps = [parse_cap(text, field="--cap") for text in cap or ()]
    budget = budget or (CAPS_BUDGET if caps else BUDGET)
    seconds = parse_duration(budget, field="--budget")
    first = offered[0] if offered else None
    rates = list(dict.fromkeys(parse_rate(t, field="--offered") for t in (offered or ())[1:]))
    sizes = list(dict.fromkeys(packet_size or ()))
    _check_loads(caps, rates, sizes[1:])
    check_sizes(lab, source, sizes)
    known = read_csv(output).metadata if output.exists() else None
    size = _first_size(sizes, known, lab)
    with (
        measured_site(lab, config, router, source, period, lab_state_dir, size) as site,
        shown(quiet=json) as tell,
    ):
        wanted = Wanted(len(rates), len(sizes[1:]), len(set(caps)))
        _check_budget(budget, seconds, site.period, wanted)

        def watcher(progress: Progress) -> None:
            tell(progress.done_s, progress.left_s, describe(progress))

        began = site.watch.clock.now()
        with site.bench() as bench:
            _check_span(caps, bench.span)
            before = known.offered_pps if known else None
            rate = send(site, bench, first, before, lambda words: tell(0.0, seconds, words))
            spent = site.watch.clock.now() - began
            if known is None and first is None and rate is not None:
                _check_search(seconds, spent, _least_seconds(site.period, wanted), rate)
            metadata = metadata_of(site.plan.name, site.plan.spec, site.period, rate, size)
            left = seconds - spent
            recording = resumed(metadata, output)
            samples = int(left / site.period)
            loads = _loads(rate, rates, size, sizes[1:])
            aims = aims_for_caps(samples, caps) if caps else aims_for(samples, loads)
            whole = Sweep(bench, recording, output, aims, watcher, load=site.load).run()
        took = site.watch.clock.now() - began
    _print(whole, output, took, loads, json=json, whole=not caps)


def _first_size(sizes: Sequence[int], known: Metadata | None, lab: str | None) -> int | None:
    """Return the packet size of the whole curve: the requested one, the file's, or the lab's."""
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


class Wanted(NamedTuple):
    """How many values of each option the budget must have room for."""

    rates: int
    sizes: int
    caps: int

    def words(self) -> str:
        """Describe the options that are given."""
        named = (
            (self.rates, "further --offered"),
            (self.sizes, "further --packet-size"),
            (self.caps, "times --cap"),
        )
        return "".join(f" and {count} {what}" for count, what in named if count)


def _least_seconds(period: float, wanted: Wanted) -> float:
    whole = LEAST_SAMPLES + LOAD_SAMPLES * (wanted.rates + wanted.sizes)
    return max(whole, least_for_caps(wanted.caps) if wanted.caps else 0) * period


def _check_budget(budget: str, seconds: float, period: float, wanted: Wanted) -> None:
    least = _least_seconds(period, wanted)
    if seconds < least:
        extra = wanted.words()
        fix = f"at least {least:g} s at a period of {period:g} s{extra}"
        raise ConfigError("--budget", f"{budget} is too short", fix)


def _check_search(seconds: float, spent: float, least: float, rate: float) -> None:
    """Refuse a budget of which the search for a rate left too little for a sweep."""
    if seconds - spent < least:
        problem = f"the search for a rate took {spent:.0f} s of {seconds:g} s"
        fix = f"give --offered {rate:.0f}, or {math.ceil(spent + least)} s or more"
        raise ConfigError("--budget", problem, fix)


def _check_loads(caps: Sequence[float], rates: Sequence[float], sizes: Sequence[int]) -> None:
    if caps and (rates or sizes):
        fix = "give one --offered and one --packet-size, or sweep without --cap"
        raise ConfigError("--cap", "measures no further --offered or --packet-size", fix)


def _check_span(caps: Sequence[float], span: Span) -> None:
    for one in caps:
        if not span.floor <= one <= span.ceiling:
            within = f"{format_cap(span.floor)} to {format_cap(span.ceiling)}"
            problem = f"{format_cap(one)} cannot be put in force here"
            raise ConfigError("--cap", problem, f"give caps from {within}")


def _print(
    recording: Recording,
    output: Path,
    took: float,
    loads: Sequence[Traffic],
    *,
    json: bool,
    whole: bool,
) -> None:
    # it imports scipy, which takes a second to load: only when there is something to report
    from training.fit.loads import load_effects  # noqa: PLC0415

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
        f"next: xtc-train {f'fit {output}' if whole else f'transfer KNOWN {output} -o NEW.toml'}"
    )


def _words(effects: Sequence["LoadEffect"], loads: Sequence[Traffic]) -> Iterator[str]:
    """Yield the effect of each further load on the curve, and the loads that were not measured."""
    from training.fit.loads import in_words, named  # noqa: PLC0415

    seen = {effect.traffic for effect in effects}
    for effect in effects:
        yield f"{named(effect.traffic)} offered: {in_words(effect)}"
    for traffic in dict.fromkeys(loads):
        if traffic not in seen:
            fix = "give a longer --budget, or another --output"
            yield f"{named(traffic)} offered: not measured; {fix}"
