"""policer report: how well contracts were kept in a month."""

from typing import Annotated, Any

import typer

from common.output import print_json
from policer.cli.shared.export import copied
from policer.cli.shared.places import PAGE, place
from policer.cli.shared.remote import URL, Json, OfHost, TokenFile, Url, reach
from policer.cli.shared.tables import rate, show
from policer.cli.shared.times import hours
from policer.errors import SettingsError

HEADINGS = (
    "hosts",
    "router",
    ">guarantee",
    ">in force",
    ">no data",
    ">wanted",
    ">delivered",
    ">missing",
    ">in breach",
    ">punished",
    ">times",
)
CSV = "text/csv"


def report(
    month: Annotated[str, typer.Argument(metavar="MONTH", help="Month in UTC, e.g. 2026-11.")],
    host: OfHost = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Show what each contract promised, wanted and delivered in a month, and breaches."""
    if csv and json:
        raise SettingsError("--csv", "--json is given as well", "give one of the two")
    where = place("reports", month)
    with reach(url, token_file) as client:
        if csv:
            copied(client.export(where, CSV, host=host))
            return
        first = client.get(where, limit=PAGE, host=host).body
        items = list(first["items"])
        while first["next"] is not None:
            following = client.get(where, limit=PAGE, host=host, after=first["next"]).body
            items += following["items"]
            first["next"] = following["next"]
    if json:
        print_json({**first, "items": items})
    else:
        show(HEADINGS, map(_row, items))


def _row(item: Any) -> tuple[str, ...]:
    return (
        item["host"] or f"({' '.join(item['hosts']) or 'not seen'})",
        item["vr"],
        rate(item["guarantee_pps"]),
        hours(item["in_force_s"]),
        hours(item["no_data_s"]),
        *(f"{item[f'{what}_packets']:.0f}" for what in ("wanted", "delivered", "missing")),
        hours(item["breach_s"]),
        hours(item["punished_s"]),
        str(item["punishments"]),
    )
