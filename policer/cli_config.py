"""policer config: check and show what the policer would run with, and make its keys."""

import os
import pwd
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import zmq.auth

from policer.cli_reach import Json
from policer.cli_store import ConfigPath, folder_of
from policer.errors import SettingsError
from policer.extra import oidc_needed
from policer.settings import DEFAULT_PATH, OidcSection, Settings
from policer.settingsfile import load_settings, redacted, secret_text, shown, store_url
from xtc.output import print_json

SERVICE = "xtc-policer"
"""The user of the service, as the packages make it."""
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check and show.")


@app.command()
def check(
    config: ConfigPath = DEFAULT_PATH,
    ask_issuer: Annotated[
        bool, typer.Option("--ask-issuer", help="Also get the keys of [oidc]'s issuer.")
    ] = False,
    json: Json = False,
) -> None:
    """Check the settings and the files that they name; exit code 2 if there is a mistake."""
    settings = load_settings(config)
    url = redacted(store_url(settings.store))
    if settings.link.secret_key_file is not None:
        secret_text("link.secret_key_file", Path(settings.link.secret_key_file))
    for key in ("tls_cert", "tls_key"):
        path = getattr(settings.server, key)
        if path is not None and not Path(path).is_file():
            raise SettingsError(f"server.{key}", f"{path}: no such file", "name another")
    _check_owners(settings)
    keys = _check_issuer(settings.oidc, ask=ask_issuer)
    if json:
        about = {"issuer": settings.oidc.issuer, "issuer_keys": keys}
        print_json({"file": str(config), "listen": settings.server.listen, "store": url} | about)
    else:
        said = "" if keys is None else f", {keys} of the issuer's keys"
        typer.echo(f"{config}: no mistake found; {settings.server.listen}, {url}{said}")


def _check_issuer(oidc: OidcSection, *, ask: bool) -> int | None:
    """Return how many keys an issuer has; None where there is none, or it is not to be asked.

    Raises:
        SettingsError: its keys cannot be had, or the library for them is not installed.
    """
    if oidc.issuer is None:
        return None
    with oidc_needed():
        from policer.oidc import keys_found  # noqa: PLC0415  part of an extra of its own
    return keys_found(oidc) if ask or oidc.jwks_file is not None else None


def _check_owners(settings: Settings) -> None:
    """See that the service's user can read the secrets where root asks for it.

    Raises:
        SettingsError: it cannot; names the command that fixes that.
    """
    folder = folder_of(store_url(settings.store))
    if os.geteuid() != 0 or folder is None:
        return
    owner = folder.stat()
    for where, path in (
        ("link.secret_key_file", settings.link.secret_key_file),
        ("server.tls_key", settings.server.tls_key),
    ):
        if path is not None and owner.st_uid not in {0, Path(path).stat().st_uid}:
            name = pwd.getpwuid(owner.st_uid).pw_name
            problem = f"{path} is not {name}'s, who owns {folder} and so runs the service"
            raise SettingsError(where, problem, f"chown {name}: {path}")


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
    directory: Annotated[Path, typer.Argument(help="Where the two key files go.")],
    name: Annotated[str, typer.Argument(help="Whose they are.")] = "policer",
    json: Json = False,
) -> None:
    """Make the policer's CURVE key pair, for daemons on TCP; keys that are there already stay."""
    if "/" in name or name in {"", ".", ".."}:
        raise SettingsError("name", f"{name!r} is no file name", "give a word, such as policer")
    for kind in ("key", "key_secret"):
        if (there := directory / f"{name}.{kind}").exists():
            fix = "give another name: daemons know the old key"
            raise SettingsError("name", f"{there} is there already", fix)
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
