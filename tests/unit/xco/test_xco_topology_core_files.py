"""Where the compiled core is looked for, in which order, and what is said when it is not there."""

from pathlib import Path

import pytest

from xco import core_files
from xco.errors import CoreError


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working tree whose core is not built, and no core installed."""
    monkeypatch.delenv(core_files.VARIABLE, raising=False)
    monkeypatch.setattr(core_files, "PACKAGE", "xco_core_of_the_test")
    monkeypatch.setattr(core_files, "BUILD", tmp_path / "build")
    (tmp_path / "build").mkdir()
    return tmp_path / "build"


def make(folder: Path, name: str, mode: int = 0o755) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).touch(mode)
    return folder / name


def test_a_core_that_is_not_built_says_how_to_build_it(build: Path) -> None:
    del build
    with pytest.raises(CoreError, match=r"libxcosched\.so: .* not built .*make -C xco/core"):
        core_files.library()
    with pytest.raises(CoreError, match=r"xco-controller: .*make -C xco/core"):
        core_files.program("xco-controller")


def test_the_variable_comes_before_the_package_and_that_before_the_tree(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = make(build, core_files.LIBRARY)
    assert core_files.library() == built
    package = tmp_path / "xco_core_of_the_test"
    installed = make(package, core_files.LIBRARY)
    make(package, "__init__.py")
    monkeypatch.syspath_prepend(tmp_path)
    assert core_files.library() == installed
    chosen = make(tmp_path / "other", core_files.LIBRARY)
    monkeypatch.setenv(core_files.VARIABLE, str(tmp_path / "other"))
    assert core_files.library() == chosen


def test_a_variable_that_names_no_core_is_not_passed_over(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(build, core_files.LIBRARY)
    monkeypatch.setenv(core_files.VARIABLE, str(tmp_path / "empty"))
    with pytest.raises(CoreError, match=r"XCO_CORE=.*empty: there is no libxcosched\.so \(unset"):
        core_files.library()


def test_a_program_has_to_be_executable(build: Path) -> None:
    path = make(build, "xco-controller", 0o644)
    with pytest.raises(CoreError, match="may not be executed"):
        core_files.program("xco-controller")
    path.chmod(0o755)
    assert core_files.program("xco-controller") == path
