"""policer config: check and show the policer's settings, and make its keys."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import zmq.auth

from common.command import EXIT_USAGE
from common.output import print_json
from common.printable import say
from policer.cli.shared.local import ConfigPath
from policer.cli.shared.remote import Json
from policer.config.accounts import SERVICE, acting_as, service_account
from policer.config.file import load_settings, redacted, shown, sqlite_file, store_url
from policer.config.file_check import file_mistakes, read_mistakes
from policer.config.schema import DEFAULT_PATH, OidcSection
from policer.errors import SettingsError
from policer.extra import oidc_needed

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check and show.")


@app.command()
def check(
    config: ConfigPath = DEFAULT_PATH,
    ask_issuer: Annotated[
        bool, typer.Option("--ask-issuer", help="Also fetch the keys of the issuer in [oidc].")
    ] = False,
    json: Json = False,
) -> None:
    """Check the settings and the files that they name; exit code 2 if there is a mistake.

    Root checks the files as the service's user: the owner of SQLite's directory, or xtc-policer.
    """
    settings = load_settings(config)
    url = store_url(settings.store)
    user = service_account(_folder(url))
    with acting_as(user):
        mistakes = [*read_mistakes(config, user), *file_mistakes(settings, url, user)]
    for mistake in mistakes:
        say(f"policer: {mistake}", err=True)
    if mistakes:
        raise typer.Exit(EXIT_USAGE)
    with acting_as(user):
        keys = _check_issuer(settings.oidc, ask=ask_issuer)
    checked = {"file": str(config), "listen": settings.server.listen, "store": redacted(url)}
    if json:
        about = {"issuer": settings.oidc.issuer, "issuer_keys": keys}
        print_json({**checked, "user": user.name, **about})
    else:
        as_whom = "" if user.uid == os.geteuid() else f"; for {user.name}"
        of_issuer = "" if keys is None else f", {keys} of the issuer's keys"
        where = f"{checked['listen']}, {checked['store']}{of_issuer}{as_whom}"
        typer.echo(f"{config}: no mistake found; {where}")


def _check_issuer(oidc: OidcSection, *, ask: bool) -> int | None:
    """Return how many keys an issuer has; None without an issuer or a request for them.

    Raises:
        SettingsError: its keys are unavailable, or the library for them is not installed.
    """
    if oidc.issuer is None:
        return None
    with oidc_needed():
        from policer.oidc import keys_found  # noqa: PLC0415  part of an extra of its own
    return keys_found(oidc) if ask or oidc.jwks_file is not None else None


def _folder(url: str) -> Path | None:
    file = sqlite_file(url)
    return None if file is None else file.parent


@app.command()
def show(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Show the settings in force, defaults included; passwords are left out."""
    settings = shown(load_settings(config))
    if json:
        print_json(settings)
    else:
        typer.echo(msgspec.json.format(msgspec.json.encode(settings), indent=2).decode())


@app.command()
def keys(
    directory: Annotated[Path, typer.Argument(help="Directory for the two key files.")],
    name: Annotated[str, typer.Argument(help="Base name of the key files.")] = "policer",
    json: Json = False,
) -> None:
    """Make the policer's CURVE key pair, for daemons on TCP; existing keys stay."""
    if "/" in name or name in {"", ".", ".."}:
        raise SettingsError("name", f"{name!r} is no file name", "give a word, such as policer")
    for kind in ("key", "key_secret"):
        if (there := directory / f"{name}.{kind}").exists():
            fix = "give another name: daemons know the old key"
            raise SettingsError("name", f"{there} already exists", fix)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        public, secret = zmq.auth.create_certificates(str(directory), name)
        Path(secret).chmod(0o600)
    except OSError as error:
        problem = f"{directory}: {error.strerror or error}"
        raise SettingsError("directory", problem, "give one that you may write") from error
    if json:
        print_json({"public": str(public), "secret": str(secret)})
        return
    typer.echo(f"public: {public}\nsecret: {secret}")
    if os.geteuid() == 0:
        typer.echo(f"as root; for the service: chown -R {SERVICE}: {directory}", err=True)
