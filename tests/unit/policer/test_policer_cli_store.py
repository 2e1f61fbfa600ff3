"""The commands that work on settings and store: config, db, token; with no policer running."""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zmq.auth
from sqlalchemy import create_engine, text

from policer.cli.main import main
from policer.cli.token import lifetime
from policer.contracts.host import Host
from policer.errors import SettingsError
from policer.store import Event, Store, open_store

HOST = Host("gold", "ipc:///a", "ipc:///b", 100e3)


class Shell:
    """Runs policer in this process on settings of its own."""

    def __init__(
        self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str], folder: Path
    ) -> None:
        self._patch, self._capture = patch, capture
        self.settings, self.database = folder / "policer.toml", folder / "policer.db"
        self.write(f'[store]\nurl = "sqlite:///{self.database}"\n')
        patch.setenv("POLICER_CONFIG", str(self.settings))
        patch.setenv("COLUMNS", "200")
        self.err = ""

    def write(self, text: str) -> None:
        """Write the settings."""
        self.settings.write_text(text)

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command that must end with this exit code; return what it said."""
        self._patch.setattr(sys, "argv", ["policer", *words])
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capture.readouterr()
        assert (ended.value.code or 0) == code, said
        self.err = said.err
        return said.out if code == 0 else said.err

    def json(self, *words: str) -> Any:
        """Run a command and read its JSON."""
        return json.loads(self(*words, "--json"))

    def store(self) -> Store:
        """Return the store that the commands work on."""
        return open_store(f"sqlite:///{self.database}")


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell(monkeypatch, capsys, tmp_path)


# --- tokens


def test_the_first_token_needs_no_policer(shell: Shell) -> None:
    secret = shell("token", "add", "anna", "--scope", "admin").strip()
    row = shell.store().tokens.by_secret(secret)
    assert row is not None
    assert (row.name, row.scopes, row.expires_at) == ("anna", ("admin",), None)
    assert "(command line) (uid-" in row.created_by


def test_a_secret_is_alone_on_standard_output_and_in_no_list(shell: Shell) -> None:
    secret = shell("token", "add", "anna", "--scope", "read").strip()
    assert "\n" not in secret
    assert secret not in shell.err
    for said in (shell("token", "list"), shell("token", "list", "--json")):
        assert secret not in said
        assert secret.split("_", 2)[2] not in said
        assert "anna" in said


def test_a_token_ends(shell: Shell) -> None:
    row = shell.json("token", "add", "anna", "--scope", "read", "--expires", "90d")["token"]
    left = datetime.fromisoformat(row["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=89, hours=23) < left < timedelta(days=90)


def test_a_revoked_token_is_known_no_more(shell: Shell) -> None:
    secret = shell("token", "add", "anna", "--scope", "read").strip()
    (row,) = shell.json("token", "list")
    assert "revoked" in shell("token", "revoke", row["id"])
    assert shell.store().tokens.by_secret(secret) is None
    assert "revoked" in shell("token", "list")
    assert "no token nobody" in shell("token", "revoke", "nobody", code=1)


@pytest.mark.parametrize(
    "words", [("--scope", "king"), (), ("--scope", "read", "--expires", "soon")]
)
def test_a_token_that_cannot_be_is_refused(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell("token", "add", "anna", *words, code=2)
    assert not shell.database.exists()


@pytest.mark.parametrize("text", ["0d", "d", "-1d", "1", "3661d", "1y", "99999w"])
def test_what_is_no_lifetime_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--expires"):
        lifetime(text)


def test_lifetimes_are_hours_days_and_weeks() -> None:
    assert [lifetime(text) for text in ("12h", "90d", "52w")] == [
        timedelta(hours=12),
        timedelta(days=90),
        timedelta(weeks=52),
    ]


# --- the database


def test_a_database_is_made_and_checked(shell: Shell) -> None:
    assert "policer.db: No such file" in shell("db", "check", code=1)
    version = shell.json("db", "upgrade")["version"]
    shell.store().hosts.add(HOST, "test")
    assert shell.json("db", "check") == {"version": version, "hosts": 1, "contracts": 0}
    assert "1 hosts, 0 contracts" in shell("db", "check")


def test_a_database_is_brought_down_for_an_older_program(shell: Shell) -> None:
    shell("db", "upgrade")
    assert "one of 0001" in shell("db", "downgrade", "0000", code=1)
    assert shell.json("db", "downgrade", "0001") == {"version": "0001"}
    assert "policer db upgrade" in shell("db", "check", code=1)


def test_a_store_that_is_not_there_is_a_failure(shell: Shell) -> None:
    for words in (("db", "check"), ("db", "prune"), ("token", "list"), ("token", "revoke", "a")):
        assert "No such file" in shell(*words, code=1)
    assert not shell.database.exists()


def test_a_database_of_another_version_is_said_so(shell: Shell) -> None:
    shell("db", "upgrade")
    engine = create_engine(f"sqlite:///{shell.database}")
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    for words in (("db", "check"), ("token", "list"), ("db", "upgrade")):
        assert "version 9999, which is newer" in shell(*words, code=1)


def test_old_events_are_removed(shell: Shell) -> None:
    now = datetime.now(UTC)
    shell.store().events.add(
        [Event("gold", "engaged", "x", at=now - timedelta(days=days)) for days in (0, 50, 100)]
    )
    history = {"second_chunks": 0, "minute_chunks": 0, "contract_days": 0}
    nothing_else = {"tokens": 0, "audit": 0, "revisions": 0, "dead_letters": 0}
    nothing_else |= {"plans": 0, **history}
    assert shell.json("db", "prune") == {"events": 1, **nothing_else}
    assert shell.json("db", "prune", "--keep-days", "20") == {"events": 1, **nothing_else}
    assert len(shell.store().events.page(None, 10)) == 1


def test_a_backup_can_be_opened(shell: Shell, tmp_path: Path) -> None:
    store = shell.store()
    store.hosts.add(HOST, "test")
    target = tmp_path / "copy.db"
    assert shell.json("db", "backup", str(target)) == {"backup": str(target)}
    copy = open_store(f"sqlite:///{target}", create=False)
    assert [stored.value for stored in copy.hosts.all()] == [HOST]
    assert target.stat().st_mode & 0o077 == 0
    assert "already exists" in shell("db", "backup", str(target), code=1)


@pytest.mark.root
def test_root_does_not_lock_the_stores_owner_out(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    shell.write(f'[store]\nurl = "sqlite:///{folder}/policer.db"\n')
    said = shell("token", "add", "anna", "--scope", "read", code=2)
    assert "runuser -u nobody" in said
    assert list(folder.iterdir()) == []


# --- settings


def test_settings_are_checked_and_shown(shell: Shell) -> None:
    assert "no mistake found" in shell("config", "check")
    assert shell.json("config", "check")["listen"] == "127.0.0.1:8420"
    shown = shell.json("config", "show")
    assert shown["lease"]["ttl_s"] == 15.0
    assert json.loads(shell("config", "show")) == shown


def test_a_password_is_in_nothing_that_is_said(shell: Shell) -> None:
    shell.write('[store]\nurl = "postgresql://policer:SECRET@127.0.0.1:1/policer"\n')
    for words in (("config", "show"), ("config", "show", "--json"), ("config", "check")):
        assert "SECRET" not in shell(*words)
    assert "SECRET" not in shell("db", "check", code=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nlissten = 'a'", "did you mean listen?"),
        ("[link]\nsecret_key_file = '/nowhere'", "link.secret_key_file: /nowhere"),
        ("[server]\ntls_cert = '/nowhere'\ntls_key = '/no'", "server.tls_cert: /nowhere"),
        ("[store]\nurl_file = '/nowhere'", "store.url_file: /nowhere"),
    ],
)
def test_mistakes_are_found_before_a_start(shell: Shell, text: str, said: str) -> None:
    shell.write(text)
    assert said in shell("config", "check", code=2)


def test_settings_that_are_not_there_are_said_so(shell: Shell) -> None:
    shell.settings.unlink()
    for words in (("serve",), ("config", "check"), ("db", "check"), ("token", "list")):
        assert "--config" in shell(*words, code=2)
    assert f"touch {shell.settings}" in shell.err


@pytest.mark.parametrize("words", [("db", "upgrade"), ("config", "check"), ("token", "list")])
def test_a_directory_that_is_not_there_is_named_with_the_command_that_makes_it(
    shell: Shell, tmp_path: Path, words: tuple[str, ...]
) -> None:
    folder = tmp_path / "none"
    shell.write(f'[store]\nurl = "sqlite:///{folder}/policer.db"\n')
    said = shell(*words, code=2)
    assert f"store.url: {folder}: no such directory (make it (install -d -m 700 {folder})" in said


def test_keys_are_made_once_and_the_secret_one_is_kept(shell: Shell, tmp_path: Path) -> None:
    made = shell.json("config", "keys", str(tmp_path / "keys"))
    secret = Path(made["secret"])
    assert secret.name == "policer.key_secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    before = zmq.auth.load_certificate(secret)
    assert "already exists" in shell("config", "keys", str(tmp_path / "keys"), code=2)
    assert zmq.auth.load_certificate(secret) == before
    assert "no file name" in shell("config", "keys", str(tmp_path), "a/b", code=2)
