"""Where the extra `policer` is not installed, the command line says so, and what to install."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from policer.errors import MissingExtra
from policer.extra import PACKAGES, extra_needed

ROOT = Path(__file__).parents[3]
HIDING = """
import sys

class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hiding())
"""


def policer(folder: Path, hidden: set[str], *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `python -m policer` where some packages cannot be found."""
    (folder / "sitecustomize.py").write_text(HIDING.format(hidden=hidden))
    settings = folder / "policer.toml"
    settings.write_text(f'[store]\nurl = "sqlite:///{folder}/policer.db"\n')
    found = {"PYTHONPATH": f"{folder}:{ROOT}", "POLICER_CONFIG": str(settings)}
    return subprocess.run(
        [sys.executable, "-m", "policer", *words],
        env={**os.environ, **found, "POLICER_TOKEN": "xtcp_none"},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (("host", "list"), "httpx"),
        (("db", "upgrade"), "(alembic|sqlalchemy)"),
        (("token", "list"), "(alembic|sqlalchemy)"),
        (("serve",), "(alembic|litestar|sqlalchemy|uvicorn)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_missing_extra_is_said_in_one_line(
    tmp_path: Path, words: tuple[str, ...], package: str
) -> None:
    done = policer(tmp_path, set(PACKAGES), *words)
    wanted = rf"policer: {package} is not installed, .*pip install 'xtc\[policer\]'\)\n"
    assert re.fullmatch(wanted, done.stderr), done.stderr
    assert (done.returncode, done.stdout) == (1, "")


def test_what_needs_no_extra_works_without_it(tmp_path: Path) -> None:
    assert policer(tmp_path, set(PACKAGES), "--version").returncode == 0
    checked = policer(tmp_path, set(PACKAGES), "config", "check")
    assert "no mistake found" in checked.stdout


def test_the_packages_are_those_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["policer"]
    names = {re.split(r"[^\w-]", one)[0].replace("-", "_") for one in extra}
    assert names == PACKAGES


def test_a_module_of_anybody_else_that_is_missing_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError), extra_needed():
        raise ModuleNotFoundError("No module named 'policer.stoer'", name="policer.stoer")
    with pytest.raises(MissingExtra) as missing, extra_needed():
        raise ModuleNotFoundError("No module named 'httpx_sse._api'", name="httpx_sse._api")
    assert missing.value.package == "httpx_sse"
