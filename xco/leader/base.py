"""The interface of all leases: one leader, and an epoch that grows with each change of leader."""

from collections.abc import Callable
from typing import Protocol

EPOCH_AHEAD_NS = 86_400 * 10**9
"""An epoch further ahead of the clock than this is damaged and ignored."""
Clock = Callable[[], int]
"""A clock: nanoseconds since 1970."""


class Lease(Protocol):
    """One controller's part in the leader election."""

    def acquire(self, above: int = 0) -> int | None:
        """Return a new epoch if this controller holds the lease now; None while another does.

        It is higher than `above`, an epoch that hosts have heard, unless that is too far ahead.

        A controller that already holds the lease gets another epoch.

        Raises:
            ControllerError: the holder cannot be determined, or the epoch could not be stored.
        """
        ...

    def still(self) -> bool:
        """Whether this controller certainly holds the lease."""
        ...

    def release(self) -> None:
        """Release the lease; never fails."""
        ...


def next_epoch(now_ns: int, *given: int) -> int:
    """Return an epoch above the earlier ones, ignoring those too far ahead of the clock."""
    most = now_ns + EPOCH_AHEAD_NS
    return max(now_ns, *(epoch + 1 for epoch in given if epoch <= most))
