"""xco simulate: thousands of hosts with and without coordination, from the command line."""

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from xco.simulate.dumbbell.cli import refuse_without, simulate_dumbbell
from xco.simulate.engine import run
from xco.simulate.options import Options, load_options, overridden, scenario_of
from xco.simulate.plot import plot_runs
from xco.simulate.results import Result
from xco.simulate.scenario import Scenario


def simulate(
    scenario: Annotated[
        Path | None, typer.Argument(help="A TOML file; options override what it says.")
    ] = None,
    hosts: Annotated[int | None, typer.Option(help="Hosts of the paper's tree.")] = None,
    rows: Annotated[
        int | None, typer.Option(help="Rows of the paper's tree, 200 hosts each.")
    ] = None,
    topology: Annotated[str | None, typer.Option(help="A topology file instead.")] = None,
    setup: Annotated[
        str | None, typer.Option(help="tree, incast (to one host), or uplink (over one link).")
    ] = None,
    senders: Annotated[int | None, typer.Option(help="Senders of incast and uplink.")] = None,
    tcp: Annotated[int | None, typer.Option(help="How many of those are TCP (a model).")] = None,
    traffic: Annotated[
        str | None, typer.Option(help="halves, or shuffled: one flow from each host to another.")
    ] = None,
    rate: Annotated[str | None, typer.Option(help="What each UDP sender offers.")] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="uncoordinated, rate, timeslice, hybrid; with --dumbbell also static, gcc, "
            "hygenicc; several are compared."
        ),
    ] = None,
    policy: Annotated[str | None, typer.Option(help="published or fair.")] = None,
    engine: Annotated[str | None, typer.Option(help="native or python.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Simulated time.")] = None,
    slot: Annotated[str | None, typer.Option(help="The simulator's step, such as 200us.")] = None,
    slice_: Annotated[str | None, typer.Option("--slice", help="A timeslice, such as 2ms.")] = None,
    buffer: Annotated[str | None, typer.Option(help="A port's buffer, such as 128KB.")] = None,
    edge: Annotated[
        str | None, typer.Option(help="Hosts' links in set-ups; the dumbbell's port.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of random traffic and phases.")] = None,
    dumbbell: Annotated[
        bool,
        typer.Option(
            "--dumbbell", help="The paper's SDN-GCC: one marking port, a tagged TCP sender."
        ),
    ] = False,
    law: Annotated[
        str | None, typer.Option(help="Of gcc and hygenicc: fair, published, by-bytes.")
    ] = None,
    competitors: Annotated[str | None, typer.Option(help="udp, tcp, ecn or dctcp.")] = None,
    tagged: Annotated[str | None, typer.Option(help="The tagged sender's transport.")] = None,
    delay: Annotated[str | None, typer.Option(help="Of the control loop, such as 5ms.")] = None,
    foreign: Annotated[
        float | None, typer.Option(help="Uncontrolled load in the second phase: 0.3 of the link.")
    ] = None,
    bottleneck: Annotated[
        str | None, typer.Option(help="last: the receiver's own link; or core.")
    ] = None,
    believed: Annotated[
        float | None, typer.Option(help="What controllers take for the capacity: 1.2 times it.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the course of the run.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Simulate a topology slot by slot: loss, utilisation, fairness, decisions per second."""
    own: dict[str, Any] = {
        "law": law, "competitors": competitors, "tagged": tagged, "delay": delay,
        "foreign": foreign, "bottleneck": bottleneck, "believed": believed,
    }  # fmt: skip
    if not dumbbell:
        refuse_without(own)
    options, listed = (Options(), ()) if scenario is None else load_options(scenario)
    given: dict[str, Any] = {
        "hosts": hosts, "rows": rows, "topology": topology, "setup": setup, "senders": senders,
        "tcp": tcp, "traffic": traffic, "rate": rate, "policy": policy, "engine": engine,
        "seconds": seconds, "slot": slot, "slice": slice_, "buffer": buffer, "edge": edge,
        "seed": seed,
    }  # fmt: skip
    if dumbbell:
        given |= {"scenario": scenario}
        simulate_dumbbell(given | own, strategy or ["uncoordinated", "gcc"], plot, json=json)
        return
    results = []
    for name in strategy or [options.strategy]:
        chosen = overridden(options, given | {"strategy": name})
        results.append(_run(scenario_of(chosen, listed), name))
    if plot is not None:
        plot_runs(results, plot)
    if json:
        _print_json(results if len(results) > 1 else results[0])
    else:
        _print(results)


def _run(scenario: Scenario, name: str) -> Result:
    """Run with a progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=scenario.slots)
        return run(scenario, lambda done: bar.update(task, completed=done))


def _print_json(value: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def _print(results: list[Result]) -> None:
    console = Console(highlight=False)
    first = results[0]
    console.print(f"{first.hosts} hosts, {first.flows} flows, {first.seconds:g} s (simulated)")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for result in results:
        table.add_column(result.strategy, justify="right")
    for name, cells in _rows(results).items():
        table.add_row(name, *cells)
    console.print(table)


def _rows(results: list[Result]) -> dict[str, list[str]]:
    rows = {
        "loss": [f"{r.loss:.2%}" for r in results],
        "goodput": [f"{r.goodput_bps / 1e9:.2f} Gb/s" for r in results],
        "in whole messages": [f"{r.application_bps / 1e9:.2f} Gb/s" for r in results],
        "fairness (Jain)": [f"{r.fairness:.3f}" for r in results],
        "starved flows": [str(r.starved_flows) for r in results],
    }
    for at, layer in enumerate(results[0].layers):
        name = f"hop {layer.hop}: {layer.example}"
        rows[f"{name}, used"] = [f"{r.layers[at].utilisation:.1%}" for r in results]
        if any(r.layers[at].dropped_bytes for r in results):
            rows[f"{name}, loss"] = [f"{r.layers[at].loss:.2%}" for r in results]
    speeds = [r.speed for r in results]
    rows["decisions"] = [str(r.decisions) for r in results]
    rows["decisions/s"] = [_count(s.decisions_per_second) for s in speeds]
    rows["slots/s"] = [f"{s.slots_per_second:.0f}" for s in speeds]
    return rows


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
