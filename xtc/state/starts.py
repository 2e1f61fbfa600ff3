"""Counts starts without a clean stop: a daemon that keeps crashing must not keep capping."""

from pathlib import Path

import msgspec

from common.durable import replace_file
from common.units import Seconds
from xtc.state.journal import boot_id

MOST = 3
"""Unclean starts within the window after which the daemon only observes."""
WINDOW_S = 600.0
"""Seconds in which they are counted."""

OBSERVED = (
    f"only observed: the daemon ended {MOST} times within {WINDOW_S / 60:.0f} minutes without a "
    "clean stop (find the cause in its log, then `xtc observe off`)"
)


class Record(msgspec.Struct, frozen=True):
    """The starts of this boot without a clean stop."""

    boot_id: str
    at: tuple[float, ...] = ()
    """Instants of the monotonic clock."""


def begun(before: Record | None, boot: str, now: Seconds) -> tuple[Record, bool]:
    """Return the record with a start now, and whether that start may only observe."""
    at = before.at if before is not None and before.boot_id == boot else ()
    recent = tuple(start for start in at if now - WINDOW_S <= start <= now)
    return Record(boot, (*recent[-MOST:], now)), len(recent) >= MOST


class Starts:
    """The record as a file in the state directory, which the daemon holds exclusively."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "starts"

    def begin(self, now: Seconds) -> bool:
        """Note a start; return whether it may only observe. An unreadable record counts as none.

        Raises:
            OSError: it cannot be written.
        """
        record, observe = begun(self._read(), boot_id(), now)
        replace_file(self._path, msgspec.json.encode(record), mode=0o600)
        return observe

    def end(self) -> None:
        """Note a clean stop."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> Record | None:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None
