"""Prints the part of the lock file that a package needs: the daemon, or what extras add to it."""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

DAEMON = "xtc (pyproject.toml)"
"""How the lock file names the daemon itself; its groups are `xtc (pyproject.toml:GROUP)`."""

_ON_PYPY = {"cffi": frozenset({"pyzmq"})}
"""Who needs what on PyPy alone, which no package of ours is for; the lock file does not tell."""
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
        wanted_by = frozenset(line["who"] for line in found if line)
        yield Locked(match["name"], wanted_by - _ON_PYPY.get(match["name"], frozenset()), block)


def closure(locked: Iterable[Locked], root: str = DAEMON) -> list[Locked]:
    """Return what the root needs, directly and indirectly, in the order of the lock file."""
    every = list(locked)
    needed = {root}
    while more := {one.name for one in every if one.wanted_by & needed} - needed:
        needed |= more
    return [one for one in every if one.name in needed]


def added(locked: Iterable[Locked], names: Iterable[str]) -> list[Locked]:
    """Return these distributions and what they need, without what the daemon needs anyway.

    Raises:
        ValueError: one of them is not in the lock file.
    """
    every, needed = list(locked), set(names)
    if missing := needed - {one.name for one in every}:
        raise ValueError(f"not in the lock file: {', '.join(sorted(missing))}")
    while more := {one.name for one in every if one.wanted_by & needed} - needed:
        needed |= more
    there = {one.name for one in closure(every)}
    return [one for one in every if one.name in needed - there]


def names_of(extra: str, project: Path = Path("pyproject.toml")) -> set[str]:
    """Return what an extra asks for, by name."""
    table = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    return {re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in table[extra]}


def main(path: str, *extras: str) -> None:
    """Print the daemon's part of the lock file at this path, or what extras add to that."""
    locked = list(parse(Path(path).read_text()))
    names = {name for extra in extras for name in names_of(extra)}
    for one in added(locked, names) if extras else closure(locked):
        sys.stdout.write(one.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
