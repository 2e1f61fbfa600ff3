"""Writes the history into the store, off the loop; loses some rather than wait, and counts it.

What is seen is collected in the service's loop, packed by one thread and written by another. What a
database that is away has not taken waits, up to a bound.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Final, TypeVar

import structlog

from policer.decide.telemetry import HostTelemetry
from policer.errors import StoreError
from policer.fleet.live import HostLive
from policer.history.chunks import MINUTE_S, SECOND_S, RawChunk
from policer.history.packing import packed
from policer.history.retention import Retention
from policer.recording.recorder import Recorder
from policer.recording.waiting import Keyed, Waiting
from policer.store import ChunkRow, DayRow, Store

COLLECT_EVERY_S: Final = 5.0
FLUSH_EVERY_S: Final = 2.0
PRUNE_EVERY_S: Final = 60.0
AT_ONCE: Final = 250
"""Rows in one transaction: others wait for the database no longer than that."""
MOST_BYTES: Final = 24 << 20
"""Of each kind of rows that wait."""
DAY_BYTES: Final = 500
"""What a row of a day takes of memory, about."""
Row = TypeVar("Row", bound=Keyed)
Put = Callable[[Sequence[Row], int], bool]
"""Writes rows of an epoch; False where that is over."""


class HistoryWriter:
    """Records what the leader sees."""

    def __init__(
        self,
        store: Store,
        leads: Callable[[], bool],
        retention: Retention,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin with nothing to write.

        Args:
            store: where it writes.
            leads: whether this policer gives the orders.
            retention: how long what is written is kept.
            wall: the time of day, seconds since 1970.
        """
        self._store, self._leads, self._wall = store, leads, wall
        self.retention = retention
        self._recorder = Recorder()
        self._chunks = {
            span: Waiting[ChunkRow](MOST_BYTES, lambda row: len(row.points))
            for span in (SECOND_S, MINUTE_S)
        }
        self._days = Waiting[DayRow](MOST_BYTES, lambda _: DAY_BYTES)
        self._epoch = 0
        """In which what is seen may be written; 0 before this policer led."""
        self._pruned_at = wall()
        self._flushing = Lock()
        self._taking = Lock()
        """Held while what was packed is taken over, and while it is dropped."""
        self._reign = 0
        """Counts how often another policer led meanwhile."""
        self._refused = ""
        self._failed: set[str] = set()
        """What a bug kept from being done; each is logged once."""
        self._log = structlog.get_logger("policer.history")

    @property
    def waiting(self) -> int:
        """Rows that the store has not taken yet."""
        return len(self._days) + sum(map(len, self._chunks.values()))

    @property
    def dropped(self) -> int:
        """Rows that were lost, since the start."""
        return self._days.dropped + sum(one.dropped for one in self._chunks.values())

    def lead(self, since: int, epoch: int) -> None:
        """Go on in a new epoch; what was seen before `since` is another leader's to write."""
        with self._taking:
            if not 0 < since <= self._epoch:
                self._reign += 1
                self._recorder.restart()
                self._days.drop_all()
                for chunks in self._chunks.values():
                    chunks.drop_all()
            self._epoch = epoch

    def heard(self, live: HostLive, telemetry: HostTelemetry) -> None:
        """Take over a tick that is believed; `live` is the host before it."""
        with self._guarded("tick_not_recorded"):
            self._recorder.heard(live, telemetry, self._wall())

    def end(self, host: str) -> None:
        """Record a host no longer."""
        self._recorder.end(host)

    async def run(self) -> None:
        """Collect and write until cancelled; `close` writes what is left then."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._collect(), name="history collects")
            group.create_task(self._write(), name="history writes")

    def close(self) -> None:
        """Write all that was seen; nothing else may use this meanwhile."""
        self._pack(self._cut(math.inf), self._reign)
        self.flush()

    def collect(self) -> None:
        """Take over what is complete."""
        self._pack(self._cut(self._wall()), self._reign)

    def flush(self) -> None:
        """Write what waits; what the store does not take waits on."""
        with self._flushing:
            try:
                self._flush()
            except StoreError as error:
                if not self._refused:
                    self._log.error("the store takes no history", problem=str(error))
                self._refused = str(error)
            else:
                self._refused = ""

    async def _collect(self) -> None:
        with _thread("history-pack") as thread:
            while True:
                await asyncio.sleep(COLLECT_EVERY_S)
                with self._guarded("history_not_packed"):
                    chunks = self._cut(self._wall())
                    await _done_by(thread, partial(self._pack, chunks, self._reign))

    async def _write(self) -> None:
        # A thread of its own: while the database hangs, it takes none from who keeps the lead.
        with _thread("history-write") as thread:
            while True:
                await asyncio.sleep(FLUSH_EVERY_S)
                with self._guarded("history_not_written"):
                    await _done_by(thread, self.flush)

    @contextmanager
    def _guarded(self, failure: str) -> Iterator[None]:
        """Do something for the history: a bug there must not stop what routers are held at."""
        try:
            yield
        except Exception:  # noqa: BLE001  the one firewall of the history
            if failure not in self._failed:
                self._failed.add(failure)
                self._log.exception(failure)

    def _cut(self, wall: float) -> list[RawChunk]:
        cut = self._recorder.cut(wall)
        self._days.add(cut.days)
        return [chunk for chunk in cut.chunks if self.retention.keeps(chunk.span)]

    def _pack(self, chunks: Sequence[RawChunk], reign: int) -> None:
        for host, span, at, part, routers in chunks:
            row = ChunkRow(host, span, at, part, packed(routers))
            with self._taking:
                if reign == self._reign:
                    self._chunks[span].add([row])

    def _flush(self) -> None:
        epoch = self._epoch
        if not (epoch and self._leads()):
            return
        for rows in self._chunks.values():
            self._put(rows, self._store.history.put, epoch)
        self._put(self._days, self._store.sla.put, epoch)
        now = self._wall()
        if not 0 <= now - self._pruned_at < PRUNE_EVERY_S:
            self._pruned_at = now
            self._store.prune_history(self.retention.oldest(now))

    @staticmethod
    def _put(waiting: Waiting[Row], put: Put[Row], epoch: int) -> None:
        while rows := waiting.some(AT_ONCE):
            if not put(rows, epoch):
                return
            waiting.written(rows)
            if len(rows) < AT_ONCE:
                return


@contextmanager
def _thread(name: str) -> Iterator[ThreadPoolExecutor]:
    """Lend a thread; who hangs in it holds up nothing here."""
    executor = ThreadPoolExecutor(1, name)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


async def _done_by(thread: ThreadPoolExecutor, work: Callable[[], None]) -> None:
    await asyncio.get_running_loop().run_in_executor(thread, work)
