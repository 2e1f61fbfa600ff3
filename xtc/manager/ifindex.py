"""Interfaces by number: what they bear stays with them when they are renamed."""

import socket
from collections.abc import Iterable, Mapping
from typing import Final

LOOK_EVERY: Final = 10
"""Calls between two looks whether a name is another interface's by now."""


class Numbers:
    """Remembers the numbers of interfaces by the names under which something was put on them."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self._known = dict(known)
        self._calls = 0

    def of(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of each name, the last one known where it is gone; forget others."""
        self._calls += 1
        trusted = self._known if self._calls % LOOK_EVERY else {}
        found = {name: trusted.get(name) or _number(name) for name in names}
        self._known = {
            name: number for name in found if (number := found[name] or self._known.get(name, 0))
        }
        return dict(self._known)


def renamed(numbers: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names of now of interfaces that had another one when their number was noted."""
    now = {name: _name(number) for name, number in numbers.items()}
    return tuple(sorted({new for old, new in now.items() if new not in {"", old}}))


def _number(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return 0  # there is none


def _name(number: int) -> str:
    try:
        return socket.if_indextoname(number)
    except OSError:
        return ""  # it is gone
