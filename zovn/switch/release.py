"""Undoes what a killed switch left at interfaces, by the compiled program."""

import subprocess
from collections.abc import Iterable
from typing import Literal

import msgspec

from zovn.core_files import program
from zovn.errors import SwitchError


class Released(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an interface."""

    interface: str
    result: Literal["released", "clean", "missing", "refused"]
    problem: str = ""
    """Why it was refused."""


def release(interfaces: Iterable[str]) -> tuple[Released, ...]:
    """Restore interfaces that no switch uses; others are refused.

    Raises:
        CoreError: the program is not built.
        SwitchError: it failed.
    """
    named = tuple(interfaces)
    if not named:
        return ()
    done = subprocess.run(  # noqa: S603  our own program, without a shell
        [program(), "--release", *named], capture_output=True, text=True, check=False
    )
    found = tuple(map(_released, done.stdout.splitlines()))
    if len(found) != len(named):
        raise SwitchError(f"zovn-switch --release failed: {done.stderr.strip()}")
    return found


def _released(line: str) -> Released:
    interface, result, *problem = line.split(" ", 2)
    said = " ".join(problem).removeprefix(f"{interface}: ")
    return msgspec.convert({"interface": interface, "result": result, "problem": said}, Released)
