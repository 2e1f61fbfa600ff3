"""Looks at ports in the background: a thread for each switch, so that none delays another."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from xco.errors import PortError
from xco.ports.agent import Look
from xco.ports.factory import Source
from xco.ports.reader import Reading

BACKOFF_S: Final = 0.5
"""Time before the first attempt to reach a switch that is away."""
_log = structlog.get_logger("xco.ports")


class Poller:
    """Reads one source in a thread of its own, and keeps its latest look."""

    def __init__(self, source: Source, interval_s: float) -> None:
        self._source, self._interval_s = source, interval_s
        self._stop = threading.Event()
        self._look: Look | None = None
        self._lock = threading.Lock()
        # A switch that hangs must not hold up the end of the program.
        self._thread = threading.Thread(target=self._run, daemon=True, name=source.name)

    def start(self) -> None:
        """Start to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; do not wait for it."""
        self._stop.set()

    def latest(self) -> Look | None:
        """Return the latest look, once; None if there is none since the last call."""
        with self._lock:
            look, self._look = self._look, None
        return look

    def _run(self) -> None:
        due, failures = time.monotonic(), 0
        while not self._stop.is_set():
            look, away = looked(self._source)
            with self._lock:
                self._look = joined(self._look, look)
            failures = failures + 1 if away else 0
            pause = pause_s(self._interval_s, failures, self._source.backoff_max_s)
            due = max(due + pause, time.monotonic())
            self._stop.wait(due - time.monotonic())
        self._source.reader.close()


def joined(before: Look | None, now: Look) -> Look:
    """Return a look with what an earlier one has of other ports."""
    return now if before is None else Look(now.read_ns, {**before.readings, **now.readings})


def pause_s(interval_s: float, failures: int, longest_s: float) -> float:
    """Return the time to the next look, after this many failed ones in a row."""
    if not failures:
        return interval_s
    doubled: float = BACKOFF_S * 2 ** min(failures - 1, 16)
    return max(interval_s, min(doubled, longest_s))


def looked(source: Source) -> tuple[Look, bool]:
    """Read a source once; return the look, and whether none of its ports could be read."""
    began_ns = time.monotonic_ns()
    try:
        readings: Sequence[Reading | None] = source.reader.read()
    except PortError as error:
        return Look(time.monotonic_ns(), _each(source, error)), True
    except Exception as error:  # noqa: BLE001  the thread's firewall: the next look may work
        _log.exception("unexpected_error", where="ports", source=source.name)
        failed = PortError(source.name, f"unexpected error: {error}", "report it with the log")
        source.reader.close()
        return Look(time.monotonic_ns(), _each(source, failed)), True
    middle_ns = (began_ns + time.monotonic_ns()) // 2
    found = zip(source.ports, readings, strict=True)
    return Look(middle_ns, {port: one for port, one in found if one is not None}), False


def _each(source: Source, error: PortError) -> Mapping[int, Reading]:
    return dict.fromkeys(source.ports, error)
