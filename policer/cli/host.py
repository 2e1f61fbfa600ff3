"""policer host: the machines that the policer controls."""

import http
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import zmq.auth

from common.output import print_json
from common.units import format_rate, parse_rate
from models import load_host
from policer.cli.shared.places import place
from policer.cli.shared.remote import URL, HostName, Json, TokenFile, Url, reach
from policer.cli.shared.tables import (
    HOST_HEADINGS,
    host_row,
    rate,
    refused,
    show,
    shown_state,
    suspended,
)
from policer.errors import Rejected, SettingsError

if TYPE_CHECKING:
    from policer.cli.shared.client import Client

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Hosts of the fleet.")

Requests = Annotated[
    str | None, typer.Option(help="Request address of its daemon, e.g. tcp://10.0.0.7:7077.")
]
Telemetry = Annotated[str | None, typer.Option(help="Telemetry address of its daemon.")]
Key = Annotated[
    Path | None, typer.Option("--key", help="Public .key file of its daemon; needed for TCP.")
]
Capacity = Annotated[
    str | None, typer.Option(help="Total forwarding capacity of its routers, e.g. 200kpps.")
]
Model = Annotated[Path | None, typer.Option(help="Read the capacity from a model file.")]
Overcommit = Annotated[
    bool | None,
    typer.Option("--overcommit/--no-overcommit", help="Let guarantees exceed the capacity."),
]


@app.command()
def add(
    name: HostName,
    requests: Requests = None,
    telemetry: Telemetry = None,
    key: Key = None,
    capacity: Capacity = None,
    model: Model = None,
    overcommit: Overcommit = None,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Add a host."""
    given = entry(requests, telemetry, key, capacity, model, overcommit)
    for option in ("requests", "telemetry"):
        if option not in given:
            raise SettingsError(f"--{option}", "missing", "give what the daemon's [server] says")
    if "capacity_pps" not in given:
        raise SettingsError("--capacity", "missing", "give it, or a --model that was measured")
    with reach(url, token_file) as client:
        _print(_added(client, {"name": name, **given}), json=json)


@app.command(name="set")
def change(
    name: HostName,
    requests: Requests = None,
    telemetry: Telemetry = None,
    key: Key = None,
    capacity: Capacity = None,
    model: Model = None,
    overcommit: Overcommit = None,
    url: Url = URL,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Change the given fields of a host's entry; the rest stays."""
    given = entry(requests, telemetry, key, capacity, model, overcommit)
    if not given:
        raise SettingsError("host set", "nothing is to be changed", "give at least one option")
    with reach(url, token_file) as client:
        before = client.get(place("hosts", name))
        changed = {**before.body["entry"], **given}
        answer = client.replace(place("hosts", name), changed, before.etag).body
    _print(answer, json=json)


@app.command(name="list")
def every(url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """List the hosts."""
    with reach(url, token_file) as client:
        items = list(client.items(place("hosts")))
    if json:
        print_json(items)
    else:
        show(HOST_HEADINGS, map(host_row, items))


@app.command(name="show")
def one(name: HostName, url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show a host's entry."""
    with reach(url, token_file) as client:
        _print(client.get(place("hosts", name)).body, json=json)


@app.command()
def status(
    name: HostName, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """Show the state of a host."""
    with reach(url, token_file) as client:
        item = client.get(place("hosts", name)).body
    if json:
        print_json(item["live"])
    else:
        show(("", ""), _status_rows(item))


@app.command()
def remove(
    name: HostName, url: Url = URL, token_file: TokenFile = None, json: Json = False
) -> None:
    """Remove a host that has no contracts left; its leases expire by themselves."""
    with reach(url, token_file) as client:
        client.remove(place("hosts", name), client.get(place("hosts", name)).etag)
    if json:
        print_json({"removed": name})
    else:
        typer.echo(f"{name}: removed")


def _added(client: "Client", host: dict[str, Any]) -> Any:
    """Add a host; if it exists, tell how to change it."""
    try:
        return client.post(place("hosts"), host).body
    except Rejected as rejected:
        if rejected.status != http.HTTPStatus.CONFLICT:
            raise
        problem = f"host {host['name']} already exists (change it with `policer host set`)"
        raise Rejected(rejected.status, problem) from rejected


def entry(
    requests: str | None,
    telemetry: str | None,
    key: Path | None,
    capacity: str | None,
    model: Path | None,
    overcommit: bool | None,
) -> dict[str, Any]:
    """Return the fields of an entry that were given.

    Raises:
        SettingsError: both capacity and model are given, the model allows no promise, or the key
            file is invalid.
        UnitError: the capacity is not a rate.
        ModelFileError: the model file cannot be used.
    """
    if capacity is not None and model is not None:
        raise SettingsError("--model", "there is --capacity as well", "give one of the two")
    given: dict[str, Any] = {"requests": requests, "telemetry": telemetry, "overcommit": overcommit}
    if key is not None:
        given["server_key"] = public_key(key)
    if capacity is not None:
        given["capacity_pps"] = parse_rate(capacity, field="--capacity")
        given["capacity_source"] = "operator"
    if model is not None:
        given["capacity_pps"] = _promise(model)
        given["capacity_source"] = "model"
    return {name: value for name, value in given.items() if value is not None}


def _promise(file: Path) -> float:
    """Return the capacity that a model's host can promise, packets/s, and print why.

    Raises:
        SettingsError: its speed varies so much that this is nothing.
        ModelFileError: the file cannot be used.
    """
    host = load_host(file)
    if host.promise <= 0:
        problem = f"{file}: the host's speed changes so much that it can be promised for nothing"
        raise SettingsError("--model", problem, "sweep again on a quiet host, or give --capacity")
    top = f"the top of the curve in {file}"
    if host.uncertainty is not None:
        top = f"what it forwards in 97.5 % of all times; {top} is {format_rate(host.curve.top)}"
    typer.echo(f"capacity: {format_rate(host.promise)}, {top}", err=True)
    return host.promise


def public_key(path: Path) -> str:
    """Return the public key of a file as `xtc config keys` writes it.

    Raises:
        SettingsError: it is not a public key.
    """
    try:
        public, _ = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        fix = "give the .key file that `xtc config keys` made on the host"
        raise SettingsError("--key", f"{path} is no public key", fix) from error
    return public.decode()


def _print(item: Any, *, json: bool) -> None:
    if json:
        print_json(item)
        return
    fields = {**item["entry"], "version": item["version"], "changed_by": item["changed_by"]}
    rows = [(name, _shown(name, value)) for name, value in fields.items()]
    show(("", ""), rows)


def _shown(name: str, value: Any) -> str:
    return rate(value) if name.endswith("_pps") else "-" if value is None else str(value)


def _status_rows(item: Any) -> list[tuple[str, str]]:
    live = item["live"]
    heard = live["heard_s_ago"]
    return [
        ("host", item["entry"]["name"]),
        ("state", shown_state(live)),
        ("heard", "never" if heard is None else f"{heard:.1f} s ago"),
        ("capacity", rate(item["entry"]["capacity_pps"])),
        *((name, rate(live[f"{name}_pps"])) for name in ("promised", "forwarded", "offered")),
        *((name, str(live[name])) for name in ("routers", "contracts", "punished", "dropped")),
        ("guarantee missed", ", ".join(live["harmed"]) or "-"),
        ("control", suspended(live) or "the policer's"),
        ("problem", live["distrust"] or live["link_problem"] or refused(live) or "-"),
    ]
