"""Each command of docs/tutorial/walkthrough.md, run as it stands there, prints what is shown."""

import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import free_port
from support.walk import Step, Terminal, fits, steps

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "tutorial" / "walkthrough.md"
HOME = "/home/me"
"""Of who walks through, in the document."""
PORT = "8420"
AGAIN = ("xtc sandbox show", "policer lead", "policer host list", "policer router list")
AGAIN += ("policer router show", "policer events", "policer fit", "policer what-if")
"""Commands that only look, and so are repeated until they show what they are to show."""
PATIENCE_S = 120.0
LONGER = "[policy.escalation]\nclimb_s = 40"
"""Ten seconds between two measures are few for a command that starts on a busy machine."""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home with xtc and policer on its path; sockets have short paths, so not in tmp_path."""
    with tempfile.TemporaryDirectory(prefix="walk-") as directory:
        home = Path(directory)
        (home / "bin").mkdir()
        for program in ("xtc", "policer"):
            script = home / "bin" / program
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {program} "$@"\n')
            script.chmod(0o755)
        yield home


def environment(home: Path, port: str) -> dict[str, str]:
    """Return what a newcomer has, and where this policer is: its usual port may be taken."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    url = f"http://127.0.0.1:{port}"
    return kept | {"HOME": str(home), "PATH": path, "PYTHONPATH": str(ROOT), "POLICER_URL": url}


def without_rights() -> tuple[str, ...]:
    """Return the command that takes all capabilities from root; nothing else is left of it then."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return ()
    return ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")


@pytest.mark.timeout(600)
def test_the_walkthrough_does_what_it_says(home: Path) -> None:
    port = str(free_port())
    settings, end, rest = PAGE.read_text().partition("\nEND\n")
    text = f"{settings}\n{LONGER}{end}{rest}".replace(PORT, port).replace(HOME, str(home))
    assert end
    install, *walk = steps(text)
    assert "pip install" in install.command
    with Terminal(without_rights(), environment(home, port), home) as terminal:
        for step in walk:
            again = step.command.startswith(AGAIN)
            terminal.run_until_it_fits(step, PATIENCE_S, again=again)
    assert not (home / "try-xtc").exists()


def test_what_is_installed_is_an_extra_of_the_project() -> None:
    install = next(steps(PAGE.read_text())).command
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = install.partition("pip install '.[")[2].partition("]'")[0]
    assert {*named.split(",")} <= extras["optional-dependencies"].keys()


def test_the_walkthrough_is_linked_from_where_newcomers_begin() -> None:
    assert "](docs/tutorial/walkthrough.md)" in (ROOT / "README.md").read_text()
    assert "](../tutorial/walkthrough.md)" in (ROOT / "docs" / "howto" / "policer.md").read_text()


# --- the comparison itself


def test_commands_are_taken_from_blocks_with_what_they_print() -> None:
    text = (
        "# Title\n\n```sh\na\nb\n```\n\n```console\n$ c 1\nx\ny\n$ d\n```\n\n```toml\nz = 1\n```\n"
    )
    assert list(steps(text)) == [Step("a\nb\n"), Step("c 1", ("x", "y")), Step("d")]


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ([], []),
        (["gold   60 kp/s"], ["gold 60.5 kp/s"]),
        (["a", "b", "c"], ["...", "c"]),
        (["a", "b", "c"], ["a", "..."]),
        (["a", "c"], ["a", "...", "c"]),
        ([], ["..."]),
        (["a b c"], ["a ..."]),
        (["2026-01-02 03:04:05Z me (4c0e3bb1d7aa"], ["2025-11-12 13:14:15Z me (4c0e3bb1d7aa"]),
        (["token 4c0e3bb1d7ab of me"], ["token 4c0e3bb1d7aa of me"]),
    ],
)
def test_what_fits(printed: list[str], shown: list[str]) -> None:
    assert fits(printed, shown)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (["more"], []),
        ([], ["more"]),
        (["gold 60 kp/s"], ["gold 100 kp/s"]),
        (["gold 60 p/s"], ["gold 60 kp/s"]),
        (["gold 60%"], ["gold 60"]),
        (["a", "b"], ["a"]),
        (["a", "b"], ["...", "c"]),
        (["b ok"], ["a ..."]),
        (["0"], ["1"]),
    ],
)
def test_what_does_not_fit(printed: list[str], shown: list[str]) -> None:
    assert not fits(printed, shown)
