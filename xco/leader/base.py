"""What every lease is: who coordinates, and an epoch that grows with each change of who does."""

from collections.abc import Callable
from typing import Protocol

EPOCH_AHEAD_NS = 86_400 * 10**9
"""An epoch that is further ahead of the clock is damaged, and counts for nothing."""
Clock = Callable[[], int]
"""A clock: nanoseconds since 1970."""


class Lease(Protocol):
    """One controller's part in who coordinates."""

    def acquire(self, above: int = 0) -> int | None:
        """Return a new epoch if this controller holds the lease now; None while another does.

        It is higher than `above`, one that hosts have heard, unless that is too far ahead.

        A controller that holds it already gets another epoch.

        Raises:
            ControllerError: it cannot be known who holds it, or the epoch could not be kept.
        """
        ...

    def still(self) -> bool:
        """Whether the lease is certainly held."""
        ...

    def release(self) -> None:
        """Let go of the lease; never fails."""
        ...


def next_epoch(now_ns: int, *given: int) -> int:
    """Return an epoch above those given before, except those too far ahead of the clock."""
    most = now_ns + EPOCH_AHEAD_NS
    return max(now_ns, *(epoch + 1 for epoch in given if epoch <= most))
