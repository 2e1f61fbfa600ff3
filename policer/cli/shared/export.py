"""Common parts of the commands that show or export data of a period."""

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from policer.cli.shared.times import instant, now
from policer.errors import SettingsError

LINES = "application/jsonl"
FEW = 50
"""Number of rows shown without a limit."""
MOST = 10_000

Latest = Annotated[
    int | None, typer.Option(min=1, max=MOST, help=f"The latest so many; {FEW} if not given.")
]
Jsonl = Annotated[
    bool, typer.Option("--jsonl", help="Print all matches, oldest first, one JSON object per line.")
]


def between(since: str | None, until: str | None) -> dict[str, str | None]:
    """Return the parameters of a period; raises SettingsError."""
    at = now()
    return {"from": instant("--since", since, at), "to": instant("--until", until, at)}


def whole(limit: int | None, other: str) -> None:
    """Check that an export is requested without a limit or another option.

    Raises:
        SettingsError: it is not.
    """
    if limit is not None:
        raise SettingsError("--limit", "--jsonl prints all", "leave it out; --since chooses")
    if other:
        raise SettingsError("--jsonl", f"{other} is given as well", "leave out one of the two")


def copied(chunks: Iterable[bytes]) -> None:
    """Write bytes to standard output as they arrive."""
    sys.stdout.flush()
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
