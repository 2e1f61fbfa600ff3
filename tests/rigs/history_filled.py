"""A service whose store has the history of a router, and days of a contract; time is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from rest_rig import GOLD, PROMISE, Rig, opened

from policer.history.packing import packed
from policer.store import ChunkRow, DayRow

NOW = 1_795_437_000.0
"""2026-11-23T12:30:00Z."""
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


@contextmanager
def told(folder: Path, **settings: Any) -> Iterator[Rig]:
    """Make a service at half past noon whose store was made when the month began."""
    more = {"rate_burst": 1e6, "wall": lambda: NOW, "today": lambda: BEGIN, **settings}
    with opened(folder, **more) as rig:
        rig.store.hosts.add(GOLD, "test")
        rig.store.contracts.put("gold", "r1", PROMISE, None, "test")
        yield rig


def lead(rig: Rig) -> int:
    """Return the epoch of who leads."""
    leadership = rig.store.leadership("test")
    epoch = leadership.acquire()
    leadership.release()
    assert epoch is not None
    return epoch


def seconds(rig: Rig, begin: float, count: int, offered: float = 100.0, part: int = 1) -> None:
    """Keep so many whole chunks of seconds of r1."""
    second = [1.0, offered, 90.0, 1.0, 95.0, 80.0, 0.0, 0.0]
    rows = [
        ChunkRow("gold", 1, int(begin) + 10 * n, part, packed({"r1": second * 10}))
        for n in range(count)
    ]
    assert rig.store.history.put(rows, lead(rig))


def minutes(rig: Rig, begin: float, hours: int) -> None:
    """Keep so many whole hours of minutes of r1, half of whose seconds are known."""
    minute = [30.0, 6000.0, 3000.0, 0.0, 0.0, 0.0, 3.0, 6.0]
    rows = [
        ChunkRow("gold", 60, int(begin) + 3600 * n, 1, packed({"r1": minute * 60}))
        for n in range(hours)
    ]
    assert rig.store.history.put(rows, lead(rig))


def day(rig: Rig, of: int, vr: str = "r1", **sums: float) -> None:
    """Keep a day of November."""
    row = DayRow("gold", vr, date(2026, 11, of), 1, **sums)  # type: ignore[arg-type]
    assert rig.store.sla.put([row], lead(rig))
