"""Answers on their way from the thread of a call to its reader: bounded, whatever a switch sends.

While the queue is full, its thread takes nothing; HTTP/2's flow control then stops the switch.
"""

import threading
import time
from collections import deque
from typing import Any, Final

from xco.ports.gnmi_samples import Arrival

Answer = tuple[Any, Arrival]
_ANSWERS_MAX: Final = 1000
_BYTES_MAX: Final = 8 << 20
_FULL_NS: Final = 5_000_000_000
"""A queue that was full, and for this long not empty since, will not be emptied."""
_TOO_MUCH: Final = "the switch sends more than the agent can read"


class Waiting:
    """A queue between two threads; what ends it comes after all that is in it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._answers: deque[tuple[Answer, int]] = deque()
        self._bytes = self._full_ns = 0
        self._end: Exception | None = None
        self._closed = False

    def put(self, answer: Answer, size: int) -> None:
        """Add an answer of some bytes; wait for room unless the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._is_full())
            self._answers.append((answer, size))
            self._bytes += size
            self._changed.notify_all()

    def end(self, why: Exception) -> None:
        """Let `get` raise this once the queue is empty."""
        with self._changed:
            self._end = why
            self._changed.notify_all()

    def close(self) -> None:
        """Hold up `put` no longer: no reader is left."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def is_empty(self) -> bool:
        """Whether all answers that have arrived were taken."""
        return not self._answers

    def get(self, timeout_ns: int) -> Answer | None:
        """Return the next answer; None: there is none in time.

        Raises:
            EOFError: the queue stays full; with the problem and a fix.
            Exception: what `end` was given.
        """
        with self._changed:
            self._watch(time.monotonic_ns())
            self._changed.wait_for(lambda: self._answers or self._end, timeout_ns / 1e9)
            if not self._answers:
                if self._end is not None:
                    raise self._end
                return None
            answer, size = self._answers.popleft()
            self._bytes -= size
            self._changed.notify_all()
            return answer

    def _is_full(self) -> bool:
        return len(self._answers) >= _ANSWERS_MAX or self._bytes >= _BYTES_MAX

    def _watch(self, now_ns: int) -> None:
        """Raise EOFError if the reader does not keep up: a slow one finds it full, then empty."""
        if not self._answers:
            self._full_ns = 0
        elif self._is_full() and not self._full_ns:
            self._full_ns = now_ns
        if self._full_ns and now_ns - self._full_ns > _FULL_NS:
            raise EOFError(_TOO_MUCH, "raise `sample_interval`, or read fewer ports of it")
