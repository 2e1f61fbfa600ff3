"""Formats the policer's answers for people."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.printable import printable
from common.units import format_cap, format_rate
from policer.cli.shared.terms import schedule_words
from policer.cli.shared.units import is_in_bits, rate_of
from policer.contracts.contract import TERMS

Item = Mapping[str, Any]
"""One entry of an answer, as JSON has it."""

HOST_STYLES = {
    "ok": "green",
    "held": "cyan",
    "gone": "red",
    "distrusted": "red",
    "deaf": "yellow",
    "refuses": "red",
    "starved": "yellow",
    "overpromised": "yellow",
    "suspended": "yellow",
}


SIMULATED = ", simulated"
"""Suffix of the state of a simulated host."""
UNFOLDED = 10_000
"""Width in characters, if no terminal sets another."""
PROSE = frozenset({"by", "finding", "measures", "problem", "what", "words"})
"""Columns that may be folded, like the last one of a table."""
SPARED = (
    *("history", "version", "by", "saved burst", "burst", "cost", "weight", "source"),
    *("class", "when", "tenant", "ceiling", "cap", "offered"),
)
"""Columns that are dropped on a narrow terminal, from the first one on. The column that names each
row always stays."""


LEAST_PROSE, GAP = 20, 2
"""Least width of a folded column of prose, and the gap between two columns."""


def console() -> Console:
    """Return a console as wide as the terminal; in a pipe, each row is one line."""
    made = Console(highlight=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = UNFOLDED
    return made


def show(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table as wide as the terminal; unprintable characters are escaped."""
    to = console()
    to.print(fitted(headings, list(rows), to.width), crop=False)


