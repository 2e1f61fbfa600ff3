"""Waiting for another process, and free ports."""

import time
from collections.abc import Callable
from typing import TypeVar

from benchmarks.ports import free_port

__all__ = ["PATIENCE_S", "POLL_S", "eventually", "free_port"]

# A busy machine is slow: how long a test waits says nothing of how fast the product is.
PATIENCE_S = 30.0
POLL_S = 0.01

T = TypeVar("T")


def eventually(
    condition: Callable[[], T],
    seconds: float = PATIENCE_S,
    *,
    poll_s: float = POLL_S,
    state: Callable[[], object] | None = None,
) -> T:
    """Return the first true value of a condition; fail with the last state if there is none.

    The last check begins after the deadline, however slow the machine is.
    """
    deadline = time.monotonic() + seconds
    while True:
        late = time.monotonic() >= deadline
        value = condition()
        if value:
            return value
        if late:
            last = value if state is None else state()
            raise AssertionError(f"not so within {seconds:g} s: {_source(condition)}: {last!r}")
        time.sleep(poll_s)


def _source(condition: Callable[[], object]) -> str:
    code = getattr(condition, "__code__", None)
    if code is None:
        return repr(condition)
    return f"{code.co_name}, {code.co_filename}:{code.co_firstlineno}"
