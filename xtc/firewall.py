"""The firewall of each router: its unforeseen error is counted, logged, and reaches no other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

_Result = TypeVar("_Result")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Unforeseen:
    """What stands for the result of work that ended in an unforeseen error."""

    words: str


class Firewall:
    """Runs work on one router at a time."""

    def __init__(self, count: Callable[[str], None]) -> None:
        """Count errors by where they came up."""
        self._count = count

    def run(
        self,
        where: str,
        concerned: str,
        work: Callable[[], _Result],
        *,
        passing: tuple[type[Exception], ...] = (),
    ) -> _Result | Unforeseen:
        """Return the result of work, or the unforeseen error in which it ended.

        Args:
            where: the stage, for metric and log.
            concerned: the router or interface, for the log.
            work: what is to be done.
            passing: errors that are foreseen, and raised to the caller.
        """
        try:
            return work()
        except passing:
            raise
        except Exception as error:  # one router's error must not reach the others
            self._count(where)
            log.exception("unexpected_error", where=where, vr=concerned)
            return Unforeseen(f"unforeseen {type(error).__name__} ({where}): {error}")
