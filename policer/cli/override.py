"""policer override, brake and epoch; suspend and resume a host, exempt a router."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from common.output import print_json
from policer.cli.shared.places import place
from policer.cli.shared.remote import URL, HostName, Json, OfHost, TokenFile, Url, Vr, reach
from policer.cli.shared.tables import moment, show, standing_words
from policer.cli.shared.until import parse_until

if TYPE_CHECKING:
    from policer.cli.shared.client import Client

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Overrides by operators.")
epoch_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Epoch of the leader.")

HEADINGS = ("what", "host", "router", "is", "until", "by", "since", "reason")


class BrakeMode(StrEnum):
    """Mode of the brake."""

    ON = "on"
    OFF = "off"
    AUTOMATIC = "automatic"


Until = Annotated[
    str | None,
    typer.Option(
        help="When it ends: a time from now such as 2h or 1d12h, or an instant with its zone such"
        " as 2026-03-01T18:00:00Z. Without it, it stands until it is ended."
    ),
]
End = Annotated[
    str,
    typer.Option(
        "--until",
        help="When it ends, at most 30 days ahead: 2h, 1d12h, or 2026-03-01T18:00:00Z.",
    ),
]
Reason = Annotated[str, typer.Option(help="Reason; shown with the override.")]


@app.command(name="list")
def every(
    host: OfHost = None, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """List the current overrides."""
    with reach(url, token_file) as client:
        items = list(client.items(place("overrides"), host=host))
    if json:
        print_json(items)
    else:
        show(HEADINGS, map(_row, items))


def brake(
    mode: Annotated[
        BrakeMode | None,
        typer.Argument(help="on: stop escalation; off: escalate regardless of counts."),
    ] = None,
    until: Until = None,
    reason: Reason = "",
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Show the brake on all escalation, or put it on, off, or back to automatic."""
    with reach(url, token_file) as client:
        answer = client.get(place("brake"))
        if mode is not None:
            body = {"mode": mode.value, "until": _instant(until), "reason": reason}
            answer = client.replace(place("brake"), body, answer.etag)
        elif until is not None or reason:
            raise typer.BadParameter("say on, off or automatic as well")
    if json:
        print_json(answer.body)
    else:
        show(("", ""), _brake_rows(answer.body))


def suspend(
    name: HostName,
    until: Until = None,
    reason: Reason = "",
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Stop sending to a host: its leases expire, and its daemon uses its own configuration."""
    body = {"until": _instant(until), "reason": reason}
    with reach(url, token_file) as client:
        item = _put(client, place("hosts", name, "suspension"), body)
    _say(item, name, json=json)


def resume(
    name: HostName, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """Resume control of a host."""
    with reach(url, token_file) as client:
        _end(client, place("hosts", name, "suspension"))
    if json:
        print_json({"resumed": name})
    else:
        typer.echo(f"{name}: control is resumed")


def exempt(
    host: HostName,
    vr: Vr,
    until: End,
    reason: Reason = "",
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Exempt a router from its ladder for a time; steps in force are lifted."""
    body = {"until": _instant(until), "reason": reason}
    with reach(url, token_file) as client:
        item = _put(client, place("hosts", host, "routers", vr, "exemption"), body)
    _say(item, f"{host} {vr}", json=json)


def unexempt(
    host: HostName, vr: Vr, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """End a router's exemption: escalation applies to it again, from the first step."""
    with reach(url, token_file) as client:
        _end(client, place("hosts", host, "routers", vr, "exemption"))
    if json:
        print_json({"unexempted": [host, vr]})
    else:
        typer.echo(f"{host} {vr}: its ladder applies again")


@epoch_app.command(name="raise")
def raise_epoch(
    above: Annotated[int, typer.Option(min=0, help="Epoch in the daemon's refusal.")],
    reason: Reason = "",
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Make the leader take a higher epoch than one that a daemon obeys; takes scope admin."""
    with reach(url, token_file) as client:
        body = {"above": above, "reason": reason}
        item = client.post(place("leadership", "epoch"), body).body
    if json:
        print_json(item)
    else:
        typer.echo(f"the leader takes an epoch above {item['above']} within seconds")


def _instant(until: str | None) -> str | None:
    return None if until is None else parse_until(until, datetime.now(UTC)).isoformat()


def _put(client: "Client", where: str, body: dict[str, Any]) -> Any:
    """Set an override, or another in the place of the one that stands."""
    before = client.find(where)
    if before is None:
        return client.create(where, body).body
    return client.replace(where, body, before.etag).body


def _end(client: "Client", where: str) -> None:
    client.remove(where, client.get(where).etag)


def _say(item: Any, name: str, *, json: bool) -> None:
    if json:
        print_json(item)
    else:
        typer.echo(f"{name}: {item['mode']} {standing_words(item)}")


def _row(item: Any) -> tuple[str, ...]:
    until = "-" if item["until"] is None else moment(item["until"])
    mode = item["mode"] if item["above"] is None else f"above {item['above']}"
    since = moment(item["set_at"])
    name = item["host"] or "-", item["vr"] or "-"
    return (item["kind"], *name, mode, until, item["set_by"], since, item["reason"])


def _brake_rows(brake: Any) -> list[tuple[str, str]]:
    mode, hosts = brake["mode"], ", ".join(brake["braked_hosts"])
    counted = [
        f"{one['host'] or 'the fleet'} since {moment(one['since'])}" for one in brake["counted"]
    ]
    unknown = "nothing" if brake["leading"] else "known to the policer that leads"
    return [
        ("brake", mode if mode == "automatic" else f"{mode} {standing_words(brake)}"),
        ("escalation", "stopped" if brake["braked"] else "goes on"),
        ("stopped on", hosts or "-"),
        ("the count stops", ", ".join(counted) or unknown),
    ]
