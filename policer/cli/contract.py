"""policer contract: contracts of the routers."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from common.command import EXIT_FAILED
from common.output import print_json
from policer.cli.shared.places import place
from policer.cli.shared.remote import URL, Json, OfHost, TokenFile, Url, items_of, reach
from policer.cli.shared.tables import (
    CONTRACT_HEADINGS,
    TERMS_HEADINGS,
    contract_row,
    moment,
    rate,
    show,
    terms,
)
from policer.cli.shared.terms import takes_contract
from policer.cli.shared.units import merged
from policer.contracts.contract import TERMS
from policer.errors import SettingsError

if TYPE_CHECKING:
    from policer.cli.shared.client import Client

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Promises to routers.")

SOME = 10
"""Limit of the names listed."""
Whose = Annotated[
    list[str],
    typer.Argument(
        metavar="[HOST] VR",
        help="A router on a host; or alone, a router's UUID or fleet-wide name that the contract "
        "follows from host to host.",
        show_default=False,
    ),
]


class Router(NamedTuple):
    """Router of a contract."""

    host: str | None
    """None if the contract follows the router."""
    vr: str

    @property
    def place(self) -> str:
        """Path of its contract."""
        if self.host is None:
            return place("routers", self.vr, "contract")
        return place("hosts", self.host, "contracts", self.vr)


def router_of(whose: list[str]) -> Router:
    """Return the router of a contract; raises SettingsError for more than two names."""
    if len(whose) > 2:
        fix = "give HOST and VR, or VR alone for a contract that follows its router"
        raise SettingsError("[HOST] VR", f"{len(whose)} names", fix)
    return Router(whose[0] if len(whose) == 2 else None, whose[-1])


@app.command(name="set")
@takes_contract
def change(
    whose: Whose,
    given: dict[str, Any],
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Create a contract, or change the given fields of one; the rest stays."""
    router = router_of(whose)
    with reach(url, token_file) as client:
        before, unheard = client.find(router.place), ""
        if before is None:
            unheard = _unheard(client, router)
            item = client.create(router.place, _new(given)).body
        elif not given:
            fix = "give at least one option"
            raise SettingsError("contract set", "nothing is to be changed", fix)
        else:
            changed = _changed(before.body["contract"], given)
            item = client.replace(router.place, changed, before.etag).body
    _print([item], json=json)
    if unheard:
        typer.echo(f"policer: {unheard}", err=True)


@app.command()
@takes_contract
def check(
    whose: Whose,
    given: dict[str, Any],
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Show the problems of a contract, and change nothing; exit code 1 if there are any."""
    router = router_of(whose)
    with reach(url, token_file) as client:
        before = client.find(router.place)
        asked = _new(given) if before is None else _changed(before.body["contract"], given)
        body = {**router._asdict(), "contract": asked}
        checked = client.post(place("contracts", "check"), body).body
    if json:
        print_json(checked)
    else:
        _show_check(checked, router)
    if not checked["admissible"]:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def get(whose: Whose, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show one contract."""
    with reach(url, token_file) as client:
        item = client.get(router_of(whose).place).body
    if json:
        print_json(item)
    else:
        _print([item], json=False)


@app.command(name="list")
def every(
    host: OfHost = None, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """List contracts."""
    with reach(url, token_file) as client:
        _print(items_of(client, "contracts", host), json=json)


@app.command()
def remove(whose: Whose, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Remove a contract; its history stays."""
    router = router_of(whose)
    with reach(url, token_file) as client:
        client.remove(router.place, client.get(router.place).etag)
    if json:
        print_json({"removed": list(router)})
    else:
        typer.echo(f"{' '.join(whose)}: removed")


@app.command()
def history(whose: Whose, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show every version of a contract, the latest first."""
    with reach(url, token_file) as client:
        items = list(client.items(f"{router_of(whose).place}/history"))
    if json:
        print_json(items)
        return
    show((">version", "at", "by", *TERMS_HEADINGS), (_revision(item) for item in items))


def _new(given: dict[str, Any]) -> dict[str, Any]:
    if not given.keys() & {"guarantee_pps", "guarantee_bps", "class", "hours"}:
        fix = "a new contract needs one, or a --class; 0 promises nothing"
        raise SettingsError("--guarantee", "missing", fix)
    return given


def _changed(before: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return a contract with the given changes; one that gets a class has no terms of its own."""
    if given.get("class") is not None:
        before = {name: value for name, value in before.items() if name not in TERMS}
    return merged(before, given)


def _unheard(client: "Client", router: Router) -> str:
    """Warn that a router is not seen (its name may be mistyped); "" if it is or may be."""
    if router.host is None:
        return _unheard_of_all(client, router.vr)
    host, vr = router.host, router.vr
    found = client.find(place("hosts", host))
    if found is None:  # nor is it visible to a token that is limited to routers
        return ""
    live = found.body["live"]
    if live["distrust"]:
        return f"{host} is not trusted, so its routers are unknown: {live['distrust']}"
    if not live["reachable"]:
        return ""
    there = [item["vr"] for item in client.items(place("hosts", host, "routers")) if item["report"]]
    if vr in there:
        return ""
    some = ", ".join(there[:SOME]) + (", ..." if len(there) > SOME else "")
    return f"{host} reports no router {vr} so far; it has {some or 'none'}"


def _unheard_of_all(client: "Client", router: str) -> str:
    """Return on how many hosts a router is, if not on one."""
    reports = [item for item in client.items(place("routers")) if item["report"]]
    hosts = [one["host"] for one in reports if router in {one["vr"], one["report"]["uuid"]}]
    if len(hosts) == 1:
        return ""
    if not hosts:
        return f"no host reports a router {router} so far"
    return f"{', '.join(hosts[:SOME])} have a router {router} each: name one host, or give its UUID"


def _show_check(checked: Any, router: Router) -> None:
    for wrong in checked["errors"]:
        typer.echo(f"{wrong['field']}: {wrong['problem']} ({wrong['fix']})")
    promised, capacity = rate(checked["promised_pps"]), rate(checked["capacity_pps"])
    if checked["host"] is None:
        typer.echo(f"{router.vr} was not seen on any host, so no capacity was checked")
    else:
        typer.echo(f"{checked['host']}: {promised} of {capacity} would be promised")


def _revision(item: Any) -> tuple[str, ...]:
    head = (str(item["version"]), moment(item["at"]), item["by"])
    if item["contract"] is None:
        return (*head, "removed", *[""] * (len(TERMS_HEADINGS) - 1))
    return (*head, *terms(item["contract"]))


def _print(items: list[Any], *, json: bool) -> None:
    if json:
        print_json(items)
    else:
        show(CONTRACT_HEADINGS, map(contract_row, items))
