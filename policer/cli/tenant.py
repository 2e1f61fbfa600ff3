"""policer tenant: the parties for which routers are run."""

from typing import Annotated, Any

import typer

from common.output import print_json
from policer.cli.shared.places import place
from policer.cli.shared.remote import URL, Json, TokenFile, Url, reach
from policer.cli.shared.tables import moment, show
from policer.errors import SettingsError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Tenants that own routers.")
HEADINGS = ("tenant", "description", ">version", "changed", "by")

Name = Annotated[str, typer.Argument(metavar="TENANT", help="Name of the tenant.")]


@app.command(name="set")
def change(
    name: Name,
    description: Annotated[str | None, typer.Option(help="Description in one line.")] = None,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Create a tenant, or change its description."""
    where, body = place("tenants", name), {"description": description or ""}
    with reach(url, token_file) as client:
        before = client.find(where)
        if before is None:
            item = client.create(where, body).body
        elif description is None:
            fix = "give --description"
            raise SettingsError("tenant set", "nothing is to be changed", fix)
        else:
            item = client.replace(where, body, before.etag).body
    _print([item], json=json)


@app.command(name="list")
def every(url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """List the tenants."""
    with reach(url, token_file) as client:
        _print(list(client.items(place("tenants"))), json=json)


@app.command(name="show")
def one(name: Name, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show one tenant."""
    with reach(url, token_file) as client:
        item = client.get(place("tenants", name)).body
    if json:
        print_json(item)
    else:
        _print([item], json=False)


@app.command()
def remove(name: Name, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Remove a tenant that no contract names."""
    where = place("tenants", name)
    with reach(url, token_file) as client:
        client.remove(where, client.get(where).etag)
    if json:
        print_json({"removed": name})
    else:
        typer.echo(f"{name}: removed")


def _print(items: list[Any], *, json: bool) -> None:
    if json:
        print_json(items)
    else:
        show(HEADINGS, map(_row, items))


def _row(item: Any) -> tuple[str, ...]:
    return (
        item["name"],
        item["entry"]["description"],
        str(item["version"]),
        moment(item["changed_at"]),
        item["changed_by"],
    )
