"""xco controller: runs the central controller, checks its settings, shows its state."""

import sys
from typing import Annotated, Any

import typer

from common.logs import set_up_logging
from common.output import print_json
from xco.cli.command import ConfigPath, Json, NoAnswerError
from xco.cli.report import print_machine
from xco.cli.status import StatusReader, host_names
from xco.controller.config import DEFAULT_PATH, Places, load_controller_config, load_places
from xco.core_files import program
from xco.errors import ConfigError, ControllerError
from xco.protocol.messages import Strategy

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The central controller.")


@app.command()
def run(config: ConfigPath = DEFAULT_PATH) -> None:
    """Run the controller in the foreground: lead, or stand by until the leader is lost."""
    set_up_logging(json=not sys.stderr.isatty(), level="info")
    settings = load_controller_config(config)
    from xco.controller.metrics import serve_metrics  # noqa: PLC0415
    from xco.controller.shell import run_controller  # noqa: PLC0415  a check or a status needs neither

    serve_metrics(settings, host_names(settings))
    run_controller(config)


@app.command()
def check(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Check settings, topology, key and core; exit code 2 if a file has a mistake."""
    from xco.controller.shell import check_files  # noqa: PLC0415  loads slowly

    settings = load_controller_config(config)
    check_files(config)
    found: dict[str, Any] = {
        "file": str(config),
        "hosts": len(host_names(settings)),
        "listen": "{}:{}".format(*settings.listen),
        "strategy": settings.strategy.name.lower(),
        "program": str(program("xco-controller")),
    }
    if json:
        print_json(found)
    else:
        words = "{file}: no mistake found; {hosts} hosts, {listen}, {strategy}"
        typer.echo(words.format(**found))


@app.command()
def status(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Show the state of this machine's controller; exit code 3 if none runs."""
    machine = StatusReader(config, ("controller",)).look()
    if json:
        print_json(machine.controller)
    else:
        print_machine(machine)


@app.command()
def strategy(
    name: Annotated[str, typer.Argument(help="timeslice, rate or hybrid.")],
    config: ConfigPath = DEFAULT_PATH,
    json: Json = False,
) -> None:
    """Switch to another strategy until the controller's next start or reload."""
    from xco.controller.supervise import command  # noqa: PLC0415  loads slowly

    known = [each.name.lower() for each in Strategy]
    if name not in known:
        raise ConfigError("strategy", "", f"{name!r} is none", f"one of {', '.join(known)}")
    places = load_places(config)
    _leads(config, places)
    command(places.command_socket, f"strategy {name}")
    if json:
        print_json({"strategy": name})
    else:
        typer.echo(f"strategy: {name}")


def _leads(config: ConfigPath, places: Places) -> None:
    """Check that a controller runs on this machine and that it leads.

    Raises:
        NoAnswerError: no controller runs.
        ControllerError: it is a standby.
    """
    found = StatusReader(config, ("controller",)).look().controller
    if found is None:
        raise NoAnswerError(str(places.state_file), "no controller runs here")
    if found["controller"]["role"] != "leader":
        raise ControllerError("controller", "it is a standby", "ask the leader")
