"""Databases that are new, old, locked, gone or spoilt: each is opened, or refused with words."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from store_values import host, promise

from policer.errors import Invalid, SettingsError, StoreBusy, StoreGone, StoreOutdated
from policer.store import Event, Store, open_store
from policer.store.database.engine import Database
from policer.store.database.schema import MIGRATIONS, Schema
from policer.store.database.tables import metadata

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

NEWEST = Schema().newest
NEXT_VERSION = f'''"""Version 9999: notes on hosts."""
import sqlalchemy as sa
from alembic import op
revision, down_revision = "9999", "{NEWEST}"
def upgrade() -> None:
    op.add_column("hosts", sa.Column("note", sa.Text()))
'''
HALF_A_VERSION = NEXT_VERSION + '    op.execute("SELECT nothing FROM nowhere")\n'


def _newer(folder: Path, step: str = NEXT_VERSION) -> Schema:
    """Return what the next version of this program knows."""
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "v9999_notes.py").write_text(step)
    return Schema(folder)


def test_the_steps_lead_to_the_tables_that_the_program_uses(
    backend: "Backend", store: Store
) -> None:
    store.check()
    with store._database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    assert store.version == Schema().newest
    assert backend.open(create=False).version == store.version


def test_what_is_not_there_is_not_made_unless_it_may_be(backend: "Backend") -> None:
    with pytest.raises((StoreGone, StoreOutdated)):
        backend.open(create=False)
    if backend.is_sqlite:
        assert not backend.path.exists()
        backend.path.touch()
        with pytest.raises(StoreOutdated, match="policer db upgrade"):
            backend.open(create=False)
    backend.open(create=False, upgrade=True).check()


def test_an_older_database_is_refused_until_it_is_upgraded(
    backend: "Backend", store: Store, tmp_path: Path
) -> None:
    newer = _newer(tmp_path / "newer")
    store.hosts.add(host(), "ann")
    for create in (False, True):
        with pytest.raises(StoreOutdated, match=rf"version {NEWEST}.*9999.*policer db upgrade"):
            backend.open(schema=newer, create=create)
    upgraded = backend.open(schema=newer, upgrade=True)
    assert upgraded.version == "9999"
    assert upgraded.hosts.get("gold").value == host()
    assert backend.open(schema=newer).version == "9999"


def test_a_newer_database_is_refused(backend: "Backend", store: Store, tmp_path: Path) -> None:
    backend.open(schema=_newer(tmp_path / "newer"), upgrade=True)
    for upgrade in (False, True):
        with pytest.raises(StoreOutdated, match="newer than this program"):
            backend.open(upgrade=upgrade)
    with pytest.raises(StoreOutdated, match="newer than this program"):
        store.check()


def test_a_step_that_fails_half_way_changes_nothing(
    backend: "Backend", store: Store, tmp_path: Path
) -> None:
    with pytest.raises((StoreGone, StoreOutdated)):
        backend.open(schema=_newer(tmp_path / "newer", HALF_A_VERSION), upgrade=True)
    store.check()
    with store._database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_somebody_elses_database_is_left_alone(backend: "Backend") -> None:
    aside = backend.aside()
    aside.execute("CREATE TABLE accounts (name TEXT)")
    for upgrade in (False, True):
        with pytest.raises(StoreOutdated, match="not the policer's"):
            backend.open(upgrade=upgrade)


def test_a_database_without_its_tables_is_outdated(backend: "Backend", store: Store) -> None:
    backend.aside().execute("DROP TABLE events")
    with pytest.raises(StoreOutdated, match="policer db upgrade"):
        store.events.page(None, 1)


def test_a_locked_database_is_busy_and_can_be_read(backend: "Backend", store: Store) -> None:
    store.hosts.add(host(), "ann")
    aside = backend.aside()
    aside.execute("BEGIN IMMEDIATE" if backend.is_sqlite else "BEGIN")
    aside.execute("UPDATE hosts SET changed_by = 'somebody'")
    with pytest.raises(StoreBusy):
        store.contracts.put("gold", "r1", promise(1.0), None, "ann")
    assert store.hosts.get("gold").version.changed_by == "ann"
    store.check()
    aside.execute("COMMIT")
    store.contracts.put("gold", "r1", promise(1.0), None, "ann")


def test_a_database_that_another_process_keeps_locked_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "policer.db"
    open_store(f"sqlite:///{path}").close()
    keeper = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", keeper, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(StoreBusy):
            open_store(f"sqlite:///{path}", busy_s=0.2, upgrade=True).hosts.add(host(), "ann")
    finally:
        process.kill()
        process.communicate()
    store = open_store(f"sqlite:///{path}", busy_s=0.2)
    store.hosts.add(host(), "ann")
    store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where SQLite's database is to be."""
    return tmp_path / "policer.db"


