"""Prints the part of the lock file that the daemon needs: no development tools, no extras."""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

DAEMON = "xtc (pyproject.toml)"
"""How the lock file names the daemon itself; its groups are `xtc (pyproject.toml:GROUP)`."""

_NAME = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==")
_WANTED_BY = re.compile(r"^\s+#\s+(?:via\s+)?(?P<who>\S.*)$")


class Locked(NamedTuple):
    """One distribution of the lock file."""

    name: str
    wanted_by: frozenset[str]
    """Who needs it."""
    text: str
    """Its lines, hashes included."""


def parse(text: str) -> Iterator[Locked]:
    """Yield the distributions of a lock file as uv writes it.

    Raises:
        ValueError: a line belongs to no distribution.
    """
    for block in re.split(r"(?m)^(?=\S)", text):
        if not block.strip():
            continue
        head, *rest = block.splitlines()
        if not (match := _NAME.match(head)):
            raise ValueError(f"no name and version: {head}")
        found = (_WANTED_BY.match(line) for line in rest)
        yield Locked(match["name"], frozenset(line["who"] for line in found if line), block)


def closure(locked: Iterable[Locked], root: str = DAEMON) -> list[Locked]:
    """Return what the root needs, directly and indirectly, in the order of the lock file."""
    every = list(locked)
    needed = {root}
    while more := {one.name for one in every if one.wanted_by & needed} - needed:
        needed |= more
    return [one for one in every if one.name in needed]


def main(path: str) -> None:
    """Print the daemon's part of the lock file at this path."""
    for one in closure(parse(Path(path).read_text())):
        sys.stdout.write(one.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
