"""Queries the store in a thread, and measures how long it has been silent; nothing else waits."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

SILENT_S = 6.0
"""Longer than a store waits for a lock (5 s): the store's own error comes first."""

P = ParamSpec("P")
T = TypeVar("T")


class StoreCall:
    """Client of the store, with one query at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._asked_at: float | None = None
        """When the unanswered query started."""

    async def ask(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the store's answer or raise its error, however long it takes."""
        self._asked_at = self._clock()
        try:
            return await asyncio.to_thread(question, *args, **kwargs)
        finally:
            self._asked_at = None

    @property
    def problem(self) -> str:
        """Return a message while the store is silent; any thread may call it."""
        asked_at = self._asked_at
        silent = 0.0 if asked_at is None else self._clock() - asked_at
        return f"the database has not answered for {silent:.0f} s" if silent > SILENT_S else ""