def test_the_file_is_its_owners_alone(path: Path) -> None:
    open_store(f"sqlite:///{path}").close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"This is a letter." * 400)
    with pytest.raises(StoreGone, match="not a database"):
        open_store(f"sqlite:///{path}")
    assert path.read_bytes() == b"This is a letter." * 400


def test_a_file_that_was_damaged_is_refused(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    store.events.add([Event("gold", "k", f"words {n}") for n in range(2000)])
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    with pytest.raises(StoreGone):
        _read_all(path)


def _read_all(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    try:
        store.events.page(None, 9999)
    finally:
        store.close()


def test_a_file_that_is_removed_or_replaced_takes_no_more_changes(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    store.hosts.add(host(), "ann")
    store.backup(path.with_name("copy"))
    path.unlink()
    with pytest.raises(StoreGone, match="No such file"):
        store.check()
    with pytest.raises(StoreGone):
        store.hosts.add(host("iron"), "ann")
    path.with_name("copy").rename(path)
    with pytest.raises(StoreGone, match="replaced"):
        store.hosts.add(host("iron"), "ann")
    store.close()


def test_a_place_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreGone, match="No such file or directory"):
        open_store(f"sqlite:///{tmp_path}/nowhere/policer.db")
    with pytest.raises(StoreGone, match="Is a directory"):
        open_store(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "policer.db",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:////tmp/x.db?mode=ro",
        "mysql://root:hush@localhost/policer",
        "postgresql://root:hush@host:port/policer",
    ],
)
def test_a_url_of_another_kind_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match=r"store\.url") as refused:
        open_store(url)
    assert "hush" not in str(refused.value)


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError, match=r"psycopg.*pip install 'xtc\[postgresql\]'"):
        open_store("postgresql://root@localhost/policer")


def test_a_server_that_is_not_there_is_gone(tmp_path: Path) -> None:
    with pytest.raises(StoreGone) as refused:
        open_store(f"postgresql://root:hush@/policer?host={tmp_path}")
    assert "hush" not in str(refused.value)


FULL_DISK = """
import resource, signal, sys
from policer.errors import StoreGone
from policer.contracts.host import Host
from policer.store import Event, open_store
store = open_store(sys.argv[1])
store.hosts.add(Host("gold", "ipc:///a", "ipc:///b", 1e5), "ann")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
added = 0
try:
    while True:
        store.events.add([Event("gold", "k", "x" * 900) for _ in range(20)])
        added += 20
except StoreGone as error:
    print(added, error)
"""


def test_a_full_disk_loses_nothing_that_was_taken(path: Path) -> None:
    url = f"sqlite:///{path}"
    command = [sys.executable, "-c", FULL_DISK, url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    added = int(said.split()[0])
    assert added > 0
    assert "the database cannot be used" in said
    store = open_store(url)
    assert len(store.events.since(0, 10**6)) == added
    assert store.hosts.get("gold").version.number == 1
    store.close()


def test_a_backup_is_whole_and_overwrites_nothing(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    store.hosts.add(host(), "ann")
    copy = path.with_name("copy.db")
    store.backup(copy)
    store.hosts.remove("gold", 1, "ann")
    assert copy.stat().st_mode & 0o777 == 0o600
    with pytest.raises(Invalid, match="already exists"):
        store.backup(copy)
    with pytest.raises(StoreGone, match="No such file"):
        store.backup(path.with_name("nowhere") / "copy.db")
    store.close()
    restored = open_store(f"sqlite:///{copy}")
    assert restored.hosts.get("gold").value == host()
    restored.close()


def test_a_change_is_on_disk_when_it_is_answered(path: Path) -> None:
    database = Database(f"sqlite:///{path}", 1.0, create=True)
    with database.read() as connection:
        asked = "journal_mode", "synchronous", "foreign_keys"
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in asked]
    assert found == ["wal", 2, 1]
    database.close()
    assert sqlite3.sqlite_version_info >= (3, 24)
