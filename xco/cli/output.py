"""Output of reports: tables and lines for people, JSON for programs."""

import sys
from collections.abc import Iterable, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

Cell = str | Text
STYLES = {
    "slice": "green",
    "rate": "green",
    "open": "green",
    "closed": "dim",
    "fallback": "yellow",
    "unshaped": "red",
}
"""Colours of gate modes."""


def print_line(value: object) -> None:
    """Print one JSON document on a line of its own and flush it."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def show(*parts: str | Table) -> None:
    """Print lines and tables; do not interpret rich markup in names."""
    console = Console(highlight=False, emoji=False, markup=False)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str))


def table(headings: Sequence[str], rows: Iterable[Sequence[Cell]], left: int = 1) -> Table:
    """Return a table without lines; all columns after the first `left` are right-aligned."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        made.add_column(heading, justify="left" if number < left else "right")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return made


def styled(mode: str) -> Text:
    """Return a mode in its colour."""
    return Text(mode, STYLES.get(mode, ""))


def short_rate(bps: float) -> str:
    """Write a rate in bits/s with three digits: ``943 Mb/s``."""
    return f"{_scaled(bps)}b/s" if bps else "-"


def short_size(size: float) -> str:
    """Write bytes with three digits: ``1.5 MB``."""
    return f"{_scaled(size)}B" if size else "-"


def _scaled(value: float) -> str:
    for prefix in ("", "k", "M", "G"):
        if abs(value) < 999.5:
            return f"{value:.3g} {prefix}"
        value /= 1000
    return f"{value:.0f} T"
