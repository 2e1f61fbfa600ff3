"""Positions of the keys in a TOML text, for messages.

tomllib keeps no positions, and neither does tomlkit. A statement of TOML is the shortest run of
lines that tomllib accepts alone, so tomllib itself finds the start of each statement, and no second
parser can disagree with it.
"""

import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

LONGEST = 200
"""Maximum lines of one statement; after a longer one, the rest of the text gets no line numbers."""

Path = tuple[str, ...]


class _Statement(NamedTuple):
    line: int
    header: bool
    content: dict[str, Any]


def key_lines(text: str) -> dict[str, int]:
    """Return the line, from 1, of the first occurrence of each dotted key in a valid TOML text."""
    found: dict[str, int] = {}
    table: Path = ()
    for line, header, content in _statements(text):
        paths = list(_paths(content, () if header else table))
        if header:
            table = paths[0]
        for path in paths:
            for depth in range(1, len(path) + 1):
                found.setdefault(".".join(path[:depth]), line)
    return found


def _statements(text: str) -> Iterator[_Statement]:
    first, chunk = 1, ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        chunk += line + "\n"
        try:
            content = tomllib.loads(chunk)
        except (ValueError, RecursionError):
            if number - first >= LONGEST:
                return
            continue
        if content:
            yield _Statement(first, chunk.lstrip().startswith("["), content)
        first, chunk = number + 1, ""


def _paths(content: dict[str, Any], above: Path) -> Iterator[Path]:
    """Yield the path of every value that is not a table, and of every empty table."""
    for key, value in content.items():
        path = (*above, key)
        if isinstance(value, dict) and value:
            yield from _paths(value, path)
        else:
            yield path
