"""xtc config: check and show the daemon's configuration, and make keys for TCP."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
import zmq.auth

from common.command import EXIT_USAGE
from common.output import counted, print_json
from common.printable import say
from xtc.config.file import DEFAULT_PATH

if TYPE_CHECKING:
    from xtc.config.check import Checked

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check and show.")
ConfigPath = Annotated[Path, typer.Option("--config", "-c", envvar="XTC_CONFIG")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_FLOORS = {"none": "left alone", "reservation": "its reservation"}
"""Descriptions of floors that are no weight."""


@app.command()
def check(
    config: ConfigPath = DEFAULT_PATH,
    strict: Annotated[
        bool, typer.Option("--strict", help="Treat warnings as mistakes: exit code 2.")
    ] = False,
    json: Json = False,
) -> None:
    """Check the configuration and this host; exit code 2 if there is a mistake.

    Warnings name doubtful settings on this host: a missing group, namespace or interface, an
    interface of several routers, a direction that is not counted, an impossible cap. The daemon
    starts despite warnings, and logs them.
    """
    from xtc.config.check import check_file  # noqa: PLC0415  actuators take 0.15 s to load

    told, mistakes, warnings = check_file(config)
    refused = bool(mistakes or (strict and warnings))
    if json:
        print_json(told)
    else:
        for error in mistakes:
            say(f"xtc: {error}", err=True)
        for warning in warnings:
            say(f"xtc: warning: {warning}", err=True)
        for limit in told.limits:
            why = f" ({limit.reason})" if limit.reason else ""
            shield = "shielded" if limit.shield else "not shielded"
            say(f"{limit.router}: {limit.interface} is {shield}, limited by {limit.way}{why}")
        for floor in told.floors:
            advice = f" ({floor.advice})" if floor.advice else ""
            say(f"{floor.router}: its CPU floor is {_FLOORS.get(floor.way, floor.way)}{advice}")
        say(f"{', '.join(told.files)}: {_counts(told)}", err=refused)
    if refused:
        raise typer.Exit(EXIT_USAGE)


def _counts(told: "Checked") -> str:
    """Return the numbers of routers, mistakes and warnings as text."""
    counts = [counted(len(told.routers), "router")] if told.routers or not told.mistakes else []
    counts.append(counted(len(told.mistakes), "mistake", none="no mistake"))
    if told.warnings:
        counts.append(counted(len(told.warnings), "warning"))
    return ", ".join(counts)


@app.command()
def show(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Show the configuration in force, including defaults and drop-ins."""
    from xtc.config.check import load_checked  # noqa: PLC0415  as above

    loaded, _ = load_checked(config)
    if json:
        print_json(loaded)
        return
    say(msgspec.json.format(msgspec.json.encode(loaded), indent=2).decode())


@app.command()
def keys(
    directory: Annotated[Path, typer.Argument(help="Directory for the two key files.")],
    name: Annotated[str, typer.Argument(help="Base name of the key files, e.g. policer.")],
    json: Json = False,
) -> None:
    """Make a CURVE key pair for a daemon or a policer that talks over TCP."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    public, secret = zmq.auth.create_certificates(str(directory), name)
    Path(secret).chmod(0o600)
    files = {"public": str(public), "secret": str(secret)}
    if json:
        print_json(files)
    else:
        say("\n".join(f"{kind}: {path}" for kind, path in files.items()))
