"""xtc discover: the namespaces, containers and domains that xtc would control, or why not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from common.clock import MonotonicClock
from common.output import fitting_console, natural_width, print_json
from common.printable import printable, say
from common.units import CapFraction, format_cap
from xtc.libvirt.api import real_api
from xtc.libvirt.discover import Candidate, Host, look

if TYPE_CHECKING:
    from xtc.config.discover import Local, LocalRouter

EXIT_FAILED = 1
_AND_LOCAL = " (so no domains are listed)"
_HEADINGS = ("domain", "uuid", "driver", "state", "vCPUs", "interfaces", "cap", "controllable")
_LOCAL_HEADINGS = ("router", "kind", "interfaces", "on this host", "forwards", "actuator")


def discover(
    uri: Annotated[
        list[str] | None,
        typer.Option("--uri", help="Only this hypervisor, e.g. xen:///system."),
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print a configuration for the routers found.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what xtc would control, and why not the rest: namespaces, containers, and domains.

    With --uri, list only the domains of those hypervisors; exit code 1 if one was not reachable.
    Without it, a host without libvirt is no error.
    """
    from xtc.config.discover import look_around  # noqa: PLC0415  pyroute2 takes 0.25 s to load

    uris: Sequence[str | None] = uri or (None,)
    hosts = [look(real_api, one, MonotonicClock()) for one in uris]
    local = None if uri else look_around()
    if json:
        print_json(hosts if local is None else [*hosts, local])
    elif toml:
        _print_toml(hosts, local)
    else:
        _print_tables(hosts, local)
    for host in hosts:
        if host.problem:
            say(f"xtc: {host.problem}" + _AND_LOCAL * (local is not None), err=True)
    if uri and any(host.problem for host in hosts):
        raise typer.Exit(EXIT_FAILED)


def _print_toml(hosts: list[Host], local: "Local | None") -> None:
    domains = [domain.configuration for host in hosts for domain in host.domains]
    routers = [router.configuration for router in (local.routers if local else ())]
    for configuration in filter(None, [*routers, *domains]):
        say(configuration)


def _print_tables(hosts: list[Host], local: "Local | None") -> None:
    domains = [domain for host in hosts for domain in host.domains]
    if local is not None and local.routers:
        _print_table(_LOCAL_HEADINGS, [_local_row(router) for router in local.routers])
    if domains:
        _print_table(_HEADINGS, [_row(domain) for domain in domains])
    elif local is None and not any(host.problem for host in hosts):
        say("no domains")
    elif local is not None and not local.routers:
        say("no namespaces, containers or domains")


class _Row(NamedTuple):
    cells: tuple[str, ...]
    answer: Text
    reasons: tuple[str, ...]


def _print_table(headings: tuple[str, ...], rows: Sequence[_Row]) -> None:
    """Print a table with its reasons, or with the reasons below it if they do not fit."""
    console = fitting_console()
    whole = _table(headings, rows, with_reasons=True)
    if natural_width(whole) <= console.width:
        console.print(whole)
        return
    console.print(_table(headings, rows, with_reasons=False))
    for row in rows:
        for reason in row.reasons:
            console.print(Text(printable(f"{row.cells[0]}: {reason}")))


def _table(headings: tuple[str, ...], rows: Sequence[_Row], *, with_reasons: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        reasons = (Text(printable(reason)) for reason in row.reasons)
        said = [row.answer, *reasons] if with_reasons else [row.answer]
        cells = (Text(printable(cell)) for cell in row.cells)
        table.add_row(*cells, Text(": ").join(said))
    return table


def _local_row(router: "LocalRouter") -> _Row:
    cells = (
        router.name,
        router.kind,
        ", ".join(router.interfaces) or "-",
        ", ".join(router.ends) or "-",
        "yes" if router.forwards else "no",
    )
    answer = Text(router.actuator, "green") if router.actuator else Text("no", "yellow")
    return _Row(cells, answer, router.reasons)


def _row(domain: Candidate) -> _Row:
    cap = format_cap(None if domain.cap is None else CapFraction(domain.cap))
    cells = (
        domain.domain,
        domain.uuid,
        domain.driver,
        "running" if domain.running else "stopped",
        str(domain.vcpus),
        ", ".join(domain.interfaces) or "-",
        cap if domain.running else "-",
    )
    good = domain.controllable
    answer = Text("can be controlled", "green") if good else Text("no", "yellow")
    return _Row(cells, answer, domain.reasons)
