"""xco coordinator: runs a host's coordinator, checks its settings, removes leftover queues."""

import errno
import fcntl
import os
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from common.command import EXIT_FAILED
from common.logs import set_up_logging
from common.output import counted, print_json
from common.printable import say
from xco.cli.command import ConfigPath, Json
from xco.cli.report import print_machine
from xco.cli.status import StatusReader
from xco.controller.config import DEFAULT_PATH
from xco.core_files import program
from xco.errors import GateError, Gone
from xco.units import format_rate

U32_LIMITS = (
    "its limits: 64 hosts and 256 flows, which a VM can fill with forged addresses; frames with a "
    "VLAN tag and BIG TCP share what small packets have; more CPU with each flow; VMs that "
    "move are not followed"
)

LOCKS = Path("/run/xco/locks")
"""Directory where xco-coordinator locks one file per interface of its network namespace."""

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Coordinator of this host.")


@app.command()
def run(config: ConfigPath = DEFAULT_PATH) -> None:
    """Coordinate this host's V2V flows in the foreground; on exit, stop shaping its traffic."""
    set_up_logging(json=not sys.stderr.isatty(), level="info")
    from xco.coordinator import config as coordinator_config  # noqa: PLC0415  a release needs neither
    from xco.coordinator import shell as coordinator  # noqa: PLC0415  a release needs neither

    coordinator.run(coordinator_config.load_config(config))


@app.command()
def check(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Check settings, topology, key, core, interface, kernel; leave traffic alone. Needs root."""
    from xco.coordinator import gate, vm_check  # noqa: PLC0415  load slowly
    from xco.coordinator import shell as coordinator  # noqa: PLC0415  load slowly
    from xco.coordinator.config import load_config  # noqa: PLC0415

    settings = load_config(config)
    coordinator.check_key(settings)
    found = {
        "file": str(config),
        "host": settings.table.host,
        "interface": settings.table.interface,
        "rate": format_rate(settings.line_bps),
        "program": str(program("xco-coordinator")),
    }
    gate.check(settings.table.interface, coordinator.needed(settings))
    found["classifier"], problem = coordinator.classifier(settings)
    found["gates"], no_edt = coordinator.gates(settings)
    found["marks"] = coordinator.marks(settings)
    found["vms"] = vm_check.treatment(settings, found["classifier"], found["gates"])
    if json:
        print_json(found)
    else:
        words = (
            "{file}: no mistake found; {host} on {interface}, {rate}, classified by {classifier}, "
            "gates: {gates}, congestion marks: {marks}"
        )
        typer.echo(words.format(**found))
        if settings.vms:
            typer.echo(f"{counted(len(settings.vms), 'VM')} listed: {found['vms']}")
    if no_edt:
        typer.echo(f"gates are token buckets: {no_edt}", err=True)
    if problem:
        typer.echo(f"u32 classifies: {problem}\n{U32_LIMITS}", err=True)
    for warning in vm_check.warnings(settings):
        typer.echo(f"warning: {warning}", err=True)


@app.command()
def status(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Show the state of this host's coordinator; exit code 3 if none runs."""
    machine = StatusReader(config, ("coordinator",)).look()
    if machine.coordinator is not None:
        _mark_unseen(machine.coordinator["vms"])
    if json:
        print_json(machine.coordinator)
    else:
        print_machine(machine)


def _mark_unseen(vms: list[dict[str, Any]]) -> None:
    """Note which VMs send while the gates count nothing of it."""
    from xco.coordinator.vm_status import unseen  # noqa: PLC0415  loads slowly

    found = unseen(row["interface"] for row in vms if row["sent_bytes"] == 0)
    for row in vms:
        row["unseen"] = row["interface"] in found


@app.command()
def release(
    interface: Annotated[
        str | None, typer.Argument(help="Interface to release (default: all shaped by xco).")
    ] = None,
    json: Json = False,
) -> None:
    """Remove the queues that a killed coordinator left. Needs root, but no settings.

    Works with nothing else running: the settings may be wrong or missing. Stop a running
    coordinator instead: it would create its queues again. Its interface is left out, and the exit
    code is then 1.
    """
    there = [name for _, name in socket.if_nameindex()]
    if interface is not None and interface not in there:
        fix = "name another, or none to release all that xco shapes"
        raise Gone(interface, "there is no such interface", fix)
    released, refused = _released(there if interface is None else [interface])
    if json:
        print_json({"released": released})
    elif released:
        typer.echo("\n".join(f"{name}: released" for name in released))
    elif not refused:
        typer.echo("nothing was gated")
    for error in refused:
        say(f"xco: {error}", err=True)
    if refused:
        raise typer.Exit(EXIT_FAILED)


def _released(interfaces: Iterable[str]) -> tuple[list[str], list[GateError]]:
    """Release interfaces; return those that were gated, and why others could not be released."""
    from xco.coordinator import gate  # noqa: PLC0415  loads slowly

    released: list[str] = []
    refused: list[GateError] = []
    for name in interfaces:
        try:
            _refuse_while_one_runs(name)
            if gate.release(name):
                released.append(name)
        except GateError as error:
            refused.append(error)
    return released, refused


def _refuse_while_one_runs(interface: str) -> None:
    """Check that no process holds xco-coordinator's lock of an interface (flock(2)).

    Raises:
        GateError: a coordinator runs on the interface.
    """
    namespace = Path("/proc/self/ns/net").stat().st_ino
    try:
        with Path(LOCKS, f"{interface}-{namespace}").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        fix = "stop it: that releases the interface"
        raise GateError(interface, "a coordinator runs there", fix) from error
    except FileNotFoundError:
        return  # none has run since boot
    except OSError as error:
        raise GateError(interface, os.strerror(error.errno or errno.EIO)) from error
