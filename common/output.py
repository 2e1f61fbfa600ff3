"""Output of results: JSON for programs, tables as wide as the terminal for people."""

import os
import sys
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table

UNBOUNDED = 10_000
"""More columns than any table fills."""


def print_json(value: object) -> None:
    """Print one JSON document."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def counted(number: int, noun: str, *, none: str = "") -> str:
    """Return a number with its noun, in the singular or the plural."""
    if number == 0 and none:
        return none
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def fitting_console() -> Console:
    """Return a console as wide as the terminal, and unlimited for a pipe or file."""
    console = Console(highlight=False, emoji=False)
    bounded = console.is_terminal or "COLUMNS" in os.environ
    return console if bounded else Console(highlight=False, emoji=False, width=UNBOUNDED)


def natural_width(table: Table) -> int:
    """Return the columns that a table fills without a limit."""
    return Console(width=UNBOUNDED).measure(table).maximum


def sparkline(values: Sequence[float]) -> str:
    """Draw values from 0 to their maximum as a row of blocks."""
    blocks = "▁▂▃▄▅▆▇█"
    top = max(values, default=0.0)
    if top <= 0:
        return blocks[0] * len(values)
    return "".join(blocks[min(int(value / top * 8), 7)] for value in values)
