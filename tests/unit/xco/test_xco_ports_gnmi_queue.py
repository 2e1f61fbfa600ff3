"""The queue of a stream's answers: its bounds, its end, and when it says that it is too much."""

import threading

import pytest

from xco.ports.gnmi_queue import Waiting
from xco.ports.gnmi_samples import Arrival

ANSWER = (None, Arrival(0))
FULL = 8 << 20


def putting(queue: Waiting, size: int = 1) -> threading.Thread:
    """Put one answer in a thread, which waits for room."""
    thread = threading.Thread(target=queue.put, args=(ANSWER, size))
    thread.start()
    return thread


def held(thread: threading.Thread) -> bool:
    thread.join(0.1)
    return thread.is_alive()


def test_many_bytes_or_many_answers_hold_up_more() -> None:
    for sizes in ([FULL], [0] * 1000):
        queue = Waiting()
        for size in sizes:
            queue.put(ANSWER, size)
        thread = putting(queue)
        assert held(thread)
        assert queue.get(0) is ANSWER
        thread.join()


def test_a_closed_queue_holds_up_nothing() -> None:
    queue = Waiting()
    queue.put(ANSWER, FULL)
    thread = putting(queue)
    assert held(thread)
    queue.close()
    thread.join()


def test_the_end_comes_after_what_is_there() -> None:
    queue = Waiting()
    queue.put(ANSWER, 1)
    queue.end(EOFError("over"))
    assert queue.get(0) is ANSWER
    with pytest.raises(EOFError, match="over"):
        queue.get(0)


def test_an_empty_queue_has_nothing_in_time() -> None:
    assert Waiting().get(1) is None


def test_only_a_queue_that_is_never_empty_again_is_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, now_ns = Waiting(), [0]
    monkeypatch.setattr("xco.ports.gnmi_queue.time.monotonic_ns", lambda: now_ns[0])

    def after(seconds: int) -> None:
        now_ns[0] += seconds * 1_000_000_000
        queue.get(0)

    for _ in range(2):  # a slow reader: found full, then emptied
        queue.put(ANSWER, FULL)
        after(4)
        after(4)
    queue.put(ANSWER, 1)
    queue.put(ANSWER, FULL)
    after(4)
    with pytest.raises(EOFError, match="more than the agent can read"):
        after(6)
