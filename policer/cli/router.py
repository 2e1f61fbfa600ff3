"""policer router: state, history and pardon of each router."""

from typing import Annotated, Any

import typer

from common.output import print_json
from common.units import format_bit_rate
from policer.cli.shared.export import between
from policer.cli.shared.places import place
from policer.cli.shared.remote import (
    URL,
    HostName,
    Json,
    OfHost,
    TokenFile,
    Url,
    Vr,
    items_of,
    reach,
)
from policer.cli.shared.tables import (
    ROUTER_HEADINGS,
    TERMS_HEADINGS,
    moment,
    rate,
    router_row,
    show,
    standing_words,
    terms,
)
from policer.cli.shared.times import Since, Until, seconds
from policer.cli.shared.units import rate_of
from policer.errors import SettingsError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="State of routers.")

Misbehaving = Annotated[bool, typer.Option("--misbehaving", help="Only misbehaving routers.")]
MARKS = {True: "excessive", False: "acceptable", None: "neither"}


@app.command(name="list")
def every(
    host: OfHost = None,
    misbehaving: Misbehaving = False,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """List routers."""
    wanted = True if misbehaving else None
    with reach(url, token_file) as client:
        items = items_of(client, "routers", host, misbehaving=wanted)
    if json:
        print_json(items)
    else:
        show(ROUTER_HEADINGS, map(router_row, items))


@app.command(name="show")
def one(
    host: HostName, vr: Vr, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """Show one router: its contract, state, orders, and the reasons."""
    with reach(url, token_file) as client:
        item = client.get(place("hosts", host, "routers", vr)).body
    if json:
        print_json(item)
    else:
        show(("", ""), _rows(item))


@app.command()
def pardon(
    host: HostName, vr: Vr, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """Forget a router's misbehaviour, and lift the measures against it."""
    with reach(url, token_file) as client:
        answer = client.post(place("hosts", host, "routers", vr, "pardon")).body
    if json:
        print_json(answer)
    else:
        typer.echo(f"{host} {vr}: pardoned from {answer['pardoned_from'] or 'nothing'}")


@app.command()
def history(
    host: HostName,
    vr: Vr,
    since: Since = None,
    until: Until = None,
    step: Annotated[
        str | None, typer.Option(help="Resolution, 1s to 1d (default: as coarse as needed).")
    ] = None,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Show a router's history, by default the last hour; times without data have no line."""
    length = None if step is None else seconds(step)
    if step is not None and length is None:
        raise SettingsError("--step", f"{step!r} is no length of time", "write 10s, 5m or 1h")
    times = between(since, until)
    with reach(url, token_file) as client:
        where = place("hosts", host, "routers", vr, "history")
        answer = client.get(where, step=length, **times).body
    if json:
        print_json(answer)
    else:
        show(HISTORY_HEADINGS, map(_history_row, answer["points"]))


HISTORY_HEADINGS = (
    "from",
    ">offered",
    ">throughput",
    ">setpoint",
    ">guarantee",
    ">in breach",
    ">punished",
    ">known",
)


def _history_row(point: Any) -> tuple[str, ...]:
    rates = (rate(point[f"{name}_pps"]) for name in ("offered", "throughput", "setpoint"))
    promised = rate(point["guarantee_pps"] or None)
    times = (f"{point[name]:.3g} s" for name in ("breach_s", "punished_s", "data_s"))
    return (moment(point["at"]), *rates, promised, *times)


def _rows(item: Any) -> list[tuple[str, str]]:
    rows = [("host", item["host"]), ("router", item["vr"])]
    if item["contract"] is None:
        rows.append(("contract", "none"))
    else:
        names = (heading.removeprefix(">") for heading in TERMS_HEADINGS)
        rows += zip(names, terms(item["contract"]), strict=True)
        rows.append(("follows it as", item["follows"] or "-"))
    rows += _report_rows(item["report"])
    order = item["order"] or {}
    rows.append(("told setpoint", rate_of(order, "setpoint")))
    rows.append(("told burst", _burst(order)))
    rows.append(("told limit", rate(order.get("limit_pps"))))
    rows.append(("refused", item["refusal"] or "-"))
    return rows + _kept_rows(item.get("kept")) + _punishment_rows(item)


def _kept_rows(kept: Any) -> list[tuple[str, str]]:
    if kept is None:
        return []
    since = f"since {moment(kept['since'])}"
    return [
        ("over its promise", f"{_counted(kept, 'over')} {since}"),
        ("under its promise", f"{_counted(kept, 'under')} {since}"),
        ("in breach", f"{kept['breach_seconds']:.1f} s {since}"),
    ]


def _counted(kept: Any, which: str) -> str:
    """Show packets, and the bits that were counted while the router was held in bits/s."""
    packets, bits = kept[f"{which}_promise_packets"], kept.get(f"{which}_promise_bits")
    return f"{packets:.0f} packets" + (f" and {bits:.0f} bits" if bits else "")


def _burst(order: Any) -> str:
    """Show what a setpoint allows beyond its rate; `-` if there is none."""
    in_bits = order.get("setpoint_bps") is not None
    if order.get("setpoint_pps") is None and not in_bits:
        return "-"
    burst = order.get("burst")
    return "0.2 s" if burst is None else f"{burst:.10g} {'bits' if in_bits else 'packets'}"


def _report_rows(report: Any) -> list[tuple[str, str]]:
    if report is None:
        return [("report", "its host is not heard, or does not know it")]
    lease = report["lease_remaining_s"]
    in_bits = report.get("setpoint_bps")
    return [
        *([] if in_bits is None else [("held at", format_bit_rate(in_bits))]),
        ("throughput", _both(report, "throughput")),
        ("offered", _both(report, "offered")),
        ("mode", report["mode"]),
        ("finding", report["problem"] or report["finding"]),
        ("lease left", "-" if lease is None else f"{lease:.1f} s"),
    ]


def _both(report: Any, name: str) -> str:
    """Show a rate in packets/s and, if known, in bits/s."""
    bits = report.get(f"{name}_bps")
    in_bits = "" if bits is None else f", {format_bit_rate(bits)}"
    return rate(report[f"{name}_pps"]) + in_bits


def _punishment_rows(item: Any) -> list[tuple[str, str]]:
    punishment = item["punishment"]
    rows = [("misbehaves", "yes" if item["misbehaving"] else "no")]
    if item.get("exemption"):
        rows.append(("exempt", standing_words(item["exemption"])))
    if punishment is None:
        return rows
    only = " (only reported)" if punishment["only_reported"] else ""
    return [
        *rows,
        ("measure", f"{punishment['step'] or 'none'}{only}"),
        ("since", moment(punishment["since"])),
        ("evidence", ", ".join(MARKS[mark] for mark in punishment["evidence"]) or "-"),
    ]
