"""xtc-train validate: compare the closed loop under a new model with its predictions."""

import math
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from common.output import print_json
from common.units import format_cap, format_rate, parse_duration, parse_rate
from training.cli.place import (
    STATE,
    ConfigPath,
    Json,
    LabKind,
    LabPeriod,
    LabState,
    Offered,
    PacketSize,
    RouterName,
    Source,
    measured_site,
    send,
)
from training.cli.progress import Tell, clock_time, shown
from training.design.validate import Outcome, Validation, Watcher, hold_of, periods_of, setpoints_of
from training.design.validate import validate as run_validation
from training.errors import UnfitError
from xtc.config.file import DEFAULT_PATH
from xtc.config.plan import model_named


def validate(
    model: Annotated[str, typer.Option(help="The model file to judge.")],
    lab: LabKind = None,
    config: ConfigPath = DEFAULT_PATH,
    router: RouterName = None,
    source: Source = None,
    offered: Offered = None,
    packet_size: PacketSize = None,
    setpoint: Annotated[
        list[str] | None,
        typer.Option(help="Packet rate to hold; repeatable (default: 10 to 90 % of the top)."),
    ] = None,
    hold: Annotated[str, typer.Option(help="Time to hold each; at least 15 periods.")] = "30s",
    untrained: Annotated[
        bool, typer.Option("--untrained", help="Hold without the model, for comparison.")
    ] = False,
    period: LabPeriod = "1s",
    lab_state_dir: LabState = STATE,
    json: Json = False,
) -> None:
    """Hold a router at several setpoints with a model; exit with 1 if its predictions fail."""
    host = model_named(model, "--model")
    seconds = parse_duration(hold, field="--hold")
    given = [parse_rate(text, field="--setpoint") for text in setpoint or ()]
    setpoints = setpoints_of(host, given)
    with (
        measured_site(lab, config, router, source, period, lab_state_dir, packet_size) as site,
        shown(quiet=json) as tell,
    ):
        periods = hold_of(seconds, site.period, hold)
        with site.bench() as bench:
            send(site, bench, offered, host.curve.offered, lambda words: tell(0.0, 1.0, words))
        found = run_validation(
            site,
            host,
            setpoints,
            hold=periods,
            watcher=_watcher(tell, periods_of(len(setpoints), periods), site.period),
            trained=not untrained,
        )
    if json:
        print_json(found)
    else:
        _print(found)
    if failed := [one for one in found if one.problems]:
        at = ", ".join(format_rate(one.setpoint_pps) for one in failed)
        problem = f"{len(failed)} of {len(found)} setpoints failed ({at})"
        raise UnfitError("model", problem, "sweep this host again, with nothing else on it")


def _watcher(tell: Tell, periods: int, period: float) -> Watcher:
    """Return what reports each period: the setpoint, the throughput, and the time left."""
    total = periods * period

    def watch(goal: float, rate: float | None, left: int) -> None:
        to_go = left * period
        shown_rate = "-" if rate is None else format_rate(rate)
        words = f"{format_rate(goal)}: {shown_rate}, {clock_time(to_go)} left"
        tell(total - to_go, to_go, words)

    return watch


def _print(found: list[Validation]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("setpoint", "", "cap", "settled", "mean error", "RMSE"):
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    for one in found:
        table.add_row(format_rate(one.setpoint_pps), "predicted", *_row(one.predicted))
        table.add_row("", "fact", *_row(one.fact), "; ".join(one.problems) or "pass")
    Console(highlight=False).print(table)


def _row(outcome: Outcome) -> tuple[str, str, str, str]:
    settled = "never" if outcome.settling_s is None else f"{outcome.settling_s:g} s"
    return (
        _cap(outcome),
        settled,
        f"{outcome.mean_error * 100:+.1f}%",
        f"{outcome.relative_rmse * 100:.1f}%",
    )


def _cap(outcome: Outcome) -> str:
    """Return a cap and its interval."""
    if outcome.caps is None:
        return format_cap(outcome.cap)
    low, high = outcome.caps
    ends = f"{format_cap(low)} to {'any' if math.isinf(high) else format_cap(high)}"
    return f"{format_cap(outcome.cap)} ({ends})"
