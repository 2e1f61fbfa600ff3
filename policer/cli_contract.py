"""policer contract: what each router was promised."""

import math
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from policer.cli_reach import URL, HostName, Json, OfHost, TokenFile, Url, Vr, items_of, reach
from policer.cli_tables import CONTRACT_HEADINGS, contract_row, moment, rate, show, terms
from policer.contract import Punish
from policer.errors import SettingsError
from policer.ladder import Step
from policer.places import place
from xtc.command import EXIT_FAILED
from xtc.output import print_json
from xtc.units import parse_rate

if TYPE_CHECKING:
    from policer.client import Client

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What routers were promised.")

SOME = 10
"""Names that are listed at most."""
NONE = "none"
"""What takes a term away again."""

Guarantee = Annotated[
    str | None, typer.Option(help="Throughput that it gets whenever it wants it, such as 20kpps.")
]
Ceiling = Annotated[
    str | None, typer.Option(help="Throughput that it never gets more than; `none` lifts it.")
]
Weight = Annotated[float | None, typer.Option(help="Its part of what is left, beside others'.")]
Burst = Annotated[
    str | None,
    typer.Option(
        help="Packets that its setpoint allows beyond its rate over any window; "
        "`none` is 0.2 s of the setpoint."
    ),
]
SavedBurst = Annotated[
    float | None,
    typer.Option(help="Packets that it may save below its ceiling and forward above it."),
]
Measures = Annotated[
    str | None,
    typer.Option(
        help=f"What may be done when it misbehaves, mildest first, of {','.join(Step)}; or `none`."
    ),
]
DryRun = Annotated[
    bool | None, typer.Option("--dry-run/--no-dry-run", help="Only report misbehaviour.")
]
PunishWhen = Annotated[
    str | None,
    typer.Option(
        "--punish",
        help="When it may be punished: never, when_harming (its host is contended), or always.",
    ),
]
Cost = Annotated[
    float | None, typer.Option(help="What one of its packets takes, an ordinary one taking 1.")
]

Tenant = Annotated[
    str | None,
    typer.Option(help="Whose router it is, for tokens limited to tenants; `none`: nobody's."),
]


