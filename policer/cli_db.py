"""policer db: bring the database up, look after it, copy it."""

import time
from pathlib import Path
from typing import Annotated

import typer

from common.output import print_json
from policer.cli_reach import Json
from policer.cli_store import ConfigPath, opened
from policer.settings import DEFAULT_PATH, retention_of
from policer.settingsfile import load_settings

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The policer's database.")


@app.command()
def upgrade(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Make the database, or bring an older one up to this program's version."""
    with opened(config, upgrade=True) as store:
        _say({"version": store.version}, f"the database is of version {store.version}", json=json)


@app.command()
def downgrade(
    version: Annotated[str, typer.Argument(help="The older program's, such as 0001.")],
    config: ConfigPath = DEFAULT_PATH,
    json: Json = False,
) -> None:
    """Bring the database down for an older program; what that does not know is lost."""
    with opened(config, create=False) as store:
        store.bring_down(version)
    _say({"version": version}, f"the database is of version {version}", json=json)


@app.command()
def check(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """See that the database is there, can be read, and is of this program's version."""
    with opened(config, create=False) as store:
        store.check()
        hosts = len(store.hosts.all())
        contracts = sum(map(len, store.contracts.all().values()))
        version = store.version
    counted = {"version": version, "hosts": hosts, "contracts": contracts}
    _say(counted, f"version {version}: {hosts} hosts, {contracts} contracts", json=json)


@app.command()
def prune(
    keep_days: Annotated[
        float | None, typer.Option(min=0, help="Days to keep; store.keep_days if not given.")
    ] = None,
    config: ConfigPath = DEFAULT_PATH,
    json: Json = False,
) -> None:
    """Remove what is old now: events, changes, ended tokens, history; a policer at work does so."""
    settings = load_settings(config)
    kept = settings.store
    days = kept.keep_days if keep_days is None else keep_days
    with opened(config, create=False) as store:
        removed = store.prune(days, kept.keep_audit_days)
        removed |= store.prune_history(retention_of(settings).oldest(time.time()))
    words = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in removed.items())
    _say(removed, f"removed: {words}", json=json)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="A file that is not there yet.")],
    config: ConfigPath = DEFAULT_PATH,
    json: Json = False,
) -> None:
    """Copy SQLite's database while it is in use; for PostgreSQL, use pg_dump."""
    with opened(config, create=False) as store:
        store.backup(target)
    _say({"backup": str(target)}, f"{target}: written", json=json)


def _say(value: object, words: str, *, json: bool) -> None:
    if json:
        print_json(value)
    else:
        typer.echo(words)
