"""``xtc-lab``: bring virtual routers up on this machine, look at them, take them down."""

import re
import signal
import sys
import time
from typing import Annotated, Any, Final, Never

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from lab.errors import BadRequestError, LabError, ProgramError
from lab.plan import DEFAULT_PREFIX, RouterKind, check_kind, check_name
from lab.programs.processes import check_rate
from lab.routers.router import Router
from lab.routers.topology import Lab
from lab.system import namespaces, requirements
from lab.system.teardown import find, tear_down

POLL_S: Final = 0.2
_RATE = re.compile(r"^([0-9.]+)\s*(k|M|)(pps|p/s)?$")
_SCALE = {"": 1.0, "k": 1e3, "M": 1e6}

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
console = Console()

Prefix = Annotated[str, typer.Option(help="Prefix of the names of namespaces and groups.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def parse_router(text: str) -> tuple[str, RouterKind]:
    """Parse ``NAME=KIND``.

    Raises:
        BadRequestError: the text is not of that form, or has an unknown kind.
    """
    name, equals, kind = text.partition("=")
    if not equals:
        raise BadRequestError("router", text, "of the form vr1=user-space or vr1=kernel")
    return check_name(name), check_kind(kind)


def parse_rate(text: str) -> float:
    """Parse a packet rate such as ``60kpps``, ``60 kp/s`` or ``60000``, in packets/s.

    Raises:
        BadRequestError: the text is not a rate.
    """
    match = _RATE.match(text.strip())
    if match is None or match[1].count(".") > 1 or match[1] == ".":
        raise BadRequestError("offered", text, "a packet rate such as 60kpps or 60000")
    return check_rate(float(match[1]) * _SCALE[match[2]])


def describe(router: Router) -> dict[str, Any]:
    """Return the data of a router for programs."""
    return {
        "name": router.name,
        "kind": router.kind,
        "netns": router.netns,
        "host_interfaces": router.host_interfaces,
        "inner_interfaces": router.inner_interfaces,
        "cgroup": str(router.cgroup) if router.cgroup else None,
    }


@app.command()
def up(
    router: Annotated[
        list[str], typer.Option(help="NAME=KIND; kinds are user-space and kernel. Repeatable.")
    ] = ["vr1=user-space"],  # noqa: B006  typer copies defaults
    offered: Annotated[
        str | None, typer.Option(help="Flood every router at this rate, such as 60kpps.")
    ] = None,
    prefix: Prefix = DEFAULT_PREFIX,
    json: Json = False,
) -> None:
    """Bring routers up and keep them until Ctrl-C; a lab with the same prefix is removed first."""
    wanted = [parse_router(text) for text in router]
    rate = parse_rate(offered) if offered else None
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with Lab(prefix) as lab:
            for name, kind in wanted:
                made = lab.add_router(name, kind)
                if rate is not None:
                    made.flood(rate)
            _show_up(lab, json)
            _wait(lab)
    except KeyboardInterrupt:
        if not json:
            console.print("The lab is down.")


@app.command()
def down(prefix: Prefix = DEFAULT_PREFIX, json: Json = False) -> None:
    """Remove a lab with all its namespaces, processes and control groups."""
    removed = tear_down(prefix)
    if json:
        _print_json(removed)
        return
    console.print(
        f"Removed {len(removed.namespaces)} namespaces, {len(removed.processes)} processes "
        f"and {len(removed.cgroups)} control groups."
        if removed
        else f"There is no lab {prefix}."
    )


@app.command()
def status(prefix: Prefix = DEFAULT_PREFIX, json: Json = False) -> None:
    """Show what exists of a lab; the exit code is 1 if there is none, 2 if there cannot be one."""
    found, missing = find(prefix), requirements.missing()
    if json:
        _print_json({"missing": missing, **msgspec.to_builtins(found)})
    elif missing:
        console.print("\n".join(missing))
    elif found:
        _show_status(found.namespaces, len(found.processes))
    else:
        console.print(f"There is no lab {prefix}.")
    if missing or not found:
        raise typer.Exit(2 if missing else 1)


def _show_up(lab: Lab, json: bool) -> None:
    if json:
        routers = [describe(router) for router in lab.routers.values()]
        _print_json({"dom0_netns": lab.dom0_netns, "routers": routers})
        return
    table = Table("router", "kind", "in Dom0", "inside", "namespace", "cgroup")
    for router in lab.routers.values():
        names = ["\n".join(router.host_interfaces), "\n".join(router.inner_interfaces)]
        group = str(router.cgroup) if router.cgroup else "-"
        table.add_row(router.name, router.kind, *names, router.netns, group)
    console.print(table)
    console.print(f"Dom0 is {lab.dom0_netns}. Ctrl-C ends the lab.")


def _show_status(names: list[str], processes: int) -> None:
    table = Table("namespace", "interfaces")
    for name in names:
        table.add_row(namespaces.path(name), " ".join(namespaces.interfaces(name)))
    console.print(table)
    console.print(f"{processes} processes.")


def _wait(lab: Lab) -> Never:
    while not (dead := lab.died()):
        time.sleep(POLL_S)
    raise ProgramError(dead[0], "it ended while the lab was up")


def _interrupt(*_: object) -> Never:
    raise KeyboardInterrupt


def _print_json(value: Any) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the command line; an error is one sentence and exit code 1."""
    try:
        app()
    except LabError as error:
        speaker = Console(stderr=True, emoji=False, highlight=False, soft_wrap=True)
        speaker.print(f"xtc-lab: {error}", style="red", markup=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
