"""What the commands have in common that work on the store itself, with or without a policer."""

import os
import pwd
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policer.actor import Actor
from policer.errors import SettingsError
from policer.settings import Settings
from policer.settingsfile import load_settings, store_url

if TYPE_CHECKING:
    from policer.store import Store

ConfigPath = Annotated[Path, typer.Option("--config", "-c", envvar="POLICER_CONFIG")]


def actor() -> Actor:
    """Return who is at work, for the audit log."""
    uid = os.getuid()
    where = socket.gethostname()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Actor(f"{name} (command line)", f"uid-{uid}@{where}")


@contextmanager
def opened(config: Path, *, create: bool = True, upgrade: bool = False) -> Iterator["Store"]:
    """Open the store that the settings name.

    Raises:
        SettingsError: the settings cannot be used, or root would make files in another's store.
        StoreError: the store cannot be used.
    """
    from policer.store import open_store  # noqa: PLC0415  the database takes 0.5 s to load

    store = open_store(url_of(load_settings(config)), create=create, upgrade=upgrade)
    try:
        yield store
    finally:
        store.close()


def url_of(settings: Settings) -> str:
    """Return the store's URL, for a user who may work on it.

    Raises:
        SettingsError: its directory is not there; or this is root, and it is another user's: a
            file that root makes there would lock its owner out.
    """
    url = store_url(settings.store)
    folder = folder_of(url)
    owner = 0 if folder is None or os.geteuid() != 0 else folder.stat().st_uid
    if owner != 0:
        name = pwd.getpwuid(owner).pw_name
        fix = f"runuser -u {name} -- policer ..."
        raise SettingsError("store.url", f"{folder} belongs to {name}, and this is root", fix)
    return url


def folder_of(url: str) -> Path | None:
    """Return the directory of SQLite's file; None for other databases.

    Raises:
        SettingsError: it is not there.
    """
    scheme, _, path = url.partition("://")
    if scheme.partition("+")[0] != "sqlite":
        return None
    folder = Path(path.removeprefix("/")).parent
    if not folder.is_dir():
        fix = f"make it (install -d -m 700 {folder}), or set store.url to another place"
        raise SettingsError("store.url", f"{folder}: no such directory", fix)
    return folder
