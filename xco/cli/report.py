"""Shows a machine's controller and coordinator to people."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from common.output import sparkline
from xco.cli.output import Cell, short_rate, short_size, show, styled, table
from xco.cli.status import Machine
from xco.cli.top import FlowRow, Frame, HostRow

HOST_HEADINGS = ("host", "mode", "backlog", "flows", "granted", "of time", "rate", "slices/s")
SOURCE_HEADINGS = ("host", "packets", "bytes", "met congestion", "may send", "lets us send")
VM_HEADINGS = ("VM", "weight", "guarantee", "bytes", "hosts")
FLOW_HEADINGS = ("source", "destination", "host", "backlog", "granted", "rate")
Histories = dict[tuple[str, ...], list[float]]
HISTORY = 20
"""Number of samples in a sparkline."""


def print_machine(machine: Machine) -> None:
    """Print one snapshot."""
    show(*_parts(machine))


def _parts(machine: Machine) -> Iterator[str | Table]:
    if machine.controller is not None:
        yield from _controller(machine.controller)
    if machine.coordinator is not None:
        yield from _coordinator(machine.coordinator)
    yield from machine.silent


def _controller(found: dict[str, Any]) -> Iterator[str | Table]:
    state, loop = found["controller"], found["loop"]
    if state["role"] == "leader" and loop is not None:
        yield (
            f"controller: leads in epoch {state['epoch']}, {loop['strategy']}; "
            f"{loop['hosts_joined']} of {len(found['hosts'])} hosts joined, "
            f"{loop['hosts_coordinated']} coordinated, {loop['links_contended']} links contended"
        )
    else:
        yield "controller: standby" if state["role"] == "standby" else "controller: starts"
    if state["problem"]:
        yield f"problem: {state['problem']}"
    if loop is not None and loop["dropped_version"]:
        yield (
            f"problem: {loop['dropped_version']} messages of another protocol version: install the "
            "same release on controllers, hosts and port agents"
        )
    joined = [row for row in found["hosts"] if row["joined"]]
    if state["role"] == "leader" and joined:
        headings = ("host", "mode", "backlog", "flows", "granted", "rate", "slices", "silent")
        yield table(headings, map(_host_now, joined))


def _host_now(row: dict[str, Any]) -> tuple[Cell, ...]:
    return (
        row["host"],
        _mode(row["mode"], fell_back=bool(row["fell_back"])),
        short_size(row["backlog_bytes"]),
        str(row["backlog_flows"]),
        short_rate(row["granted_bps"]),
        short_rate(row["rate_kbps"] * 1000),
        str(row["slices"]),
        f"{row['silent_ns'] / 1e6:.0f} ms",
    )


def _mode(mode: str, *, fell_back: bool) -> Text:
    return styled("fallback" if fell_back else mode)


def _coordinator(found: dict[str, Any]) -> Iterator[str | Table]:
    counters = found["counters"]
    yield (
        f"coordinator: {found['interface']} {found['mode']}, {_obeys(found)}{_offers(found)}"
        f"{_refusals(found)}; "
        f"{counters['slices']} slices, {counters['given_up']} given up, "
        f"{counters['fallbacks']} fallbacks"
    )
    if found["problem"]:
        yield f"problem: {found['problem']}"
    if found["flows"]:
        yield table(FLOW_HEADINGS[:-1], map(_flow_now, found["flows"]), left=3)
    if found["sources"]:
        yield table(SOURCE_HEADINGS, map(_source, found["sources"]), left=1)
    if found["vms"]:
        yield table(VM_HEADINGS, map(_vm, found["vms"]), left=1)


def _source(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["host"] or "other",
        str(row["packets"]),
        short_size(row["bytes"]),
        f"{row['marks'] / row['packets']:.2%}",
        short_rate(row["offer_bps"]),
        short_rate(row["offered_bps"]),
    )


def _vm(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["interface"],
        str(row["weight"]),
        short_rate(row["guarantee_mbps"] * 10**6),
        short_size(row["sent_bytes"]),
        "not seen at the gates" if row.get("unseen") else str(row["destinations"]),
    )


def _obeys(found: dict[str, Any]) -> str:
    """Return which epoch the host obeys, or why it obeys none."""
    counters = found["counters"]
    if found["joined"]:
        return f"obeys epoch {found['epoch']}"
    if not counters["refusals"]:
        return "no controller heard"
    if not counters["directives"]:
        return "refused by the controller: the log says why"
    return f"no controller accepted, {counters['refusals']} refusals: the log says why"


def _offers(found: dict[str, Any]) -> str:
    """Return how many hosts offer a rate, where rates come from them."""
    count = found["counters"]["offers"]
    return f", {count} hosts offer a rate" if found["mode"] == "hygenicc" else ""


def _refusals(found: dict[str, Any]) -> str:
    """Return to how many hosts new connections are refused."""
    count = found["counters"]["destinations_refused"]
    hosts = "1 host" if count == 1 else f"{count} hosts"
    return f", connections to {hosts} are refused" if count else ""


def _flow_now(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["source"],
        row["destination"],
        row["host"] or "-",
        short_size(row["backlog_bytes"]),
        short_rate(row["open_bps"]),
    )


def frame_table(shown: Frame, rows: int, histories: Histories) -> Group:
    """Return what `xco top` shows, at most so many rows of each table."""
    return Group(*_live(shown, rows, histories))


def _live(shown: Frame, rows: int, histories: Histories) -> Iterator[RenderableType]:
    if shown.controller is not None:
        yield Text(_controller_line(shown.controller))
        cells = [_host_live(row, histories) for row in shown.hosts[:rows]]
        yield _capped(table((*HOST_HEADINGS, "history"), cells), len(shown.hosts), rows)
    if shown.coordinator is not None:
        yield Text(_coordinator_line(shown.coordinator))
        flows = [_flow_live(row, histories) for row in shown.flows[:rows]]
        yield _capped(table((*FLOW_HEADINGS, "history"), flows, left=3), len(shown.flows), rows)
    yield from map(Text, shown.silent)


def _capped(made: Table, total: int, rows: int) -> Table:
    if total > rows:
        made.caption = f"and {total - rows} more (--rows)"
    return made


def _controller_line(found: dict[str, Any]) -> str:
    if found["role"] != "leader":
        return "controller: standby"
    return (
        f"controller: epoch {found['epoch']}, {found['strategy']}; {found['hosts_joined']} hosts, "
        f"{found['hosts_coordinated']} coordinated; {found['slices_started_per_s']:.0f} slices/s, "
        f"{found['events_gave_up_per_s']:.0f} given up/s, "
        f"{found['directives_sent_per_s']:.0f} directives/s"
    )


def _coordinator_line(found: dict[str, Any]) -> str:
    return (
        f"coordinator: {found['interface']} {found['mode']}, epoch {found['epoch']}; "
        f"{found['slices_per_s']:.0f} slices/s, {found['given_up_per_s']:.0f} given up/s, "
        f"{found['fallbacks']} fallbacks"
    )


def _host_live(row: HostRow, histories: Histories) -> tuple[Cell, ...]:
    return (
        row.host,
        _mode(row.mode, fell_back=row.fell_back),
        short_size(row.backlog_bytes),
        str(row.backlog_flows),
        short_rate(row.granted_bps),
        f"{row.granted_share:.0%}",
        short_rate(row.rate_bps),
        f"{row.slices_per_s:.0f}",
        _history(histories, (row.host,), row.rate_bps),
    )


def _flow_live(row: FlowRow, histories: Histories) -> tuple[Cell, ...]:
    return (
        row.source,
        row.destination,
        row.host or "-",
        short_size(row.backlog_bytes),
        short_rate(row.granted_bps),
        short_rate(row.rate_bps),
        _history(histories, (row.source, row.destination), row.rate_bps),
    )


def _history(histories: Histories, key: tuple[str, ...], value: float) -> str:
    values = histories.setdefault(key, [])
    values.append(value)
    del values[:-HISTORY]
    return sparkline(values)
