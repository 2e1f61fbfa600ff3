"""Limited slots for long-lived clients, each released once."""

from collections import Counter
from collections.abc import Callable
from functools import partial

from litestar.exceptions import HTTPException

RETRY_S = 5


class Slots:
    """Counts streams; used by the event loop alone."""

    def __init__(self, most: int, each: int) -> None:
        """Set the number of slots, and the limit of one token."""
        self._most, self._each = most, each
        self._taken = Counter[str]()

    @property
    def taken(self) -> int:
        """Number of slots in use."""
        return self._taken.total()

    def take(self, token: str) -> Callable[[], None]:
        """Take a slot for a token; return the function that releases it.

        Raises:
            HTTPException: the token has reached its limit (429), or all slots are in use (503).
        """
        if self._taken[token] >= self._each:
            raise _full(f"this token streams {self._each} times already", 429)
        if self.taken >= self._most:
            raise _full(f"{self._most} clients stream already", 503)
        self._taken[token] += 1
        return partial(self._give_back, token)

    def _give_back(self, token: str) -> None:
        self._taken[token] -= 1
        if not self._taken[token]:
            del self._taken[token]


def _full(problem: str, status: int) -> HTTPException:
    headers = {"Retry-After": str(RETRY_S)}
    return HTTPException(problem, status_code=status, headers=headers)
