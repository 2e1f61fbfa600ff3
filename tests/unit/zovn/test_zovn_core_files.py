"""Where Python looks for the compiled switch, and the error when it is missing."""

from pathlib import Path

import pytest

from zovn import core_files
from zovn.errors import CoreError
from zovn.native.library import loaded


def test_a_folder_that_is_named_takes_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(core_files.VARIABLE, str(tmp_path))
    with pytest.raises(CoreError, match=r"there is no libzovn\.so \(unset it, or build it"):
        core_files.library()
    (tmp_path / core_files.LIBRARY).touch()
    assert core_files.library() == tmp_path / core_files.LIBRARY


def test_a_core_that_is_not_built_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_files, "BUILD", tmp_path)
    with pytest.raises(CoreError, match=r"not built \(build it: make -C zovn/core\)"):
        core_files.library()


def test_another_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / core_files.LIBRARY).write_bytes(b"not a library")
    with pytest.raises(CoreError, match="not the switch that is expected"):
        loaded(str(tmp_path / core_files.LIBRARY))
    with pytest.raises(CoreError, match="not the switch that is expected"):
        loaded("libc.so.6")
