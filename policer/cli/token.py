"""policer token: tokens of the service; works on the store, so that the first one can be made."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from common.output import print_json
from policer.cli.shared.local import ConfigPath, actor, opened
from policer.cli.shared.remote import Json
from policer.cli.shared.tables import show
from policer.config.schema import DEFAULT_PATH
from policer.contracts.reach import MOST, Reach, in_words
from policer.errors import SettingsError

if TYPE_CHECKING:
    from policer.store import TokenRow

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="API tokens.")

LONGEST_DAYS = 3660
_FORMS = {
    "host": "a host's name, with * and ? for other characters",
    "router": "HOST/VR, with * and ? for other characters but /",
    "tenant": "a tenant's name: letters, digits and . _ -",
}
_UNITS = {"h": 3600, "d": 86400, "w": 7 * 86400}
_TIME = re.compile(r"^([0-9]{1,5})([hdw])$")
HEADINGS = ("id", "name", "scope", "reach", "made", "by", "expires", "state")
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", help="Limit it to this host, or to a pattern with * and ?; repeatable."),
]
Routers = Annotated[
    list[str] | None,
    typer.Option("--router", help="Limit it to HOST/VR, each a name or a pattern; repeatable."),
]
Tenants = Annotated[
    list[str] | None,
    typer.Option("--tenant", help="Limit it to the routers of this tenant; repeatable."),
]


class Scope(StrEnum):
    """What a token may do; each includes those before it."""

    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


@app.command()
def add(
    name: Annotated[
        str, typer.Argument(help="Name of the token's user or program; shown in the audit log.")
    ],
    scope: Annotated[Scope, typer.Option(help="Access level; each includes the previous ones.")],
    expires: Annotated[str | None, typer.Option(help="Time to expiry, e.g. 90d.")] = None,
    host: Hosts = None,
    router: Routers = None,
    tenant: Tenants = None,
    config: ConfigPath = DEFAULT_PATH,
    json: Json = False,
) -> None:
    """Create a token. Prints its secret to standard output, once; the rest to standard error."""
    until = None if expires is None else datetime.now(UTC) + lifetime(expires)
    reach = reach_of(host or (), router or (), tenant or ())
    with opened(config) as store:
        row, secret = store.tokens.add(name, [scope.value], until, actor(), reach)
    if json:
        print_json({"token": row, "secret": secret})
        return
    limits = f", limited to {in_words(reach)}" if reach.limited else ""
    typer.echo(
        f"token {row.id} of {row.name} ({scope}{limits}): it cannot be shown again", err=True
    )
    typer.echo(secret)


@app.command(name="list")
def every(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """List the tokens, including revoked and expired ones; no secrets."""
    with opened(config, create=False) as store:
        rows = store.tokens.all()
    if json:
        print_json(rows)
    else:
        now = datetime.now(UTC)
        show(HEADINGS, (_row(row, now) for row in rows))


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(help="Token id, as in `policer token list`.")],
    config: ConfigPath = DEFAULT_PATH,
    json: Json = False,
) -> None:
    """Revoke a token permanently; running policers refuse it within five seconds."""
    with opened(config, create=False) as store:
        row = store.tokens.revoke(token, actor())
    if json:
        print_json(row)
    else:
        typer.echo(f"token {row.id} of {row.name}: revoked")


def lifetime(text: str) -> timedelta:
    """Read a time such as ``12h``, ``90d`` or ``52w``.

    Raises:
        SettingsError: it is not a duration, or longer than ten years.
    """
    match = _TIME.match(text.strip())
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < seconds <= LONGEST_DAYS * 86400:
        fix = f"write hours, days or weeks, such as 90d, at most {LONGEST_DAYS}d"
        raise SettingsError("--expires", f"{text!r} is no such time", fix)
    return timedelta(seconds=seconds)


def reach_of(hosts: Sequence[str], routers: Sequence[str], tenants: Sequence[str]) -> Reach:
    """Return the given limits.

    Raises:
        SettingsError: one is invalid; names the option.
    """
    for option, texts in (("host", hosts), ("router", routers), ("tenant", tenants)):
        for given in ([one] for one in texts):
            try:
                msgspec.convert({f"{option}s": given}, Reach)
            except msgspec.ValidationError:
                fix = f"write {_FORMS[option]}"
                raise SettingsError(f"--{option}", f"{given[0]!r} is none", fix) from None
        if len(texts) > MOST:
            raise SettingsError(f"--{option}", f"more than {MOST}", "use a pattern, or two tokens")
    return Reach(tuple(hosts), tuple(routers), tuple(tenants))


def _row(row: "TokenRow", now: datetime) -> tuple[str, ...]:
    expired = row.expires_at is not None and row.expires_at <= now
    state = "revoked" if row.revoked_at else "expired" if expired else "in force"
    return (
        row.id,
        row.name,
        row.scopes[-1],
        in_words(row.reach),
        f"{row.created_at:%Y-%m-%d}",
        row.created_by,
        f"{row.expires_at:%Y-%m-%d}" if row.expires_at else "never",
        state,
    )
