"""What tests of documents share: tables under headings, and commands that are shown."""

import re
import shlex
from typing import Any

from typer.core import TyperGroup


def rows_under(text: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of the tables under a heading, by their first cell."""
    _, _, after = text.partition(f"\n{heading}\n")
    lines = [line for line in re.split(r"(?m)^#", after)[0].splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return {row[0].strip("`"): row for row in cells}


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
