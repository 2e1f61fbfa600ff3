"""Interfaces by number: settings stay with an interface when it is renamed."""

import socket
from collections.abc import Iterable, Mapping
from typing import Final

LOOK_EVERY: Final = 10
"""Calls between two checks whether a name belongs to another interface by now."""


class Numbers:
    """Remembers the numbers of interfaces by the names under which they were set up."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self._known = dict(known)
        self._calls = 0

    def of(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of each name, the last one known if it is gone; forget other names."""
        self._calls += 1
        trusted = self._known if self._calls % LOOK_EVERY else {}
        found = {name: trusted.get(name) or _number(name) for name in names}
        self._known = {
            name: number for name in found if (number := found[name] or self._known.get(name, 0))
        }
        return dict(self._known)


def renamed(numbers: Mapping[str, int]) -> tuple[str, ...]:
    """Return the current names of interfaces that were renamed since their number was noted."""
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