@app.command(name="set")
def change(
    host: HostName,
    vr: Vr,
    guarantee: Guarantee = None,
    ceiling: Ceiling = None,
    weight: Weight = None,
    burst: Burst = None,
    saved_burst: SavedBurst = None,
    measures: Measures = None,
    dry_run: DryRun = None,
    punish: PunishWhen = None,
    cost: Cost = None,
    tenant: Tenant = None,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Make a contract, or change what is given of one; the rest stays."""
    given = contract(
        guarantee, ceiling, weight, saved_burst, measures, dry_run, punish, cost, burst, tenant
    )
    where = place("hosts", host, "contracts", vr)
    with reach(url, token_file) as client:
        before, unheard = client.find(where), ""
        if before is None:
            unheard = _unheard(client, host, vr)
            item = client.create(where, _new(given)).body
        elif not given:
            fix = "give at least one option"
            raise SettingsError("contract set", "nothing is to be changed", fix)
        else:
            item = client.replace(where, {**before.body["contract"], **given}, before.etag).body
    _print([item], json=json)
    if unheard:
        typer.echo(f"policer: {unheard}", err=True)


@app.command()
def check(
    host: HostName,
    vr: Vr,
    guarantee: Guarantee = None,
    ceiling: Ceiling = None,
    weight: Weight = None,
    burst: Burst = None,
    saved_burst: SavedBurst = None,
    measures: Measures = None,
    dry_run: DryRun = None,
    punish: PunishWhen = None,
    cost: Cost = None,
    tenant: Tenant = None,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Say what would be wrong with a contract, and change nothing; exit code 1 if anything is."""
    given = contract(
        guarantee, ceiling, weight, saved_burst, measures, dry_run, punish, cost, burst, tenant
    )
    with reach(url, token_file) as client:
        before = client.find(place("hosts", host, "contracts", vr))
        asked = _new(given) if before is None else {**before.body["contract"], **given}
        body = {"host": host, "vr": vr, "contract": asked}
        verdict = client.post(place("contracts", "check"), body).body
    if json:
        print_json(verdict)
    else:
        for wrong in verdict["errors"]:
            typer.echo(f"{wrong['field']}: {wrong['problem']} ({wrong['fix']})")
        promised, capacity = rate(verdict["promised_pps"]), rate(verdict["capacity_pps"])
        typer.echo(f"{host}: {promised} of {capacity} would be promised")
    if not verdict["admissible"]:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def get(
    host: HostName, vr: Vr, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """Show one contract."""
    with reach(url, token_file) as client:
        item = client.get(place("hosts", host, "contracts", vr)).body
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
def remove(
    host: HostName, vr: Vr, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """Remove a contract; its history stays."""
    where = place("hosts", host, "contracts", vr)
    with reach(url, token_file) as client:
        client.remove(where, client.get(where).etag)
    if json:
        print_json({"removed": [host, vr]})
    else:
        typer.echo(f"{host} {vr}: removed")


@app.command()
def history(
    host: HostName, vr: Vr, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """Show every version of a contract, the latest first."""
    with reach(url, token_file) as client:
        items = client.get(place("hosts", host, "contracts", vr, "history")).body["items"]
    if json:
        print_json(items)
        return
    headings = (
        ">version",
        "at",
        "by",
        ">guarantee",
        ">ceiling",
        ">weight",
        ">saved burst",
        "measures",
        "punish",
        ">cost",
        ">burst",
        "tenant",
    )
    show(headings, (_revision(item) for item in items))


def contract(
    guarantee: str | None,
    ceiling: str | None,
    weight: float | None,
    saved_burst: float | None,
    measures: str | None,
    dry_run: bool | None,
    punish: str | None,
    cost: float | None,
    burst: str | None,
    tenant: str | None = None,
) -> dict[str, Any]:
    """Return the terms that were given.

    Raises:
        UnitError: a rate is none.
        SettingsError: there is no such measure or time to punish, or a burst is no number.
    """
    if punish is not None and punish not in get_args(Punish):
        fix = f"give one of {', '.join(get_args(Punish))}"
        raise SettingsError("--punish", f"{punish!r} is none", fix)
    given: dict[str, Any] = {
        "weight": weight,
        "burst_packets": saved_burst,
        "dry_run": dry_run,
        "punish": punish,
        "cost": cost,
        "measures": None if measures is None else steps(measures),
    }
    if guarantee is not None:
        nothing = guarantee.strip() in {"0", NONE}
        given["guarantee_pps"] = 0.0 if nothing else parse_rate(guarantee, field="--guarantee")
    kept = {name: value for name, value in given.items() if value is not None}
    if ceiling is not None:
        lifted = ceiling.strip() == NONE
        kept["ceiling_pps"] = None if lifted else parse_rate(ceiling, field="--ceiling")
    if burst is not None:
        kept["burst"] = None if burst.strip() == NONE else packets(burst)
    if tenant is not None:
        kept["tenant"] = None if tenant.strip() == NONE else tenant.strip()
    return kept


def packets(text: str) -> float:
    """Return a number of packets.

    Raises:
        SettingsError: it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        fix = f"write digits, such as 4000, or {NONE}"
        raise SettingsError("--burst", f"{text!r} is no number of packets", fix)
    return number


def steps(text: str) -> list[str]:
    """Return the measures of a list with commas.

    Raises:
        SettingsError: there is no such measure.
    """
    names = [name.strip() for name in text.split(",")] if text.strip() != NONE else []
    for name in names:
        if name not in list(Step):
            fix = f"write some of {','.join(Step)}, or {NONE}"
            raise SettingsError("--measures", f"there is no measure {name!r}", fix)
    return names


def _new(given: dict[str, Any]) -> dict[str, Any]:
    if "guarantee_pps" not in given:
        fix = "a new contract needs one; 0 promises nothing"
        raise SettingsError("--guarantee", "missing", fix)
    return given


def _unheard(client: "Client", host: str, vr: str) -> str:
    """Say that a host has other routers than this one, whose name may be a slip; "" where not."""
    found = client.find(place("hosts", host))
    if found is None:  # nor is it for a token that is limited to routers
        return ""
    live = found.body["live"]
    if live["distrust"]:
        return f"{host} is not believed, so that its routers are not known: {live['distrust']}"
    if not live["reachable"]:
        return ""
    there = [item["vr"] for item in client.items(place("hosts", host, "routers")) if item["report"]]
    if vr in there:
        return ""
    some = ", ".join(there[:SOME]) + (", ..." if len(there) > SOME else "")
    return f"{host} reports no router {vr} so far; it has {some or 'none'}"


def _revision(item: Any) -> tuple[str, ...]:
    head = (str(item["version"]), moment(item["at"]), item["by"])
    if item["contract"] is None:
        return (*head, "removed", *[""] * 8)
    return (*head, *terms(item["contract"]))


def _print(items: list[Any], *, json: bool) -> None:
    if json:
        print_json(items)
    else:
        show(CONTRACT_HEADINGS, map(contract_row, items))
