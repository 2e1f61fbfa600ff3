"""Isolates routers: an unforeseen error is counted, logged, and affects no other router."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog

_One = TypeVar("_One")
_Result = TypeVar("_Result")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Unforeseen:
    """Replaces the result of work that raised an unforeseen error."""

    words: str


def uncounted(_where: str) -> None:
    """Do not count a logged error."""


class Firewall:
    """Runs work on one router at a time."""

    def __init__(self, count: Callable[[str], None] = uncounted) -> None:
        """Count errors by their origin."""
        self._count = count

    def run(
        self,
        where: str,
        concerned: str,
        work: Callable[[], _Result],
        *,
        passing: tuple[type[Exception], ...] = (),
    ) -> _Result | Unforeseen:
        """Return the result of work, or its unforeseen error.

        Args:
            where: the stage, for metric and log.
            concerned: the router or interface, for the log.
            work: the function to call.
            passing: expected errors, which are raised to the caller.
        """
        try:
            return work()
        except passing:
            raise
        except Exception as error:  # one router's error must not affect the others
            self._count(where)
            log.exception("unexpected_error", where=where, vr=concerned)
            return Unforeseen(f"unforeseen {type(error).__name__} ({where}): {error}")

    def each(
        self, where: str, concerned: Mapping[str, _One], work: Callable[[_One], _Result]
    ) -> dict[str, _Result | Unforeseen]:
        """Return the results of one stage for all routers; each fails on its own.

        Args:
            where: the stage, for metric and log.
            concerned: the object to work on, by the router's name.
            work: the function to call for each.
        """
        return {name: self.run(where, name, partial(work, one)) for name, one in concerned.items()}
