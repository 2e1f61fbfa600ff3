"""zovn check: where packets can be lost at this end, and the commands that prevent it."""

from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from common.command import EXIT_FAILED
from common.output import counted, fitting_console, print_json
from common.printable import printable, say
from zovn.check.demand import SOCKETS, demand
from zovn.check.facts import Facts, Interface
from zovn.check.judge import Finding, judge, placed
from zovn.check.queues import leaves, limit_of
from zovn.check.veths import probe_veths


def check(
    netns: Annotated[
        str | None, typer.Option(help="Network namespace to check, by its name (ip-netns(8)).")
    ] = None,
    sockets: Annotated[
        int, typer.Option(min=1, help="Sockets to allow for, unless more are open.")
    ] = SOCKETS,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Report where packets can be lost at this end; exit code 1 if they can.

    Run it in a guest or container, or from the host with --netns. It changes nothing. As root it
    also tries, in a network namespace of its own, whether this kernel carries lossless veth ports.
    """
    from zovn.check.read import read_facts  # noqa: PLC0415  pyroute2 takes 0.2 s to load

    facts = read_facts(netns)
    veths = probe_veths()
    findings = [placed(finding, netns) for finding in judge(facts, sockets)]
    if json:
        print_json(_document(facts, findings, sockets) | {"veth": veths})
    else:
        _show(facts, findings, sockets)
        say(f"\nports to containers (veth): {printable(veths.said)}")
    if any(finding.level == "loss" for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def _document(facts: Facts, findings: list[Finding], sockets: int) -> dict[str, Any]:
    return {
        "findings": findings,
        "needed": demand(facts, sockets),
        **msgspec.structs.asdict(facts),
    }


def _show(facts: Facts, findings: list[Finding], sockets: int) -> None:
    fitting_console().print(_interfaces(facts))
    needed = demand(facts, sockets)
    say(f"\nsend buffers of {needed.sockets} sockets hold {needed.packets:,} packets")
    for finding in findings:
        say(f"\n{finding.where}: {finding.problem}")
        if finding.fix:
            say(f"    {finding.fix}")
    losses = sum(finding.level == "loss" for finding in findings)
    say(f"\n{counted(losses, 'finding', none='no finding')}; lost so far:")
    for name, value in msgspec.structs.asdict(facts.counters).items():
        say(f"    {name.replace('_', ' ')}: {value:,}")


def _interfaces(facts: Facts) -> Table:
    headings = ("interface", "kind", "queue", "limit", "txqueuelen", "queue drops", "rx/tx dropped")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < 3 else "right")
    for interface in facts.interfaces:
        table.add_row(*map(Text, _row(interface)))
    return table


def _row(interface: Interface) -> tuple[str, ...]:
    queues = leaves(interface)
    limits = {limit_of(qdisc, interface) for qdisc in queues}
    return (
        printable(interface.name) + ("" if interface.up else " (down)"),
        printable(interface.kind),
        ", ".join(sorted({qdisc.kind for qdisc in queues})) or "-",
        ", ".join("-" if limit is None else f"{limit:,}" for limit in limits) or "-",
        f"{interface.txqueuelen:,}",
        f"{sum(qdisc.drops for qdisc in interface.qdiscs):,}",
        f"{interface.rx_dropped:,}/{interface.tx_dropped:,}",
    )
