"""How the policer's answers look to people."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from xtc.printable import printable
from xtc.units import format_cap, format_rate

Item = Mapping[str, Any]
"""One thing of an answer, as JSON has it."""

HOST_STYLES = {
    "ok": "green",
    "held": "cyan",
    "gone": "red",
    "distrusted": "red",
    "deaf": "yellow",
    "refuses": "red",
    "starved": "yellow",
}


UNFOLDED = 10_000
"""Columns of characters, where no terminal sets another width."""


def show(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; what is not printable is escaped, and a pipe gets a line a row."""
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = UNFOLDED
    console.print(table(headings, rows), crop=False)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table; a heading that begins with `>` is of a column of numbers."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_header=any(headings))
    for heading in headings:
        number = heading.startswith(">")
        made.add_column(
            heading.removeprefix(">"),
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=number,
        )
    for row in rows:
        made.add_row(*(Text(printable(cell), HOST_STYLES.get(cell, "")) for cell in row))
    return made


def rate(value: float | None) -> str:
    """Show a packet rate; `-` where there is none."""
    return "-" if value is None else format_rate(value)


HOST_HEADINGS = (
    "host",
    "state",
    ">routers",
    ">capacity",
    ">promised",
    ">forwarded",
    ">offered",
    "problem",
)


def host_row(item: Item) -> tuple[str, ...]:
    """Return a row of a table of hosts."""
    entry, live = item["entry"], item["live"]
    return (
        entry["name"],
        host_state(live),
        str(live["routers"]),
        rate(entry["capacity_pps"]),
        rate(live["promised_pps"]),
        rate(live["forwarded_pps"] if live["reachable"] else None),
        rate(live["offered_pps"] if live["reachable"] else None),
        live["distrust"] or live["link_problem"] or refused(live) or _harmed(live),
    )


def host_state(live: Item) -> str:
    """Return a host's state in a word."""
    if not live["reachable"]:
        return "gone"
    if live["distrust"]:
        return "distrusted"
    if live["link_problem"]:
        return "deaf"
    if live["refused"]:
        return "refuses"
    return "held" if live["engaged"] else "ok"


def refused(live: Item) -> str:
    """Say what keeps a host's orders from having an effect; "" where nothing does."""
    if not live["refused"]:
        return "the brake is on: too many of its routers are guilty" if live["braked"] else ""
    orders = "1 order is" if live["refused"] == 1 else f"{live['refused']} orders are"
    return f"{orders} refused: {live['refusal']}"


def _harmed(live: Item) -> str:
    return f"guarantee missed: {', '.join(live['harmed'])}" if live["harmed"] else ""


ROUTER_HEADINGS = (
    "host",
    "router",
    ">guarantee",
    ">ceiling",
    ">throughput",
    ">offered",
    ">setpoint",
    ">cap",
    "finding",
    "measure",
)


def router_row(item: Item) -> tuple[str, ...]:
    """Return a row of a table of routers."""
    contract, report = item["contract"] or {}, item["report"] or {}
    order = item["order"] or {}
    return (
        item["host"],
        item["vr"],
        rate(contract.get("guarantee_pps")),
        rate(contract.get("ceiling_pps")),
        rate(report.get("throughput_pps")),
        rate(report.get("offered_pps")),
        rate(order.get("setpoint_pps")),
        _cap(report),
        _finding(item, report),
        measure(item["punishment"]),
    )


def _finding(item: Item, report: Item) -> str:
    """Return what its loop finds, and whether its orders are refused."""
    found = report.get("problem") or report.get("finding") or "not heard"
    return f"{found}, refused" if item["refusal"] else found


def _cap(report: Item) -> str:
    if not report:
        return "-"
    return format_cap(report["cap"]) if report.get("cap_known", True) else "?"


def measure(punishment: Item | None) -> str:
    """Return what is done about a router, in a word or two."""
    if punishment is None:
        return "-"
    step = punishment["step"] or "none"
    return f"{step} (only reported)" if punishment["only_reported"] else step


CONTRACT_HEADINGS = (
    "host",
    "router",
    ">guarantee",
    ">ceiling",
    ">weight",
    ">saved burst",
    "measures",
    "punish",
    ">cost",
    ">burst",
    "tenant",
    ">version",
    "by",
)


def contract_row(item: Item) -> tuple[str, ...]:
    """Return a row of a table of contracts."""
    return (
        item["host"],
        item["vr"],
        *terms(item["contract"]),
        str(item["version"]),
        item["changed_by"],
    )


def terms(contract: Item) -> tuple[str, ...]:
    """Return the cells of a contract's own terms."""
    measures = ", ".join(contract["measures"]) or "none"
    return (
        rate(contract["guarantee_pps"]),
        rate(contract["ceiling_pps"]),
        f"{contract['weight']:g}",
        f"{contract['burst_packets']:g}",
        f"{measures} (only reported)" if contract["dry_run"] else measures,
        contract["punish"].replace("_", " "),
        f"{contract['cost']:g}",
        "0.2 s" if contract["burst"] is None else f"{contract['burst']:.10g}",
        contract["tenant"] or "-",
    )


EVENT_HEADINGS = ("at", "host", "router", "event", "words", "by")


def event_row(item: Item) -> tuple[str, ...]:
    """Return a row of a table of events."""
    return (
        moment(item["at"]),
        item["host"] or "-",
        item["vr"] or "-",
        item["kind"],
        item["words"],
        item["actor"],
    )


def moment(text: str) -> str:
    """Show an instant (RFC 3339, UTC) to the second."""
    return text.partition(".")[0].removesuffix("Z").removesuffix("+00:00").replace("T", " ") + "Z"
