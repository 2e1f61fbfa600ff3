"""A signal ends a poll."""

import os
import select
import signal
from collections.abc import Iterator

import pytest

from xtc.daemon.wakes import Wake


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """Have signals noted instead of obeyed."""
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    yield heard
    signal.signal(signal.SIGUSR1, before)


def is_awake(wake: Wake) -> bool:
    """Whether a poll would end now; `select` takes no file above 1023, which tests leave open."""
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    return bool(poll.poll(0))


def test_a_signal_wakes_until_it_is_drained(heard: list[int]) -> None:
    with Wake() as wake:
        assert not is_awake(wake)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert is_awake(wake)
        wake.drain()
        assert not is_awake(wake)
        wake.drain()
    assert heard == [signal.SIGUSR1]


def test_any_number_of_signals_may_come(heard: list[int]) -> None:
    with Wake() as wake:
        for _ in range(5_000):
            os.kill(os.getpid(), signal.SIGUSR1)
        assert is_awake(wake)
    assert len(heard) == 5_000


def test_signals_go_where_they_went_before() -> None:
    with Wake() as outer:
        with Wake():
            pass
        assert signal.set_wakeup_fd(outer._writing.fileno()) == outer._writing.fileno()
    assert signal.set_wakeup_fd(-1) == -1
