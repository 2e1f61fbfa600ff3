"""Whoever asks the store knows how long it has been silent, while it is."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from common.clock import FakeClock
from common.units import Seconds
from policer.errors import StoreBusy
from policer.service.store_call import SILENT_S, StoreCall

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


@pytest.fixture
def answer() -> Iterator[threading.Event]:
    """What a store that hangs waits for; it is let go when the test ends."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_store_that_hangs_is_said_to_be_silent_until_it_answers(
    answer: threading.Event,
) -> None:
    clock = FakeClock(100.0)
    asking = StoreCall(clock.now)
    asked = asyncio.create_task(asking.ask(answer.wait, 30.0))
    await asyncio.sleep(0)
    clock.sleep(Seconds(SILENT_S))
    assert asking.problem == ""
    clock.sleep(Seconds(1.0))
    assert asking.problem == f"the database has not answered for {SILENT_S + 1:.0f} s"
    answer.set()
    assert await asked is True
    assert asking.problem == ""


async def test_a_store_that_answers_with_an_error_is_not_silent() -> None:
    def busy() -> None:
        raise StoreBusy("locked by another program")

    clock = FakeClock(100.0)
    asking = StoreCall(clock.now)
    with pytest.raises(StoreBusy):
        await asking.ask(busy)
    clock.sleep(Seconds(3600.0))
    assert asking.problem == ""
