"""Sends events to every webhook while this policer leads: each event at least once.

The store has a position of each webhook in the log of events. If an attempt fails, the message is
kept for a retry and the position moves on, so a message that is never accepted delays no other.
Both are written in one transaction, after the attempts. The next leader repeats what was not
recorded, and receivers recognize a repetition by its id.

All of this runs in its own loop and threads. Every webhook has its own tasks, so a slow endpoint
delays only itself.
"""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, TypeVar

import structlog

from policer.errors import StoreError
from policer.store import Endpoint, LetterRow, Store, Tried
from policer.store.service.webhooks import ALL
from policer.webhooks.courier import Courier, Letter
from policer.webhooks.message import Message, message_of
from policer.webhooks.outcomes import Outcome
from policer.webhooks.schedule import wait_s

LOOK_EVERY_S: Final = 1.0
REST_S: Final = 30.0
"""Pause of a webhook after its results could not be recorded: the messages are repeated."""
AGAIN_S: Final = 5.0
"""Pause after the store could not be read, or refused this leader's writes."""
AT_ONCE: Final = 8
"""Messages of one webhook that are tried at the same time."""
LAG: Final = 500
"""How many events of other kinds a position in the store may lag behind."""
T = TypeVar("T")


class Sent(NamedTuple):
    """A message of an attempt."""

    message: Message
    attempts: int
    """Number of earlier attempts."""
    letter: int | None = None
    """The row that it comes from; None for an event."""


class Work(NamedTuple):
    """Messages to try now, and the resulting position in the events."""

    sent: list[Sent]
    position: int
    more: bool
    """Whether there may be more to try immediately."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Connections of the notifier to the rest of the policer."""

    leads: Callable[[], int]
    """The epoch in which this policer leads; 0 while it does not."""
    tried: Callable[[str], None]
    """Called with the outcome of each attempt."""
    died: Callable[[], None]
    """Called for each message that is dead."""
    wall: Callable[[], float] = time.time
    luck: Callable[[], float] = random.random


