"""Common parts of the commands that work on the store itself, with or without a policer."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policer.actor import Actor
from policer.config.accounts import account_of, service_account
from policer.config.file import load_settings, sqlite_file, store_url
from policer.config.fixes import ENTER, missing_folder, unusable
from policer.config.schema import Settings
from policer.errors import SettingsError

if TYPE_CHECKING:
    from policer.store import Store

ConfigPath = Annotated[
    # `load_settings` reports an unreadable file, with the fix.
    Path,
    typer.Option("--config", "-c", envvar="POLICER_CONFIG", readable=False),
]


def actor() -> Actor:
    """Return the current user, for the audit log."""
    uid = os.getuid()
    where = socket.gethostname()
    return Actor(f"{account_of(uid).name} (command line)", f"uid-{uid}@{where}")


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
        SettingsError: its directory does not exist; or this is root, and another user owns it: a
            file that root creates there would lock its owner out.
    """
    url = store_url(settings.store)
    folder = folder_of(url)
    owner = account_of(0 if folder is None or os.geteuid() != 0 else folder.stat().st_uid)
    if owner.uid != 0:
        fix = f"runuser -u {owner.name} -- policer ..."
        raise SettingsError("store.url", f"{folder} belongs to {owner.name}, and this is root", fix)
    return url


def folder_of(url: str) -> Path | None:
    """Return the directory of SQLite's file; None for other databases.

    Raises:
        SettingsError: it does not exist, or is not accessible.
    """
    file = sqlite_file(url)
    if file is None:
        return None
    user = service_account(file.parent)
    found = missing_folder(file.parent, user) or unusable(file.parent, ENTER, user)
    if found is not None:
        raise SettingsError("store.url", *found)
    return file.parent
