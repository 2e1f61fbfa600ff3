"""Prints what the daemon needs of the lock file, or what extras or groups add to that."""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

DAEMON = "xtc (pyproject.toml)"
"""Name of the daemon in the lock file; its groups are `xtc (pyproject.toml:GROUP)`."""

_ON_PYPY = {"cffi": frozenset({"pyzmq"})}
"""Requirements for PyPy only, which no xtc package supports; the lock file does not mark them."""
_NAME = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==")
_WANTED_BY = re.compile(r"^\s+#\s+(?:via\s+)?(?P<who>\S.*)$")


class Locked(NamedTuple):
    """One distribution of the lock file."""

    name: str
    wanted_by: frozenset[str]
    """The distributions that need it."""
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
    """Return the root's direct and indirect requirements, in the order of the lock file."""
    every = list(locked)
    needed = {root}
    while more := {one.name for one in every if one.wanted_by & needed} - needed:
        needed |= more
    return [one for one in every if one.name in needed]


def added(locked: Iterable[Locked], names: Iterable[str]) -> list[Locked]:
    """Return these distributions and their requirements, without those of the daemon.

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
    """Return what an extra, or a dependency group, asks for, by name."""
    table = tomllib.loads(project.read_text())
    lists = table["dependency-groups"] | table["project"]["optional-dependencies"]
    return {re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in lists[extra]}


def main(path: str, *extras: str) -> None:
    """Print the daemon's part of the lock file at this path, or what extras or groups add to it."""
    locked = list(parse(Path(path).read_text()))
    names = {name for extra in extras for name in names_of(extra)}
    for one in added(locked, names) if extras else closure(locked):
        sys.stdout.write(one.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