class Notifier:
    """Delivers; call `run` once."""

    def __init__(self, store: Store, courier: Courier, ports: Ports) -> None:
        self._store, self._courier, self._ports = store, courier, ports
        self._threads = ThreadPoolExecutor(2, "webhooks")
        self._epoch = 0
        self._places: dict[str, int] = {}
        """Position in the events, by webhook; the store may lag behind."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rests: dict[str, float] = {}
        """End of the pause of a webhook, by the loop's clock."""
        self._unread = ""
        self._log = structlog.get_logger("policer.webhooks")

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            while True:
                seconds = LOOK_EVERY_S if await self._guarded(self._look(), "all") else AGAIN_S
                await asyncio.sleep(seconds)
        finally:
            self._stop()
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _look(self) -> None:
        """Find work, and start it; raises StoreError."""
        epoch = self._ports.leads()
        if epoch != self._epoch:
            self._stop()
            self._epoch, self._places = epoch, {}
        if not epoch:
            return
        newest, endpoints = await self._ask(self._news)
        self._say("")
        self._forget({endpoint.id for endpoint in endpoints})
        for endpoint in endpoints:
            if self._is_due(endpoint, newest):
                task = asyncio.create_task(self._serve(endpoint, epoch), name="webhook")
                self._tasks[endpoint.id] = task

    def _news(self) -> tuple[int, list[Endpoint]]:
        return self._store.events.newest(), self._store.webhooks.endpoints()

    def _is_due(self, endpoint: Endpoint, newest: int) -> bool:
        if endpoint.id in self._tasks or self._rests.get(endpoint.id, 0.0) > _monotonic():
            return False
        place = self._places.get(endpoint.id, endpoint.position)
        return place != newest or (endpoint.next_at is not None and endpoint.next_at <= self._now())

    async def _serve(self, endpoint: Endpoint, epoch: int) -> None:
        """Deliver the messages of one webhook; errors here do not stop others."""
        try:
            if not await self._guarded(self._turns(endpoint, epoch), endpoint.name):
                self._rests[endpoint.id] = _monotonic() + REST_S
        finally:
            if self._tasks.get(endpoint.id) is asyncio.current_task():
                del self._tasks[endpoint.id]

    async def _turns(self, endpoint: Endpoint, epoch: int) -> None:
        while await self._turn(endpoint, epoch):
            pass

    async def _guarded(self, work: Coroutine[None, None, None], webhook: str) -> bool:
        """Run a coroutine; return whether it succeeded."""
        try:
            await work
        except StoreError as error:
            self._say(str(error))
            return False
        except Exception:  # noqa: BLE001  the one firewall of webhooks
            self._log.exception("sending failed", webhook=webhook)
            return False
        return True

    async def _turn(self, endpoint: Endpoint, epoch: int) -> bool:
        """Try some messages, and record the results; return whether there may be more."""
        place = self._places.get(endpoint.id, endpoint.position)
        work = await self._ask(partial(self._work, endpoint, place))
        outcomes = await asyncio.gather(*(self._try(endpoint, sent) for sent in work.sent))
        tried = [self._tried(*pair) for pair in zip(work.sent, outcomes, strict=True)]
        if tried or not 0 <= work.position - endpoint.position < LAG:
            settle = partial(self._store.letters.settle, endpoint.id, tried, work.position, epoch)
            if not await self._ask(settle):
                # Another policer leads and retries these; this one will soon notice.
                self._rests[endpoint.id] = _monotonic() + AGAIN_S
                return False
        self._places[endpoint.id] = work.position
        for one in tried:
            if one.problem and one.next_at is None:
                self._ports.died()
                self._log.error("message_given_up", webhook=endpoint.name, message=one.message)
        return work.more

    def _work(self, endpoint: Endpoint, place: int) -> Work:
        """Read the messages to try: retries, and new events."""
        newest = self._store.events.newest()
        due = self._store.letters.due(endpoint.id, self._now(), AT_ONCE // 2)
        kinds = None if ALL in endpoint.kinds else endpoint.kinds
        # A position beyond the latest event is of another database, or of this one before a
        # restore.
        fresh = self._store.events.fresh(min(place, newest), AT_ONCE - len(due), kinds)
        full = len(fresh) == AT_ONCE - len(due)
        position = fresh[-1].id if full else max(newest, *(event.id for event in fresh), 0)
        sent = [*map(_again, due), *(Sent(message_of(event), 0) for event in fresh)]
        return Work(sent, position, full or len(due) == AT_ONCE // 2)

    async def _try(self, endpoint: Endpoint, sent: Sent) -> Outcome:
        message = sent.message
        letter = Letter(endpoint.url, endpoint.secret, message.id, message.body.encode())
        outcome = await self._courier.attempt(letter)
        self._ports.tried(outcome.kind)
        return outcome

    def _tried(self, sent: Sent, outcome: Outcome) -> Tried:
        """Return the record of an attempt."""
        message, attempts = sent.message, sent.attempts + 1
        one = Tried(message.id, message.kind, message.body, attempts, letter=sent.letter)
        if outcome.delivered:
            return one
        next_at = None
        if attempts < self._courier.rules().attempts and not outcome.final:
            seconds = wait_s(attempts, self._ports.luck(), outcome.retry_after_s)
            next_at = self._now() + timedelta(seconds=seconds)
        return Tried(
            message.id, message.kind, message.body, attempts, outcome.words, next_at, sent.letter
        )

    def _forget(self, there: set[str]) -> None:
        """Stop the tasks of removed webhooks."""
        for webhook in [name for name in self._tasks if name not in there]:
            self._tasks.pop(webhook).cancel()
        self._places = {name: at for name, at in self._places.items() if name in there}
        self._rests = {name: at for name, at in self._rests.items() if name in there}

    def _stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {}

    def _say(self, problem: str) -> None:
        if problem and not self._unread:
            self._log.error("webhooks_wait_for_store", problem=problem)
        self._unread = problem

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._ports.wall(), UTC)

    async def _ask(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, question)


def _monotonic() -> float:
    """Return seconds of the loop's clock."""
    return asyncio.get_running_loop().time()


def _again(row: LetterRow) -> Sent:
    return Sent(Message(row.message, row.kind, row.body), row.attempts, row.id)
