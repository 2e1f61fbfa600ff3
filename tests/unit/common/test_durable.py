"""Files that are replaced: old content or new content, and nothing else left behind."""

import os
from pathlib import Path

import pytest

from common.durable import replace_file


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_created_and_replaced_with_its_mode(tmp_path: Path, *, durable: bool) -> None:
    path = tmp_path / "state"
    replace_file(path, b"first", durable=durable, mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    replace_file(path, b"second", durable=durable)
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["state"]  # noqa: PTH208  names alone


def test_the_disk_has_the_content_before_the_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, rename = os.fsync, Path.replace

    def noted_fsync(descriptor: int) -> None:
        order.append("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")  # noqa: PTH112
        fsync(descriptor)

    def noted_rename(self: Path, target: Path) -> Path:
        order.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_rename)
    replace_file(tmp_path / "state", b"x", durable=True)
    assert order == ["file", "rename", "directory"]


@pytest.mark.parametrize("failing", ["fsync", "rename"])
def test_a_failure_leaves_the_old_content_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "state"
    path.write_text("old")
    monkeypatch.setattr(*((os, "fsync") if failing == "fsync" else (Path, "replace")), fails)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new", durable=True)
    monkeypatch.undo()
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"state": "old"}


def test_a_link_at_the_new_names_place_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("state", f"state.{os.getpid()}.new"):
        (tmp_path / name).symlink_to(victim)
    replace_file(tmp_path / "state", b"new")
    assert victim.read_text() == "precious"
    assert (tmp_path / "state").read_text() == "new"
    assert not (tmp_path / "state").is_symlink()
