"""When a message that was not taken is tried again; pure."""

from typing import Final

FIRST_S: Final = 5.0
GROWTH: Final = 4.0
LONGEST_S: Final = 36_000.0
JITTER: Final = 0.25
"""Share by which a wait is made longer or shorter, lest all come back at the same moment."""


def wait_s(attempts: int, luck: float, retry_after_s: float = 0.0) -> float:
    """Return how long to wait after so many attempts.

    Args:
        attempts: made so far, 1 or more.
        luck: a random number from 0 up to 1.
        retry_after_s: what the receiver asks for; it may ask for no more than the longest wait.
    """
    plain = min(LONGEST_S, FIRST_S * GROWTH ** min(attempts - 1, 20))
    return max(plain, min(LONGEST_S, retry_after_s)) * (1.0 + JITTER * (2.0 * luck - 1.0))
