"""xtc sandbox: simulated hosts for trying a policer, without root and without real packets."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.command import EXIT_FAILED
from common.errors import ConfigError
from common.output import print_json
from common.printable import say
from common.units import check_rate, format_rate, parse_rate
from xtc.errors import Unreachable

if TYPE_CHECKING:
    from xtc.sandbox.layout import HostPlace
    from xtc.sandbox.loads import Loads

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run simulated hosts to try a policer on. Nothing on this machine is touched.",
)
LABEL = "SIMULATED: no packet is real, and no router of this machine is touched."
DIRECTORY = Path("xtc-sandbox")
STARTING_S = 5.0
"""How long to wait for a sandbox that was just started, and for hosts that answer late."""
Directory = Annotated[
    Path, typer.Option(envvar="XTC_SANDBOX", help="Directory of its sockets and logs.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Vr = Annotated[str, typer.Argument(metavar="VR", help="The simulated router's name.")]
Rate = Annotated[
    str, typer.Argument(metavar="RATE", help="A packet rate, or 10x for ten times the usual one.")
]


@app.command()
def run(
    hosts: Annotated[int, typer.Option(min=1, max=8, help="Number of hosts, 3 routers each.")] = 2,
    directory: Directory = DIRECTORY,
    json: Json = False,
) -> None:
    """Run simulated hosts in the foreground, each with a real daemon and three routers.

    Prints how a policer reaches them once all answer. Ctrl-C or SIGTERM stops them.
    """
    from xtc.sandbox.layout import places  # noqa: PLC0415  the daemon takes 0.2 s to load
    from xtc.sandbox.processes import (  # noqa: PLC0415  likewise
        end_request,
        running,
        wait_for_end,
    )

    made, asked = places(directory, hosts), end_request()
    with running(made, asked) as processes:
        if json:
            print_json([_entry(place) for place in made])
            sys.stdout.flush()  # its reader does not wait for the end of the output
        else:
            say("\n".join([LABEL, *map(_words, made)]))
        ended = wait_for_end(processes, asked)
    if ended:
        log = next(place.log for place in made if place.name == ended)
        say(f"xtc: {ended} ended by itself (see {log})", err=True)
        raise typer.Exit(EXIT_FAILED)


@app.command()
def load(vr: Vr, rate: Rate, directory: Directory = DIRECTORY, json: Json = False) -> None:
    """Change the load of a simulated router, from its host's next second on."""
    from xtc.sandbox.loads import Sent, write_loads  # noqa: PLC0415  as above

    place, loads = _host_of(vr, directory)
    usual = loads[vr].usual_pps
    loads[vr] = Sent(usual, parse_load(rate, usual))
    write_loads(place.loads, loads)
    _show({place.name: {vr: loads[vr]}}, json=json)


@app.command()
def show(directory: Directory = DIRECTORY, json: Json = False) -> None:
    """Show the load of each simulated router."""
    _show({place.name: loads for place, loads in _found(directory)}, json=json)


def parse_load(text: str, usual: float) -> float:
    """Parse a rate, or a multiple of the usual one, in packets/s.

    Raises:
        UnitError: it is neither.
    """
    text = text.strip()
    if text == "0":
        return 0.0
    if text.endswith("x"):
        return check_rate(usual * parse_rate(text.removesuffix("x"), field="RATE"), field="RATE")
    return parse_rate(text, field="RATE")


def _found(directory: Path) -> "Iterator[tuple[HostPlace, Loads]]":
    """Yield the hosts of a running sandbox, with the load of their routers.

    Raises:
        Unreachable: no sandbox runs there.
        ConfigError: the load cannot be read.
    """
    from xtc.sandbox.layout import MOST_HOSTS, places  # noqa: PLC0415  as above
    from xtc.sandbox.loads import read_loads  # noqa: PLC0415  likewise

    until = time.monotonic() + (STARTING_S if directory.is_dir() else 0.0)
    running = _running(places(directory, MOST_HOSTS), until)
    if not running:
        words = "start one with `xtc sandbox run`, or name another place with --directory"
        raise Unreachable(f"no sandbox runs in {directory.absolute()}; {words}")
    for place in running:
        yield place, read_loads(place.loads)


def _running(made: "Sequence[HostPlace]", until: float) -> "list[HostPlace]":
    """Return the hosts that answer: all that listen, or those that do in time.

    A host that answers late on a busy machine would otherwise seem to have no routers.
    """
    running: list[HostPlace] = []
    while True:
        running += [place for place in made if place not in running and place.runs()]
        complete = running and all(place in running for place in made if place.listens())
        if complete or time.monotonic() >= until:
            return sorted(running, key=made.index)
        time.sleep(0.2)


def _host_of(vr: str, directory: Path) -> "tuple[HostPlace, Loads]":
    found = list(_found(directory))
    for place, loads in found:
        if vr in loads:
            return place, loads
    known = ", ".join(name for _, loads in found for name in loads)
    raise ConfigError("VR", f"no simulated router {vr}", f"one of {known}")


def _show(hosts: "Mapping[str, Loads]", *, json: bool) -> None:
    if json:
        print_json(hosts)
        return
    for name, loads in hosts.items():
        for vr, sent in loads.items():
            usual = (
                ""
                if sent.offered_pps == sent.usual_pps
                else (f", usually {format_rate(sent.usual_pps)}")
            )
            say(f"{name} {vr}: {format_rate(sent.offered_pps)} sent{usual} (simulated)")


def _entry(place: "HostPlace") -> dict[str, object]:
    return {
        "host": place.name,
        "simulated": True,
        "requests": place.requests,
        "telemetry": place.telemetry,
        "capacity_pps": place.capacity_pps,
        "routers": place.usual,
    }


def _words(place: "HostPlace") -> str:
    """Describe the load of a host's routers, and how a policer reaches the host."""
    sent = ", ".join(f"{vr} {format_rate(pps)}" for vr, pps in place.usual.items())
    return (
        f"{place.name} is sent: {sent}. For a policer:\n"
        f"  policer host add {place.name} --capacity {place.capacity_pps / 1e3:g}kpps"
        f" --requests {place.requests} --telemetry {place.telemetry}"
    )
