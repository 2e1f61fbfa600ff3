"""policer class: terms that many contracts share."""

from typing import Annotated, Any

import typer

from common.output import print_json
from policer.cli.shared.places import place
from policer.cli.shared.remote import URL, Json, TokenFile, Url, reach
from policer.cli.shared.tables import CLASS_HEADINGS, class_row, show
from policer.cli.shared.terms import takes_terms
from policer.cli.shared.units import merged
from policer.errors import SettingsError

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Terms shared by many contracts."
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the class.")]


@app.command(name="set")
@takes_terms
def change(
    name: Name,
    given: dict[str, Any],
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Create a class, or change the given terms of one and of every contract that names it."""
    where = place("classes", name)
    with reach(url, token_file) as client:
        before = client.find(where)
        if not given:
            raise SettingsError("class set", "no terms are given", "give at least --guarantee")
        if before is None:
            item = client.create(where, given).body
        else:
            item = client.replace(where, merged(before.body["terms"], given), before.etag).body
    _print([item], json=json)


@app.command()
def get(name: Name, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show one class."""
    with reach(url, token_file) as client:
        item = client.get(place("classes", name)).body
    if json:
        print_json(item)
    else:
        _print([item], json=False)


@app.command(name="list")
def every(url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """List the classes."""
    with reach(url, token_file) as client:
        _print(list(client.items(place("classes"))), json=json)


@app.command()
def remove(name: Name, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Remove a class that no contract names."""
    where = place("classes", name)
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
        show(CLASS_HEADINGS, map(class_row, items))
