"""policer events and policer top: events and the state of the routers, optionally live."""

import sys
import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.live import Live

from common.output import print_json, sparkline
from policer.cli.shared.export import FEW, LINES, Jsonl, Latest, between, copied, whole
from policer.cli.shared.places import PAGE, place
from policer.cli.shared.remote import URL, Json, OfHost, TokenFile, Url, reach
from policer.cli.shared.tables import (
    EVENT_HEADINGS,
    ROUTER_HEADINGS,
    console,
    event_row,
    fitted,
    router_row,
    show,
)
from policer.cli.shared.times import Since, Until
from policer.cli.shared.units import guaranteed
from policer.errors import SettingsError, Unanswered

if TYPE_CHECKING:
    from policer.cli.shared.client import Client

RETRY_S = 2.0
"""Delay before a broken stream is resumed."""
EVERY_S = 1.0
HISTORY = 20
"""Samples in the sparkline."""

Kind = Annotated[str | None, typer.Option(help="Only this kind, e.g. punished.")]
Stop = Annotated[int, typer.Option(min=0, help="Exit after N (0 = never).")]


def events(
    host: OfHost = None,
    vr: Annotated[str | None, typer.Option("--vr", help="Only this router.")] = None,
    kind: Kind = None,
    limit: Latest = None,
    since: Since = None,
    until: Until = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new events.")] = False,
    count: Stop = 0,
    jsonl: Jsonl = False,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Show events, the latest last; with --follow, continue with one line for each event."""
    times = between(since, until)
    query = {"host": host, "vr": vr, "kind": kind}
    if jsonl:
        whole(limit, "--follow" if follow else "--json" if json else "")
    if follow and until is not None:
        raise SettingsError("--until", "--follow is given as well", "leave out one of the two")
    with reach(url, token_file) as client:
        if jsonl:
            copied(client.export(place("events"), LINES, **query, **times))
            return
        items = latest(client, limit or FEW, query | times)
        if not follow:
            _print_events(items, json=json)
            return
        for item in items:
            _print_event(item, json=json)
        wanted = {name: value for name, value in query.items() if value is not None}
        last = str(items[-1]["id"]) if items else newest(client)
        try:
            for number, item in enumerate(following(client, last, wanted), start=1):
                _print_event(item, json=json)
                if number == count:
                    return
        except KeyboardInterrupt:
            return


def latest(client: "Client", limit: int, query: dict[str, str | None]) -> list[Any]:
    """Return the latest events that fit, the oldest of them first."""
    found: list[Any] = []
    for item in client.items(place("events"), page=min(limit, PAGE), **query):
        found.append(item)
        if len(found) == limit:
            break
    return found[::-1]


def newest(client: "Client") -> str:
    """Return the id of the latest event of all; "0" if there is none."""
    items = client.get(place("events"), limit=1).body["items"]
    return str(items[0]["id"]) if items else "0"


def following(client: "Client", last: str, wanted: dict[str, str]) -> Generator[Any, None, None]:
    """Yield matching events after the one of this id, without end; resumes a broken stream."""
    while True:
        try:
            for message in client.stream(place("events", "stream"), last, **wanted):
                last = message.id or last
                if message.event == "event":
                    yield msgspec.json.decode(message.data)
                elif message.data:
                    typer.echo(f"policer: {message.data}", err=True)
        except Unanswered as error:
            typer.echo(f"policer: {error}; trying again", err=True)
        time.sleep(RETRY_S)


def top(
    host: OfHost = None,
    rows: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number to show.")] = 40,
    ticks: Stop = 0,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Watch the routers live, those in trouble first; with --json, one line a tick."""
    with reach(url, token_file) as client:
        try:
            if json:
                for items in looks(client, host, ticks):
                    _line(items)
            else:
                _watch(looks(client, host, ticks), rows)
        except KeyboardInterrupt:
            return


def looks(client: "Client", host: str | None, ticks: int) -> Iterator[list[Any]]:
    """Yield all routers repeatedly, more slowly if there are many."""
    number = 0
    while True:
        items = list(client.items(place("routers"), host=host))
        yield items
        number += 1
        if number == ticks:
            return
        time.sleep(EVERY_S * (1 + len(items) // PAGE))


def in_trouble_first(items: Sequence[Any]) -> list[Any]:
    """Sort routers: punished, misbehaving, refused, starved, then by offered load."""

    def trouble(item: Any) -> tuple[bool, bool, bool, bool, float]:
        offered = (item["report"] or {}).get("offered_pps") or 0.0
        calm = item["punishment"] is None, not item["misbehaving"], not item["refusal"]
        return (*calm, not _starved(item), -offered)

    return sorted(items, key=trouble)


def _starved(item: Any) -> bool:
    """Whether a router with a guarantee lacks CPU that its cap allows."""
    report, contract = item["report"] or {}, item["contract"] or {}
    return report.get("finding") == "starved" and guaranteed(contract)


def _watch(stream: Iterator[list[Any]], rows: int) -> None:
    histories: dict[tuple[str, str], list[float]] = {}
    to = console()
    with Live(console=to, auto_refresh=False) as live:
        for items in stream:
            shown = in_trouble_first(items)[:rows]
            cells = [(*router_row(item), _history(histories, item)) for item in shown]
            made = fitted((*ROUTER_HEADINGS, "history"), cells, to.width)
            if len(items) > rows:
                made.caption = f"and {len(items) - rows} more (--rows, --host)"
            live.update(made, refresh=True)


def _history(histories: dict[tuple[str, str], list[float]], item: Any) -> str:
    values = histories.setdefault((item["host"], item["vr"]), [])
    values.append((item["report"] or {}).get("throughput_pps") or 0.0)
    del values[:-HISTORY]
    return sparkline(values)


def _print_events(items: Sequence[Any], *, json: bool) -> None:
    if json:
        print_json(items)
    else:
        show(EVENT_HEADINGS, map(event_row, items))


def _print_event(item: Any, *, json: bool) -> None:
    if json:
        _line(item)
    else:
        typer.echo("  ".join(event_row(item)))


def _line(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()
