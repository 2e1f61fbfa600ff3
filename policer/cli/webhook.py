"""policer webhook: endpoints that events are sent to; takes a token of scope admin."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from common.output import print_json
from policer.cli.shared.places import place
from policer.cli.shared.remote import URL, Json, TokenFile, Url, reach
from policer.cli.shared.tables import moment, show
from policer.config.file import secret_text
from policer.errors import Rejected, SettingsError
from policer.event_kinds import KINDS

if TYPE_CHECKING:
    from policer.cli.shared.client import Client

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Endpoints that receive events."
)

HEADINGS = ("name", "id", "kinds", ">waiting", ">dead", "last tried", "problem", "url")
DEAD_HEADINGS = (">id", "kind", "message", ">attempts", "last tried", "problem")
EVERY = "*"
Name = Annotated[str, typer.Argument(metavar="NAME", help="The webhook's name, or its id.")]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", help="A kind of event; repeatable (default: all kinds)."),
]


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the webhook.")],
    endpoint: Annotated[
        str, typer.Argument(metavar="URL", help="HTTPS address that receives messages.")
    ],
    kind: Kinds = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the secret, whsec_..., for its owner alone; else one is made"
        ),
    ] = None,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Create a webhook. Prints its secret to standard output, once; the rest to standard error."""
    body: dict[str, Any] = {"name": name, "url": endpoint, "kinds": kind or [EVERY]}
    if secret_file is not None:
        body["secret"] = secret_text("--secret-file", secret_file).strip()
    with reach(url, token_file) as client:
        made = client.post(place("webhooks"), body).body
    if json:
        print_json(made)
        return
    row = made["webhook"]
    typer.echo(f"webhook {row['name']} ({row['id']}): its secret cannot be read again", err=True)
    typer.echo(made["secret"])


@app.command(name="list")
def every(url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """List the webhooks and their state; no secrets."""
    with reach(url, token_file) as client:
        items = list(client.items(place("webhooks")))
    if json:
        print_json(items)
    else:
        show(HEADINGS, map(_row, items))


@app.command()
def kinds(json: Json = False) -> None:
    """List the kinds of events; needs no policer."""
    if json:
        print_json(KINDS)
    else:
        show(("kind", "meaning"), KINDS.items())


@app.command()
def remove(name: Name, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Stop sending to a webhook, and drop what waits for it."""
    with reach(url, token_file) as client:
        row = found(client, name)
        client.delete(place("webhooks", row["id"]))
    if json:
        print_json({"removed": row["name"]})
    else:
        typer.echo(f"webhook {row['name']}: removed")


@app.command(name="test")
def probe(name: Name, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Send one test message about no event; fails if it is not accepted."""
    with reach(url, token_file) as client:
        row = found(client, name)
        answer = client.post(place("webhooks", row["id"], "test")).body
    if json:
        print_json(answer)
    elif answer["delivered"]:
        typer.echo(f"webhook {row['name']}: taken, with {answer['status']}")
    if not answer["delivered"]:
        raise Rejected(answer["status"] or 0, f"webhook {row['name']}: {answer['problem']}")


@app.command()
def dead(name: Name, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """List undelivered messages that are no longer retried automatically, the latest first."""
    with reach(url, token_file) as client:
        row = found(client, name)
        items = list(client.items(place("webhooks", row["id"], "dead")))
    if json:
        print_json(items)
    else:
        show(DEAD_HEADINGS, map(_dead_row, items))


@app.command()
def redeliver(
    name: Name,
    letters: Annotated[
        list[int] | None, typer.Argument(metavar="[ID]...", help="As `dead` shows them.")
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="All dead messages.")] = False,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Send dead messages again: the named ones, or all."""
    if bool(letters) is whole:
        raise SettingsError("ID", "name messages, or give --all", "`policer webhook dead` has ids")
    with reach(url, token_file) as client:
        row = found(client, name)
        body = {"ids": letters} if letters else {}
        answer = client.post(place("webhooks", row["id"], "redeliver"), body).body
    if json:
        print_json(answer)
    else:
        left = f", {answer['left']} are left" if answer["left"] else ""
        typer.echo(f"webhook {row['name']}: {answer['redelivered']} are sent again{left}")


def found(client: "Client", name: str) -> Any:
    """Return a webhook by its name or id.

    Raises:
        Rejected: it does not exist.
    """
    for row in client.items(place("webhooks")):
        if name in {row["name"], row["id"]}:
            return row
    raise Rejected(404, f"no webhook {name} (`policer webhook list` lists them)")


def _row(row: Any) -> tuple[str, ...]:
    return (
        row["name"],
        row["id"],
        ", ".join(row["kinds"]),
        str(row["waiting"]),
        str(row["dead"]),
        "-" if row["tried_at"] is None else moment(row["tried_at"]),
        row["problem"] or "-",
        row["url"],
    )


def _dead_row(row: Any) -> tuple[str, ...]:
    return (
        str(row["id"]),
        row["kind"],
        row["message"],
        str(row["attempts"]),
        moment(row["tried_at"]),
        row["problem"],
    )
