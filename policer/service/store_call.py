"""Asks the store in a thread, and knows how long it has been silent; nothing else waits for it."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

SILENT_S = 6.0
"""Longer than a store waits for a lock (5 s): what it says itself comes first."""

P = ParamSpec("P")
T = TypeVar("T")


class Asking:
    """One who asks the store, one question at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._asked_at: float | None = None
        """When the question was put that is not answered yet."""

    async def ask(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the store answers, raise what it raises, however long it takes."""
        self._asked_at = self._clock()
        try:
            return await asyncio.to_thread(question, *args, **kwargs)
        finally:
            self._asked_at = None

    @property
    def problem(self) -> str:
        """Say that the store is silent, while it is; any thread may ask."""
        asked_at = self._asked_at
        silent = 0.0 if asked_at is None else self._clock() - asked_at
        return f"the database has not answered for {silent:.0f} s" if silent > SILENT_S else ""
