"""policer db: create, upgrade, check and copy the database."""

import time
from pathlib import Path
from typing import Annotated

import typer

from common.output import print_json
from policer.cli.shared.local import ConfigPath, opened
from policer.cli.shared.remote import Json
from policer.config.file import load_settings
from policer.config.schema import DEFAULT_PATH, retention_of

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The policer's database.")


@app.command()
def upgrade(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Create the database, or upgrade an older one to this program's version."""
    with opened(config, upgrade=True) as store:
        _say({"version": store.version}, f"the database is of version {store.version}", json=json)


@app.command()
def downgrade(
    version: Annotated[str, typer.Argument(help="Version of the older program, e.g. 0001.")],
    config: ConfigPath = DEFAULT_PATH,
    json: Json = False,
) -> None:
    """Downgrade the database for an older program; data that it does not support is lost."""
    with opened(config, create=False) as store:
        store.bring_down(version)
    _say({"version": version}, f"the database is of version {version}", json=json)


@app.command()
def check(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Check that the database exists, can be read, and is of this program's version."""
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
        float | None, typer.Option(min=0, help="Days to keep (default: store.keep_days).")
    ] = None,
    config: ConfigPath = DEFAULT_PATH,
    json: Json = False,
) -> None:
    """Remove old events, changes, tokens and history now; a running policer does so itself."""
    settings = load_settings(config)
    kept = settings.store
    days = kept.keep_days if keep_days is None else keep_days
    with opened(config, create=False) as store:
        oldest = retention_of(settings).oldest(time.time())
        removed = store.prune(days, kept.keep_audit_days, oldest.day)
        removed |= store.prune_history(oldest)
    words = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in removed.items())
    _say(removed, f"removed: {words}", json=json)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="Path of a new file.")],
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
