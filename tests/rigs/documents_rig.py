"""What tests of documents share: tables under headings, and commands that are shown."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.core import TyperGroup
from typer.main import get_command

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block of code: its kind, and its lines."""


def rows_under(text: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of the tables under a heading, by their first cell."""
    _, _, after = text.partition(f"\n{heading}\n")
    lines = [line for line in re.split(r"(?m)^#", after)[0].splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return {row[0].strip("`"): row for row in cells}


@cache
def command_of(app: Typer) -> Any:
    """Return the command of a program, made once for all lines that show it."""
    return get_command(app)


def check_command(command: Any, line: str) -> None:
    """Check that a command line's words are commands and options of a program."""
    _, *words = shlex.split(line, comments=True)
    while isinstance(command, TyperGroup) and words:
        name = words.pop(0)
        assert name in command.commands, line
        command = command.commands[name]
    known = {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert {word for word in words if word.startswith("-")} - known - {"--help"} == set(), line


def check_every_command_is_in(guide: str, program: str, root: Any) -> None:
    """Check that a guide names every command of a program."""
    assert isinstance(root, TyperGroup)
    for name, command in root.commands.items():
        children = getattr(command, "commands", {})
        for words in [f"{name} {child}" for child in children] or [name]:
            assert f"`{program} {words}" in guide, words


def commands_shown(pages: Iterable[Path], program: str) -> list[str]:
    """Return the command lines of a program that pages show, in blocks and within sentences."""
    texts = [page.read_text() for page in pages]
    lines = [
        re.sub(r"^(\w+)?[$] +", "", line).partition("  #")[0].strip()
        for text in texts
        for kind, body in BLOCK.findall(text)
        if kind in {"", "sh", "console"}
        for line in body.splitlines()
    ]
    spans = [
        " ".join(span.split())
        for text in texts
        for span in re.findall(rf"`({program} [^`|]+)`", text)
    ]
    found = {text.partition(" >")[0].rstrip("& ") for text in lines + spans}
    return sorted(
        text for text in found if re.match(rf"{program} [a-z]", text) and "..." not in text
    )


def check_manual(text: str) -> None:
    """Check that groff has nothing to say against a manual page."""
    if shutil.which("groff") is None:
        pytest.skip("needs groff")
    command = ["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-z"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
