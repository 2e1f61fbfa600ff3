"""Directories of the daemon: ours alone, or refused with the command that makes them so."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.directories import open_directory
from common.errors import ConfigError
from xtc.daemon.server import Listen, Server
from xtc.errors import JournalError
from xtc.state.journal import Journal
from xtc.wire import Answer, Reply

FOREIGN = 65534
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a directory away")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "own"
    directory.mkdir(mode=0o700)
    yield directory
    os.chown(directory, os.geteuid(), os.getegid())


def opened(path: Path, *, group_may_write: bool = False) -> int:
    """Open a directory; return which it is."""
    descriptor = open_directory(path, mode=0o700, group_may_write=group_may_write)
    try:
        return os.fstat(descriptor).st_ino
    finally:
        os.close(descriptor)


def refusal(path: Path) -> str:
    with pytest.raises(PermissionError) as caught:
        opened(path)
    return caught.value.strerror or ""


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755, 0o500])
def test_what_systemd_makes_is_taken(directory: Path, mode: int) -> None:
    directory.chmod(mode)
    assert opened(directory) == directory.stat().st_ino


def test_a_directory_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert opened(tmp_path / "var" / "lib" / "xtc")
    assert (tmp_path / "var" / "lib" / "xtc").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("mode", "who"), [(0o777, "every user"), (0o770, "its group")])
def test_a_directory_that_others_may_write_to_is_refused(
    directory: Path, mode: int, who: str
) -> None:
    directory.chmod(mode)
    words = refusal(directory)
    assert f"{who} may write to it" in words
    assert f"chmod {mode & 0o755:04o} {directory}" in words


def test_a_group_may_write_to_a_directory_for_its_sockets(directory: Path) -> None:
    directory.chmod(0o770)
    assert opened(directory, group_may_write=True)
    directory.chmod(0o777)
    with pytest.raises(PermissionError):
        opened(directory, group_may_write=True)


@ROOT
def test_a_directory_of_another_user_is_refused(directory: Path) -> None:
    os.chown(directory, FOREIGN, FOREIGN)
    words = refusal(directory)
    assert f"{directory} belongs to user" in words
    assert f"chown -h root {directory}" in words


@ROOT
def test_a_directory_below_another_users_is_refused(directory: Path) -> None:
    (directory / "state").mkdir(mode=0o700)
    os.chown(directory, FOREIGN, FOREIGN)
    assert f"{directory} belongs to user" in refusal(directory / "state")


def test_a_directory_that_others_could_replace_is_refused(directory: Path) -> None:
    (directory / "state").mkdir(mode=0o700)
    directory.chmod(0o777)
    assert f"other users may write to {directory}" in refusal(directory / "state")
    directory.chmod(0o1777)  # as /tmp: only owners replace
    assert opened(directory / "state")


def test_a_link_of_our_own_is_followed(directory: Path, tmp_path: Path) -> None:
    """As systemd's from /var/lib/xtc to /var/lib/private/xtc."""
    for number, target in enumerate([directory, Path("own"), Path("../") / tmp_path.name / "own"]):
        link = tmp_path / f"link{number}"
        link.symlink_to(target)
        assert opened(link) == directory.stat().st_ino


def test_a_link_to_what_others_could_replace_is_refused(directory: Path, tmp_path: Path) -> None:
    (directory / "state").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(directory / "state")
    directory.chmod(0o777)
    assert f"other users may write to {directory}" in refusal(tmp_path / "link")


@ROOT
def test_a_link_of_another_user_is_refused(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(directory)
    os.lchown(tmp_path / "link", FOREIGN, FOREIGN)
    assert f"{tmp_path / 'link'} belongs to user" in refusal(tmp_path / "link")


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        opened(tmp_path / "a" / "state")


def test_a_state_directory_names_itself_and_what_to_do(directory: Path) -> None:
    directory.chmod(0o777)
    with pytest.raises(JournalError, match=f"{directory}: every user may write.*chmod 0755"):
        Journal(directory).open()
    assert list(directory.iterdir()) == []


def test_a_runtime_directory_names_itself_and_what_to_do(directory: Path) -> None:
    directory.chmod(0o777)
    with pytest.raises(ConfigError, match=rf"daemon\.runtime_dir: {directory}: .*chmod 0775"):
        Server(Listen(directory), lambda _: Reply(Answer(()))).open()
    assert list(directory.iterdir()) == []


@ROOT
def test_nothing_is_made_where_another_users_link_leads(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(directory)
    os.lchown(tmp_path / "link", FOREIGN, FOREIGN)
    refusal(tmp_path / "link" / "state")
    assert not (directory / "state").exists()


def test_nothing_is_made_where_others_could_replace_it(directory: Path) -> None:
    directory.chmod(0o777)
    refusal(directory / "state")
    assert not (directory / "state").exists()


def test_only_the_last_directory_has_the_mode_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert opened(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "b")]
    assert modes == [0o755, 0o700]
