"""zovn simulate: figure 12 of the paper, or any part of it, from the command line."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress

from common.command import CODES, EXIT_FAILED, report_errors
from common.errors import ConfigError
from common.units import parse_bit_rate, parse_duration
from zovn.simulate.errors import EngineError
from zovn.simulate.matrix import WHOLE, Cell, cells, figure_12, run_all
from zovn.simulate.plot import plot_results
from zovn.simulate.results import Result
from zovn.simulate.scenario import (
    ALGORITHMS,
    LOADS,
    MODES,
    Background,
    Buffers,
    Fabric,
    Queries,
    Scenario,
    Tcp,
)
from zovn.simulate.table import summary

Choice = TypeVar("Choice", bound=str)

QUICK = 20
"""Queries of a run that only shows that all works."""
OPTIONS: Final[Mapping[str, str]] = {
    "queries.count": "--queries",
    "queries.interval_s": "--interval",
    "queries.request": "--request",
    "queries.reply": "--reply",
    "buffers.virtual_queue": "--queue",
    "buffers.port": "--buffer",
    "fabric.vm_bps": "--vm-rate",
    "fabric.aggregations": "--uplinks",
    "tcp.rto_min_s": "--rto-min",
    "tcp.rto_slop_s": "--rto-slop",
    "tcp.delayed_ack_s": "--delayed-ack",
    "tcp.initial_window": "--initial-window",
    "background.socket": "--socket",
    "limit_s": "--limit",
    "seed": "--seed",
}
"""By the fields of a scenario that they set."""


def simulate(
    mode: Annotated[
        list[str] | None,
        typer.Option(help="Virtual, then physical network: L lossy, Z lossless. Default: all."),
    ] = None,
    tcp: Annotated[
        list[str] | None, typer.Option(help="newreno, cubic or vegas. Default: cubic.")
    ] = None,
    background: Annotated[
        list[str] | None, typer.Option(help="none, light or heavy UDP. Default: none.")
    ] = None,
    own_class: Annotated[
        bool, typer.Option("--own-class", help="Give the background a priority of its own.")
    ] = False,
    figure12: Annotated[
        bool, typer.Option("--figure12", help="Run all combinations of the paper's figure 12.")
    ] = False,
    queries: Annotated[int, typer.Option(help="Number of queries.")] = 200,
    interval: Annotated[str, typer.Option(help="Mean time between queries.")] = "1ms",
    request: Annotated[int, typer.Option(help="Bytes of each request.")] = 20_000,
    reply: Annotated[int, typer.Option(help="Bytes of each reply.")] = 20_000,
    queue: Annotated[int, typer.Option(help="Packets of a virtual switch's queue.")] = 256,
    buffer: Annotated[int, typer.Option(help="Bytes of a physical port's buffer.")] = 128_000,
    vm_rate: Annotated[str, typer.Option(help="Rate of a VM's virtual link.")] = "40Gb/s",
    uplinks: Annotated[int, typer.Option(help="Uplinks of each chassis.")] = 16,
    rto_min: Annotated[str, typer.Option(help="Least retransmission timeout.")] = "30ms",
    rto_slop: Annotated[str, typer.Option(help="Added to each retransmission timeout.")] = "0ms",
    delayed_ack: Annotated[str, typer.Option(help="Longest delay of acknowledgements.")] = "10ms",
    initial_window: Annotated[int, typer.Option(help="Segments of an unused connection.")] = 16,
    blocking: Annotated[
        bool, typer.Option("--blocking", help="Head-of-line blocking in the VM, as in zVALE.")
    ] = False,
    socket: Annotated[int, typer.Option(help="Datagrams that wait in a VM.")] = 1_000_000,
    limit: Annotated[str, typer.Option(help="Longest simulated time.")] = "60s",
    seed: Annotated[int, typer.Option(help="Of all random choices.")] = 1,
    jobs: Annotated[
        int, typer.Option(min=0, help="Number of runs at the same time (0 = processors).")
    ] = 0,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK} queries only.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the completion times.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Simulate partition-aggregate on 256 servers: completion times, drops and timeouts."""
    base = Scenario(
        fabric=Fabric(vm_bps=parse_bit_rate(vm_rate, field="--vm-rate"), aggregations=uplinks),
        buffers=Buffers(virtual_queue=queue, port=buffer, blocking=blocking),
        tcp=Tcp(
            initial_window=initial_window,
            rto_min_s=parse_duration(rto_min, field="--rto-min"),
            rto_slop_s=parse_duration(rto_slop, field="--rto-slop"),
            delayed_ack_s=parse_duration(delayed_ack, field="--delayed-ack"),
        ),
        queries=Queries(
            count=QUICK if quick else queries,
            interval_s=parse_duration(interval, field="--interval"),
            request=request,
            reply=reply,
        ),
        background=Background(socket=socket),
        seed=seed,
        limit_s=parse_duration(limit, field="--limit"),
    )
    wanted = cells(
        _chosen("--mode", mode or MODES, MODES),
        _chosen("--tcp", tcp or ["cubic"], ALGORITHMS),
        _chosen("--background", background or ["none"], tuple(LOADS)),
        [own_class],
    )
    with _named_by_option():
        results = _run(base, figure_12() if figure12 else wanted, jobs or os.cpu_count() or 1)
    if plot is not None:
        plot_results(results, plot)
    if json:
        sys.stdout.write(
            msgspec.json.format(msgspec.json.encode(results), indent=2).decode() + "\n"
        )
    else:
        Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(summary(results))


def _chosen(option: str, given: Sequence[str], choices: tuple[Choice, ...]) -> list[Choice]:
    """Return the choices that are given.

    Raises:
        ConfigError: one does not exist.
    """
    for one in given:
        if one not in choices:
            raise ConfigError(option, f"{one!r}", f"one of {', '.join(choices)}")
    return [choice for choice in choices if choice in given]


@contextmanager
def _named_by_option() -> Iterator[None]:
    """Name the option in place of the field that it sets.

    Raises:
        ConfigError: the scenario is invalid.
    """
    try:
        yield
    except ConfigError as error:
        option = OPTIONS.get(error.where, error.where)
        raise ConfigError(option, error.problem, error.fix) from error


def _run(base: Scenario, wanted: Sequence[Cell], jobs: int) -> list[Result]:
    """Run with a progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("simulating", total=WHOLE * len(wanted))
        return run_all(base, wanted, jobs, lambda done: bar.update(task, completed=done))


def main() -> None:
    """Run the command line."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(simulate)
    with report_errors("zovn-simulate", {**CODES, EngineError: EXIT_FAILED}):
        app()
