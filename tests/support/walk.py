"""Runs the commands of a document in one shell, and compares what they print with what is shown.

Blocks of kind `sh` are scripts. In blocks of kind `console`, a command is behind `$ `, and what it
prints is below; `...` stands for what is left out, lines or the rest of one.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

import pytest
from documents_rig import BLOCK

TOLERANCE = 0.25
"""By how much a number may differ from the one that is shown, as a share of it."""
LEFT_OUT = "..."
_ANY = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\dZ|(?=[0-9a-f]*\d)[0-9a-f]{12}")
"""Days, times and ids are others each time."""
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(%?)")
_MARK = "-- done with"


class Step(NamedTuple):
    """A command, and the lines that are shown of what it prints."""

    command: str
    shown: tuple[str, ...] = ()


def steps(text: str) -> Iterator[Step]:
    """Yield the commands of a document in their order."""
    for kind, body in BLOCK.findall(text):
        if kind == "sh":
            yield Step(body)
        elif kind == "console":
            for part in re.split(r"(?m)^\$ ", body)[1:]:
                command, *shown = part.rstrip("\n").split("\n")
                yield Step(command, tuple(shown))


def fits(printed: Sequence[str], shown: Sequence[str]) -> bool:
    """Whether what was printed is what is shown, but for numbers within bounds, times and ids."""
    if not shown:
        return not printed
    first, *rest = shown
    if first == LEFT_OUT:
        return any(fits(printed[start:], rest) for start in range(len(printed) + 1))
    return bool(printed) and _line_fits(printed[0], first) and fits(printed[1:], rest)


def _line_fits(printed: str, shown: str) -> bool:
    words, expected = printed.split(), shown.split()
    if expected[-1:] == [LEFT_OUT]:
        expected.pop()
        words = words[: len(expected)]
    return len(words) == len(expected) and all(map(_word_fits, words, expected))


def _word_fits(printed: str, shown: str) -> bool:
    if printed == shown or (_ANY.fullmatch(printed) and _ANY.fullmatch(shown)):
        return True
    ours, theirs = _NUMBER.fullmatch(printed), _NUMBER.fullmatch(shown)
    if ours is None or theirs is None or ours[2] != theirs[2]:
        return False
    wanted = float(theirs[1])
    return abs(float(ours[1]) - wanted) <= TOLERANCE * wanted


class Terminal:
    """A shell that runs command after command; with the block end it and all that it started."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._process = subprocess.Popen(
            [*words, "bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
        )
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):  # the shell's group has all that it has started
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def run(self, command: str) -> tuple[int, list[str]]:
        """Run a command; return its exit code and the lines that it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._count += 1
        mark = f"{_MARK} {self._count}:"
        self._process.stdin.write(f"{command.rstrip()}\necho '{mark}' $?\n")
        self._process.stdin.flush()
        printed = []
        for line in self._process.stdout:
            before, found, code = line.partition(mark)
            if found:
                return int(code), printed + ([before] if before else [])
            printed.append(line.rstrip("\n"))
        raise AssertionError(f"the shell ended at {command}: {printed}")

    def run_until_it_fits(self, step: Step, patience_s: float, *, again: bool) -> None:
        """Run a command; where `again` is set, until it prints what is shown."""
        until = time.monotonic() + patience_s
        while True:
            code, printed = self.run(step.command)
            shown = [line.rstrip() for line in printed]
            if code == 0 and fits(shown, step.shown):
                return
            words = "\n".join([f"$ {step.command}", *printed, f"exit code {code}; shown is:"])
            if not again or time.monotonic() > until:
                pytest.fail("\n".join([words, *step.shown]))
            time.sleep(0.3)
