"""policer config check finds what keeps the service from its files; the command it names fixes it.

As root, files are given to user nobody, who then runs the service.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq.auth

from policer.cli.main import main
from policer.config.accounts import Account, account_of, acting_as, service_account
from policer.config.file import load_settings, secret_text, store_url
from policer.config.file_check import file_mistakes, read_mistakes
from policer.config.fixes import exposed
from policer.config.schema import LinkSection, ServerSection, Settings, StoreSection
from policer.link import load_keys

NOBODY = 65534
NAMELESS = 64_999
"""No user has this number."""


class Place:
    """A directory that every user may enter, with the files of a service in it."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self._patch = root, patch
        self.state, self.keys = root / "state", root / "keys"
        self.database = self.state / "policer.db"
        self.settings = root / "policer.toml"
        self.cert, self.key = root / "tls.crt", root / "tls.key"
        for folder in (self.state, self.keys):
            folder.mkdir(mode=0o700)
        _, secret = zmq.auth.create_certificates(self.keys, "policer")
        self.secret = Path(secret)
        for file in (self.database, self.cert, self.key, self.secret):
            file.touch()
            file.chmod(0o600)
        self.settings.write_text(
            f'[store]\nurl = "sqlite:///{self.database}"\n'
            f'[link]\nsecret_key_file = "{self.secret}"\n'
            f'[server]\ntls_cert = "{self.cert}"\ntls_key = "{self.key}"\n'
        )

    def give_to(self, user: int) -> None:
        """Have a user run the service."""
        files = (self.state, self.database, self.keys, self.cert, self.key, self.secret)
        for path in files:
            os.chown(path, user, user)

    def check(self, capture: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
        """Run `policer config check` here; return its exit code and all that it said."""
        command = ["policer", "config", "check", "--config", str(self.settings), *words]
        self._patch.setattr(sys, "argv", command)
        capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capture.readouterr()
        return int(ended.value.code or 0), said.out + said.err


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    root = Path(tempfile.mkdtemp(prefix="policer-files-"))  # tmp_path is shut to other users
    root.chmod(0o755)
    yield Place(root, monkeypatch)
    shutil.rmtree(root)


Break = Callable[[Place], object]
OWN_MISTAKES: dict[str, tuple[Break, str]] = {
    "no directory": (lambda p: shutil.rmtree(p.state), "store.url: .*/state: no such directory"),
    "open directory": (lambda p: p.state.chmod(0o770), "state can be written to by others: mode"),
    "database for all": (lambda p: p.database.chmod(0o644), "policer.db can be read by others"),
    "key for the group": (lambda p: p.secret.chmod(0o640), "key_secret can be read by others"),
    "keys can be replaced": (lambda p: p.keys.chmod(0o777), "keys can be written to by others"),
    "no key": (lambda p: p.secret.unlink(), "policer.key_secret: no such file"),
    "tls key for all": (lambda p: p.key.chmod(0o604), "server.tls_key: .* can be read by others"),
}
"""What is wrong whoever runs the service, and what is said of it."""


def fixed_by(said: str) -> str:
    """Return the command that is named in brackets, without what stands before it."""
    inside = re.findall(r"\(([^()]*)\)", said)[-1]
    return re.sub(r"^(make it: |as root: )", "", inside)


def run(command: str) -> None:
    policer = f"{sys.executable} -m policer"
    subprocess.run(["sh", "-c", command.replace("policer config", f"{policer} config")], check=True)


def test_files_as_they_should_be_are_no_mistake(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = place.check(capsys)
    assert code == 0, said
    assert "no mistake found" in said


@pytest.mark.parametrize("name", OWN_MISTAKES)
def test_the_command_that_is_named_fixes_the_mistake(
    place: Place, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    spoil, words = OWN_MISTAKES[name]
    if name == "no key":
        place.secret.with_suffix(".key").unlink()
    spoil(place)
    code, said = place.check(capsys)
    assert (code, re.search(words, said) is not None) == (2, True), said
    assert said.count("\n") == 1
    run(fixed_by(said.replace(", or set store.url to another place", "").replace("))", ")")))
    code, said = place.check(capsys)
    assert code == 0, said


FOREIGN_MISTAKES: dict[str, tuple[Break, str]] = {
    "directory of root": (lambda p: os.chown(p.state, 0, 0), "state: nobody may not write to and"),
    "database of root": (lambda p: os.chown(p.database, 0, 0), "db: nobody may not read and write"),
    "lock of root": (lambda p: p.database.with_name("policer.db.lock").touch(0o600), "db.lock: "),
    "key of root": (lambda p: os.chown(p.secret, 0, 0), "key_secret: nobody may not read it: mode"),
    "certificate of root": (lambda p: os.chown(p.cert, 0, 0), "crt: nobody may not read it"),
    "settings of root": (lambda p: p.settings.chmod(0o600), "toml: nobody may not read it"),
    "own directory that is shut": (lambda p: p.state.chmod(0o500), "state: nobody may not write"),
}
"""What is wrong where user nobody runs the service."""


@pytest.mark.root
@pytest.mark.parametrize("name", FOREIGN_MISTAKES)
def test_the_command_that_is_named_gives_the_service_its_file(place: Place, name: str) -> None:
    place.give_to(NOBODY)
    place.settings.chmod(0o644)
    spoil, words = FOREIGN_MISTAKES[name]
    spoil(place)
    (said,) = mistakes_for(place, account_of(NOBODY))
    assert re.search(words, said), said
    run(fixed_by(said.replace("if nothing else is in it, ", "")))
    assert mistakes_for(place, account_of(NOBODY)) == []


def mistakes_for(place: Place, user: Account) -> list[str]:
    """Return what the check says of settings and files with a user's rights."""
    settings = load_settings(place.settings)
    with acting_as(user):
        found = [
            *read_mistakes(place.settings, user),
            *file_mistakes(settings, store_url(settings.store), user),
        ]
    return [str(one) for one in found]


@pytest.mark.root
def test_root_checks_for_the_owner_of_the_directory(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.give_to(NOBODY)
    code, said = place.check(capsys)
    assert (code, said.endswith("; for nobody\n")) == (0, True), said
    os.chown(place.secret, 0, 0)
    code, said = place.check(capsys)
    assert code == 2
    assert f"(chown nobody: {place.secret})" in said
    assert os.geteuid() == 0


@pytest.mark.root
def test_every_mistake_is_named_at_once(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.give_to(NOBODY)
    for path in (place.database, place.secret, place.key):
        os.chown(path, 0, 0)
    code, said = place.check(capsys, "--json")
    assert (code, said.count("(chown nobody: ")) == (2, 3), said


@pytest.mark.root
def test_a_directory_that_others_use_is_not_given_away(place: Place) -> None:
    place.give_to(NOBODY)
    os.chown(place.state, 0, 0)
    place.state.chmod(0o755)
    (place.state / "of another program").touch()
    (said,) = mistakes_for(place, account_of(NOBODY))
    assert "chown" not in said
    own = place.state / "policer"
    assert f"install -d -m 700 -o nobody -g {account_of(NOBODY).group} {own}, and set" in said
    assert f"store.url to sqlite:///{own}/policer.db" in said


@pytest.mark.root
def test_a_directory_on_the_way_stays_what_it_is_and_lets_the_service_by(place: Place) -> None:
    place.give_to(NOBODY)
    os.chown(place.keys, 0, 0)
    (said,) = mistakes_for(place, account_of(NOBODY))
    assert f"nobody may not enter {place.keys}: mode 0700, of root" in said
    assert f"(setfacl -m u:nobody:x {place.keys})" in said


@pytest.mark.root
def test_a_user_without_a_name_is_called_by_number(place: Place) -> None:
    place.give_to(NAMELESS)
    os.chown(place.secret, 0, 0)
    user = service_account(place.state)
    assert user == Account(str(NAMELESS), NAMELESS, NAMELESS)
    (said,) = mistakes_for(place, user)
    assert f"(chown {NAMELESS}: {place.secret})" in said


@pytest.mark.root
def test_who_is_not_root_is_told_what_takes_root(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.secret.chmod(0o644)
    place.keys.chmod(0o755)
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    with acting_as(account_of(NOBODY)):
        found = exposed(place.secret, 0o077, "can be read by others")
    assert found is not None
    assert found[1] == f"as root: chmod 600 {place.secret}"


@pytest.mark.root
def test_settings_that_may_not_be_read_are_named_with_the_fix(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.settings.chmod(0o600)
    with acting_as(account_of(NOBODY)):
        code, said = place.check(capsys)
    group = account_of(NOBODY).group
    assert code == 2
    assert f"(chgrp {group} {place.settings} && chmod g+r {place.settings}, or name" in said


def test_a_directory_in_the_place_of_a_file_is_said_so(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.secret.unlink()
    place.secret.mkdir()
    code, said = place.check(capsys)
    assert (code, "key_secret is a directory (name the file in it)" in said) == (2, True), said
    place.settings.unlink()
    place.settings.mkdir()
    code, said = place.check(capsys)
    assert (code, "toml: is a directory" in said) == (2, True), said


def test_a_file_in_the_place_of_a_directory_is_said_so(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(place.state)
    place.state.touch()
    code, said = place.check(capsys)
    assert (code, f"store.url: {place.state} is no directory" in said) == (2, True), said


def test_settings_in_a_directory_that_is_not_there_are_made_by_one_command(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.settings = place.root / "etc" / "policer.toml"
    code, said = place.check(capsys)
    assert code == 2
    assert f"install -D -m 644 /dev/null {place.settings}" in said


def test_keys_that_are_none_are_found(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.secret.write_text("nonsense")
    code, said = place.check(capsys)
    assert (code, "No public key found" in said) == (2, True), said


def test_others_may_enter_a_directory_that_is_sticky(place: Place) -> None:
    place.state.chmod(0o1777)
    settings = Settings(store=StoreSection(url=f"sqlite:///{place.database}"))
    me = account_of(os.geteuid())
    assert [*file_mistakes(settings, f"sqlite:///{place.database}", me)] == []


def test_postgresql_has_no_directory_to_look_at(place: Place) -> None:
    url = "postgresql://policer@db/policer"
    settings = Settings(
        store=StoreSection(url=url),
        link=LinkSection(secret_key_file=str(place.secret)),
        server=ServerSection(),
    )
    me = account_of(os.geteuid())
    assert [*file_mistakes(settings, url, me)] == []
    assert load_keys(place.secret).public
    assert "secret-key" in secret_text("--token-file", place.secret)
