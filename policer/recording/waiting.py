"""Rows that wait for the database: each under its key, so many bytes and no more."""

from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Keyed(Protocol):
    """What has a key."""

    @property
    def key(self) -> Hashable:
        """What no other row has."""
        ...


Row = TypeVar("Row", bound=Keyed)


class Waiting(Generic[Row]):
    """What is not written yet, the oldest first; threads may share it."""

    def __init__(self, most_bytes: int, size: Callable[[Row], int]) -> None:
        """Take the bound, and what tells the size of a row."""
        self._most, self._size = most_bytes, size
        self._rows: dict[Hashable, Row] = {}
        self._mutex = Lock()
        self.bytes = 0
        """Of all that waits."""
        self.dropped = 0
        """Rows that were lost."""

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Iterable[Row]) -> None:
        """Take rows, each in the place of the one of its key; the oldest make room."""
        with self._mutex:
            for row in rows:
                self._remove(row.key)
                self._rows[row.key] = row
                self.bytes += self._size(row)
            while self.bytes > self._most:
                self._remove(next(iter(self._rows)))
                self.dropped += 1

    def some(self, most: int) -> list[Row]:
        """Return the oldest."""
        with self._mutex:
            return list(islice(self._rows.values(), most))

    def written(self, rows: Iterable[Row]) -> None:
        """Remove rows, but for those that others have taken the place of."""
        with self._mutex:
            for row in rows:
                if self._rows.get(row.key) is row:
                    self._remove(row.key)

    def drop_all(self) -> None:
        """Lose all."""
        with self._mutex:
            self.dropped += len(self._rows)
            self._rows, self.bytes = {}, 0

    def _remove(self, key: Hashable) -> None:
        row = self._rows.pop(key, None)
        if row is not None:
            self.bytes -= self._size(row)
