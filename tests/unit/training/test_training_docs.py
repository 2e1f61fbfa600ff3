"""The page on training does not rot: its commands exist, its tables are the code's."""

import re
import shlex
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from training.cli.main import app
from training.fit import fit
from training.recording.recording import COLUMNS, PHASES

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "howto" / "training.md"
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
COMMANDS = get_command(app)


def shown() -> list[str]:
    lines = [line.partition(" #")[0].strip() for block in BLOCKS for line in block.splitlines()]
    spans = re.findall(r"`(xtc-train [^`]+)`", TEXT)
    return sorted({line for line in lines + spans if line.startswith("xtc-train ")})


def options(name: str) -> set[str]:
    assert isinstance(COMMANDS, TyperGroup)
    parameters = COMMANDS.commands[name].params
    return {option for parameter in parameters for option in parameter.opts} | {"--help"}


def test_there_are_commands_to_check() -> None:
    assert len(shown()) >= 8


@pytest.mark.parametrize("line", shown())
def test_every_command_that_is_shown_exists(line: str) -> None:
    _, name, *words = shlex.split(line)
    assert {word for word in words if word.startswith("-")} - options(name) == set()


def test_every_option_is_explained() -> None:
    assert isinstance(COMMANDS, TyperGroup)
    for name, command in COMMANDS.commands.items():
        assert f"## `{name}`" in TEXT
        known = {o for p in command.params for o in p.opts if o.startswith("--")}
        assert {option for option in known if f"`{option}`" not in TEXT} == set()


def test_every_column_and_phase_is_named() -> None:
    assert [name for name in (*COLUMNS, *PHASES) if f"`{name}`" not in TEXT] == []


def test_the_papers_design_is_shown_as_it_is_printed() -> None:
    result = CliRunner().invoke(app, ["design", "--model", "paper"])
    table = [line.rstrip() for line in result.stdout.splitlines()[:3]]
    assert table in [[line.rstrip() for line in block.splitlines()] for block in BLOCKS]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("by at most {:.0%}", fit.SCATTERED),
        ("fewer than {} caps", fit.LEAST_CAPS),
        ("fewer than {} caps show the slope", fit.LEAST_POINTS),
    ],
)
def test_bounds_are_the_codes(words: str, value: float) -> None:
    spelt = {4: "four", 5: "five"}.get(int(value), "") if value >= 1 else value
    assert re.sub(r"(\d)%", r"\1 %", words.format(spelt)) in TEXT
