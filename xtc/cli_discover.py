"""xtc discover: the domains that xtc would control, and why not the rest."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from xtc.clock import MonotonicClock
from xtc.output import print_json
from xtc.units import CapFraction, format_cap
from xtc.virt.api import real_api
from xtc.virt.discover import Candidate, Host, look

EXIT_FAILED = 1


def discover(
    uri: Annotated[
        list[str] | None,
        typer.Option("--uri", help="A hypervisor, such as xen:///system; libvirt's own if none."),
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the configuration of what it would control.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the domains of hypervisors: which xtc would control, and why not the rest.

    Exit code 1 if a hypervisor could not be asked.
    """
    uris: Sequence[str | None] = uri or (None,)
    hosts = [look(real_api, one, MonotonicClock()) for one in uris]
    if json:
        print_json(hosts)
    elif toml:
        _print_toml(hosts)
    else:
        _print_table(hosts)
    for host in hosts:
        if host.problem:
            typer.echo(f"xtc: {host.problem}", err=True)
    if any(host.problem for host in hosts):
        raise typer.Exit(EXIT_FAILED)


def _print_toml(hosts: list[Host]) -> None:
    for host in hosts:
        for domain in host.domains:
            if domain.controllable:
                typer.echo(domain.configuration)


def _print_table(hosts: list[Host]) -> None:
    domains = [domain for host in hosts for domain in host.domains]
    if not domains:
        if not any(host.problem for host in hosts):
            typer.echo("no domains")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("domain", "uuid", "driver", "state", "vCPUs", "interfaces", "cap", "verdict"):
        table.add_column(heading, overflow="fold")
    for domain in domains:
        table.add_row(*_row(domain))
    Console(highlight=False, emoji=False).print(table)


def _row(domain: Candidate) -> tuple[str, ...]:
    cap = format_cap(None if domain.cap is None else CapFraction(domain.cap))
    verdict = "[green]can be controlled[/]" if domain.controllable else "[yellow]no[/]"
    return (
        escape(domain.domain),
        domain.uuid,
        domain.driver,
        "running" if domain.running else "stopped",
        str(domain.vcpus),
        ", ".join(domain.interfaces) or "-",
        cap if domain.running else "-",
        ": ".join([verdict, *(escape(reason) for reason in domain.reasons)]),
    )
