"""Calls that are made at the same time, each in a thread of its own."""

import threading
from collections.abc import Callable

from policer.errors import PolicerError


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Return what calls in threads of their own gave back, or the policer's error they raised."""
    outcomes: list[object] = []
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        barrier.wait()
        try:
            outcomes.append(call())
        except PolicerError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