def fitted(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Table:
    """Return a table without the columns for which a narrow terminal has no room."""
    kept = list(range(len(headings)))
    for spared in (None, *SPARED):
        kept = [at for at in kept if at == 0 or headings[at].removeprefix(">") != spared]
        shown = [headings[at] for at in kept]
        cells = [[row[at] for at in kept] for row in rows]
        if _least_width(shown, cells) <= width:
            break
    return table(shown, cells)


def _least_width(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width that a table needs for readable prose."""
    total = GAP * (len(headings) - 1)
    for at, heading in enumerate(headings):
        words = [heading.removeprefix(">"), *(printable(row[at]) for row in rows)]
        longest = max(map(cell_len, words))
        folds = _folds(heading, last=at == len(headings) - 1)
        total += min(longest, LEAST_PROSE) if folds else longest
    return total


def _folds(heading: str, *, last: bool) -> bool:
    return not heading.startswith(">") and (last or heading in PROSE)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table; a heading that begins with `>` marks a column of numbers."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_header=any(headings))
    for number, heading in enumerate(headings, start=1):
        made.add_column(
            heading.removeprefix(">"),
            justify="right" if heading.startswith(">") else "left",
            overflow="fold",
            no_wrap=not _folds(heading, last=number == len(headings)),
        )
    for row in rows:
        made.add_row(*(Text(printable(cell), _style(cell)) for cell in row))
    return made


def _style(cell: str) -> str:
    return HOST_STYLES.get(cell.removesuffix(SIMULATED), "")


def rate(value: float | None) -> str:
    """Show a packet rate; `-` if there is none."""
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
        shown_state(live),
        str(live["routers"]),
        rate(entry["capacity_pps"]),
        rate(live["promised_pps"]),
        rate(live["forwarded_pps"] if live["reachable"] else None),
        rate(live["offered_pps"] if live["reachable"] else None),
        suspended(live)
        or live["distrust"]
        or live["link_problem"]
        or refused(live)
        or _strained(live),
    )


def shown_state(live: Item) -> str:
    """Return a host's state, with a suffix if it is simulated."""
    return host_state(live) + (SIMULATED if live.get("simulated") else "")


def host_state(live: Item) -> str:
    """Return a host's state in one word: its worst problem."""
    found = (
        ("gone", not live["reachable"]),
        ("suspended", live.get("suspension")),
        ("distrusted", live["distrust"]),
        ("deaf", live["link_problem"]),
        ("refuses", live["refused"]),
        ("overpromised", live["overpromised"]),
        ("held", live["engaged"]),
    )
    return next((word for word, holds in found if holds), "ok")


def refused(live: Item) -> str:
    """Describe why a host's orders have no effect; "" if they do."""
    if not live["refused"]:
        return "the brake is on: too many of its routers are guilty" if live["braked"] else ""
    orders = "1 order is" if live["refused"] == 1 else f"{live['refused']} orders are"
    return f"{orders} refused: {live['refusal']}"


def suspended(live: Item) -> str:
    """Describe until when, by whom and why control of a host is suspended; "" if it is not."""
    found = live.get("suspension")
    return f"control is suspended {standing_words(found)}" if found else ""


def standing_words(override: Item) -> str:
    """Describe until when an override holds, who set it, and why."""
    until = override["until"]
    end = "until it is ended" if until is None else f"until {moment(until)}"
    why = f": {override['reason']}" if override["reason"] else ""
    return f"{end}, by {override['set_by']}{why}"


def _strained(live: Item) -> str:
    """Describe the promises that a host cannot keep; "" if it keeps all."""
    if live["harmed"]:
        return f"guarantee missed: {', '.join(live['harmed'])}"
    return "routers came with more guarantees than it can keep" if live["overpromised"] else ""


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
    order, in_bits = item["order"] or {}, is_in_bits(contract)
    return (
        item["host"],
        item["vr"],
        rate_of(contract, "guarantee"),
        rate_of(contract, "ceiling"),
        rate_of(report, "throughput", in_bits=in_bits),
        rate_of(report, "offered", in_bits=in_bits),
        rate_of(order, "setpoint"),
        _cap(report),
        _finding(item, report),
        exempt(item) or measure(item["punishment"]),
    )


def _finding(item: Item, report: Item) -> str:
    """Return the finding of its loop, and whether its orders are refused."""
    found = report.get("problem") or report.get("finding") or "not heard"
    return f"{found}, refused" if item["refusal"] else found


def _cap(report: Item) -> str:
    if not report:
        return "-"
    return format_cap(report["cap"]) if report.get("cap_known", True) else "?"


def exempt(item: Item) -> str:
    """Describe until when a router is exempt from its ladder; "" if it is not."""
    found = item.get("exemption")
    return f"exempt until {moment(found['until'])}" if found else ""


def measure(punishment: Item | None) -> str:
    """Return the measure against a router, in a word or two."""
    if punishment is None:
        return "-"
    step = punishment["step"] or "none"
    return f"{step} (only reported)" if punishment["only_reported"] else step


TERMS_HEADINGS = (
    ">guarantee",
    ">ceiling",
    ">weight",
    ">saved burst",
    "measures",
    "punish",
    ">cost",
    ">burst",
    "class",
    "tenant",
    "when",
)
CONTRACT_HEADINGS = ("host", "router", *TERMS_HEADINGS, ">version", "by")
_OF_CONTRACTS = 3
"""Columns that do not apply to the terms of a class: class, tenant and when."""
CLASS_HEADINGS = ("class", *TERMS_HEADINGS[:-_OF_CONTRACTS], ">version", "by")


def contract_row(item: Item) -> tuple[str, ...]:
    """Return a row of a table of contracts: terms in force, or those of other times."""
    entered = item["contract"]
    held = item["terms"] or entered
    kept = {name: held[name] for name in TERMS}
    seen_on = item["seen_on"]
    host = item["host"] or (f"({seen_on})" if seen_on else "(not seen)")
    return (
        host,
        item["vr"],
        *terms({**entered, **kept, "class": held["class"]}),
        str(item["version"]),
        item["changed_by"],
    )


def class_row(item: Item) -> tuple[str, ...]:
    """Return a row of a table of classes."""
    own = terms(item["terms"])[:-_OF_CONTRACTS]
    return (item["name"], *own, str(item["version"]), item["changed_by"])


def terms(contract: Item) -> tuple[str, ...]:
    """Return the cells of a contract's own terms."""
    measures = ", ".join(contract["measures"]) or "none"
    return (
        _sold(contract, "guarantee"),
        _sold(contract, "ceiling"),
        f"{contract['weight']:g}",
        f"{contract['burst_packets']:g}",
        f"{measures} (only reported)" if contract["dry_run"] else measures,
        contract["punish"].replace("_", " "),
        f"{contract['cost']:g}",
        "0.2 s" if contract["burst"] is None else f"{contract['burst']:.10g}",
        contract["class"] or "-",
        contract["tenant"] or "-",
        schedule_words(contract) or "always",
    )


def _sold(contract: Item, name: str) -> str:
    """Show a rate of a contract; one in bits/s with its packet size."""
    in_bits = contract.get(f"{name}_bps") is not None
    return rate_of(contract, name) + (f" ({contract['packet_bytes']} B)" if in_bits else "")


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
