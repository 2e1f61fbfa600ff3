"""What keeps the service from the files that its settings name, and the command that fixes each."""

import stat
from collections.abc import Iterator
from pathlib import Path

from policer.config.accounts import Account
from policer.config.file import sqlite_file
from policer.config.fixes import (
    ENTER,
    OTHERS,
    OTHERS_WRITE,
    READ,
    READABLE,
    WRITABLE,
    WRITE,
    Finding,
    exposed,
    missing_folder,
    not_entered,
    own_folder,
    unusable,
)
from policer.config.schema import Settings
from policer.errors import SettingsError
from policer.link import load_keys

BESIDE = ("-wal", "-shm", "-journal", ".lock")
"""What SQLite and the leader's lock add to the name of the database."""
CERTIFICATE = "put the PEM file there, or name another"


def file_mistakes(settings: Settings, url: str, user: Account) -> Iterator[SettingsError]:
    """Yield what is wrong with the files of database, keys and certificate.

    This process must have the rights of the service's user (`policer.config.accounts.acting_as`).

    Args:
        settings: as they were read.
        url: of the database.
        user: the service's.
    """
    database = sqlite_file(url)
    if database is not None:
        for found in _of_database(database, user):
            yield SettingsError("store.url", *found)
    url_file, keys = settings.store.url_file, settings.link.secret_key_file
    if url_file is not None:
        for found in of_file(Path(url_file), user, "write the URL into it", secret=True):
            yield SettingsError("store.url_file", *found)
    server = settings.server
    if keys is not None:
        yield from _of_keys(Path(keys), user)
    if server.tls_cert is not None:
        for found in of_file(Path(server.tls_cert), user, CERTIFICATE):
            yield SettingsError("server.tls_cert", *found)
    if server.tls_key is not None:
        for found in of_file(Path(server.tls_key), user, CERTIFICATE, secret=True):
            yield SettingsError("server.tls_key", *found)


def read_mistakes(config: Path, user: Account) -> Iterator[SettingsError]:
    """Yield why the service's user cannot read the settings, as far as root could."""
    found = unusable(config, READ, user, own=False)
    if found is not None:
        yield SettingsError("--config", *found)


def of_file(path: Path, user: Account, made_by: str, *, secret: bool = False) -> Iterator[Finding]:
    """Yield why a user cannot read a file, and whether others can who should not.

    Args:
        path: the file.
        user: whose rights this process has now.
        made_by: what to do where there is none.
        secret: whether others must not read it.
    """
    shut = not_entered(path, user)
    if shut is not None:
        yield shut
    elif path.is_dir():
        yield f"{path} is a directory", "name the file in it"
    elif not path.exists():
        yield f"{path}: no such file", made_by
    else:
        yield from _usable_alone(path, READ, user, secret=secret)
        yield from _replaceable(path.parent)


def _usable_alone(path: Path, wanted: int, user: Account, *, secret: bool) -> Iterator[Finding]:
    for found in (
        unusable(path, wanted, user, own=secret),
        exposed(path, OTHERS, READABLE) if secret else exposed(path, OTHERS_WRITE, WRITABLE),
    ):
        if found is not None:
            yield found


def _replaceable(folder: Path) -> Iterator[Finding]:
    """Yield that others can replace what is in a directory; a sticky bit keeps them from it."""
    found = exposed(folder, OTHERS_WRITE, WRITABLE)
    if found is not None and not folder.stat().st_mode & stat.S_ISVTX:
        yield found


def _of_database(file: Path, user: Account) -> Iterator[Finding]:
    folder = file.parent
    found = missing_folder(folder, user) or unusable(folder, WRITE | ENTER, user)
    if found is not None:
        yield own_folder(file, found, user)
        return
    yield from _replaceable(folder)
    for one in (file, *(file.with_name(file.name + end) for end in BESIDE)):
        if one.exists():
            yield from _usable_alone(one, READ | WRITE, user, secret=True)


def _of_keys(file: Path, user: Account) -> Iterator[SettingsError]:
    name = file.name.removesuffix(".key_secret")
    made_by = f"make it: policer config keys {file.parent} {name}"
    mistakes = [*of_file(file, user, made_by, secret=True)]
    yield from (SettingsError("link.secret_key_file", *found) for found in mistakes)
    if not mistakes:
        try:
            load_keys(file)
        except SettingsError as error:
            yield error
