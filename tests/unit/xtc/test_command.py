"""What the command lines have in common: the version, and one line and a code for each error."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from common import __version__
from common.command import Codes, command_line, exit_code, report_errors
from common.errors import Busy, ConfigError, UnitError, XtcError
from lab.errors import BadRequestError, LabError, ProgramError
from models import ModelError
from training.cli.main import TRAINING_CODES
from training.errors import DesignError, RecordingError, UnfitError
from training.sweep.watch import MeasureError, Stopped
from xtc.errors import (
    Admission,
    Denied,
    Gone,
    JournalError,
    MeterError,
    Refused,
    Transient,
    Unreachable,
)
from xtc.exit_codes import CODES

PROBLEMS = [
    "no interface has the MAC 52:54:00:ab:12:34",
    "eth[0] [bold]is[/] gone [/red]",
    "a long line " * 40 + "end",
]


def said(error: Exception, capsys: pytest.CaptureFixture[str], codes: Codes = CODES) -> str:
    """Return what an error becomes on standard error; standard output must stay empty."""
    with pytest.raises(SystemExit) as ended, report_errors("prog", codes):
        raise error
    assert ended.value.code == exit_code(error, codes)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize("problem", PROBLEMS)
def test_an_error_is_one_line_that_is_not_touched(
    problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(XtcError(problem), capsys) == f"prog: {problem}\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unreachable("a"), 3),
        (Refused("code", "vr", "is unknown"), 1),
        (JournalError("a"), 1),
        (Transient("vr", "a"), 1),
        (Gone("vr", "a"), 1),
        (Denied("vr", "a"), 1),
        (Admission("vr", "a"), 1),
        (UnitError("--setpoint", "fast", "a rate"), 2),
        (ConfigError("xtc.toml", "a"), 2),
        (MeterError(3, "a"), 2),
        (Busy("a"), 2),
        (ModelError("a"), 2),
    ],
)
def test_each_error_has_the_code_of_its_nearest_class(error: Exception, code: int) -> None:
    assert exit_code(error, CODES) == code
    assert exit_code(error, TRAINING_CODES) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnfitError("caps", "too few", "more"), 1),
        (MeasureError("vr", "a", "b"), 1),
        (Stopped(), 1),
        (ProgramError("source", "it ended"), 1),
        (LabError("a"), 1),
        (BadRequestError("--lab", "x", "a kind"), 2),
        (RecordingError("a.csv", 3, "cap", "a", "b"), 2),
        (DesignError("--settling", "a", "b"), 2),
    ],
)
def test_what_cannot_be_measured_is_told_from_what_was_typed_wrong(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(error, TRAINING_CODES) == code
    assert said(error, capsys, TRAINING_CODES) == f"prog: {error}\n"


def test_a_defect_is_not_spoken_away() -> None:
    with pytest.raises(ZeroDivisionError), report_errors("prog"):
        raise ZeroDivisionError


def test_an_error_without_a_code_is_a_defect() -> None:
    with pytest.raises(LookupError):
        exit_code(ZeroDivisionError())


def two_commands() -> tuple[typer.Typer, list[str]]:
    app, done = command_line("prog", about="Does nothing.", epilog="Exit codes: 0."), []

    @app.command()
    def one() -> None:
        done.append("one")

    @app.command()
    def two() -> None:
        done.append("two")

    return app, done


def test_the_version_is_shown_and_nothing_else_is_done() -> None:
    app, done = two_commands()
    result = CliRunner().invoke(app, ["--version", "one"])
    assert (result.exit_code, result.stdout) == (0, f"prog {__version__}\n")
    assert done == []


def test_help_is_what_the_program_says_of_itself() -> None:
    app, _ = two_commands()
    words = CliRunner().invoke(app, ["--help"]).stdout
    assert "Does nothing." in words
    assert "Exit codes: 0." in words


SLOW = ("control", "matplotlib", "scipy", "libvirt")


@pytest.mark.parametrize(
    ("program", "slow"),
    [("xtc.cli.main", (*SLOW, "pyroute2")), ("training.cli.main", SLOW), ("lab.cli", SLOW)],
)
def test_no_command_line_loads_what_takes_long(program: str, slow: tuple[str, ...]) -> None:
    code = f"import sys, {program}; print(sorted({{*{slow}}} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "[]\n"
