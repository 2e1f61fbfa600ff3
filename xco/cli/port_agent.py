"""xco port-agent: sends counters of switch ports to the controller, checks its settings."""

import sys
from typing import Any

import msgspec
import typer

from common.logs import set_up_logging
from common.output import counted, print_json
from xco.cli.command import ConfigPath, Json, NoAnswerError
from xco.cli.output import short_rate, short_size, show, table
from xco.controller.config import DEFAULT_PATH
from xco.errors import ControllerError, PortError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Counters of switch ports.")
HEADINGS = ("port", "to", "reader", "age", "rate", "marks/s", "drops/s", "backlog")


@app.command()
def run(config: ConfigPath = DEFAULT_PATH) -> None:
    """Read ports of switches and send their counters to the controller, in the foreground."""
    set_up_logging(json=not sys.stderr.isatty(), level="info")
    from xco.ports.config import load_agent_config  # noqa: PLC0415  loads slowly
    from xco.ports.shell import run as run_agent  # noqa: PLC0415  loads slowly

    run_agent(load_agent_config(config))


@app.command()
def check(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Check settings, topology and key, and read every port once; exit code 1 if one fails."""
    from xco.ports.config import load_agent_config  # noqa: PLC0415  loads slowly
    from xco.ports.factory import sources  # noqa: PLC0415  loads slowly
    from xco.ports.poll import looked  # noqa: PLC0415  loads slowly
    from xco.ports.shell import agent_keys  # noqa: PLC0415  loads slowly

    settings = load_agent_config(config)
    agent_keys(settings)
    readings: dict[int, Any] = {}
    for source in sources(settings.ports):
        readings |= looked(source)[0].readings
        source.reader.close()
    found = [_checked(str(port), readings[at]) for at, port in enumerate(settings.ports)]
    if json:
        print_json({"file": str(config), "ports": found})
    else:
        _print_check(str(config), found)
    if any(port["problem"] for port in found):
        raise typer.Exit(1)


def _checked(port: str, reading: Any) -> dict[str, Any]:
    if isinstance(reading, PortError):
        return {"port": port, "problem": str(reading), "counts_marks": False}
    counters = msgspec.to_builtins(reading)
    del counters["read_ns"]  # means nothing outside this process
    return {"port": port, "problem": "", **counters}


def _print_check(file: str, found: list[dict[str, Any]]) -> None:
    for port in found:
        if port["problem"]:
            typer.echo(f"{port['port']}: {port['problem']}", err=True)
        elif not port["counts_marks"]:
            words = "counts no marks: only drops show that it is congested"
            typer.echo(f"{port['port']}: {words}", err=True)
    failed = sum(bool(port["problem"]) for port in found)
    if failed:
        typer.echo(f"{file}: {failed} of {counted(len(found), 'port')} cannot be read", err=True)
    else:
        typer.echo(f"{file}: no mistake found; {counted(len(found), 'port')}, all readable")


@app.command()
def status(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Show each port's rates, marks and backlog; exit code 3 if no agent runs."""
    from xco.ports.config import load_agent_config  # noqa: PLC0415  loads slowly
    from xco.ports.status import read_status  # noqa: PLC0415  loads slowly

    try:
        found = read_status(load_agent_config(config))
    except ControllerError as error:
        raise NoAnswerError(error.what, error.problem, error.fix) from error
    if json:
        print_json(found)
    else:
        _show(found)


def _show(found: Any) -> None:
    heard = f"heard in epoch {found.epoch}" if found.heard else found.problem
    readable = sum(not port.problem for port in found.ports)
    show(f"port agent: {readable} of {counted(len(found.ports), 'port')} readable; {heard}")
    show(table(HEADINGS, [_row(port, found.updated_ns) for port in found.ports], left=3))
    show(
        *(f"{port.source} -> {port.target}: {port.problem}" for port in found.ports if port.problem)
    )


def _row(port: Any, updated_ns: int) -> tuple[str, ...]:
    age = f"{(updated_ns - port.read_ns) / 1e6:.0f} ms" if port.read_ns else "-"
    marks = f"{port.marks_per_s:.0f}" if port.counts_marks else "not counted"
    return (
        port.source,
        port.target,
        port.reader,
        age,
        short_rate(port.rate_bps),
        marks,
        f"{port.drops_per_s:.0f}",
        short_size(port.backlog_bytes),
    )
