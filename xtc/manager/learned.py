"""Estimates that loops have learned about their routers, kept for the next run of the daemon.

A file in the state directory on which nothing depends. It is written without waiting for the disk;
a damaged or old file, or one of another host, is ignored with a log line.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from common.setpoint import Unit
from common.units import Seconds
from xtc.control.adaptive import AdaptiveState
from xtc.control.prior import Prior, learned
from xtc.manager.router import ManagedRouter
from xtc.modes import Mode
from xtc.spec import ActuatorSpec
from xtc.state.journal import Journal, read_file

NAME: Final = "estimates"
"""The file name."""
VERSION: Final = 1
MAX_BYTES: Final = 4 << 20
"""Maximum size of the file: ten thousand routers take half of it."""
MOST: Final = 10_000
"""Maximum number of routers; beyond it, only those configured now are remembered."""
SAVE_S: Final = Seconds(60.0)
OLDEST_S: Final = 30 * 86_400.0
"""Seconds of wall-clock time after which an estimate is forgotten."""
FUTURE_S: Final = 86_400.0
"""An estimate further in the future was written with a wrong clock, and is ignored."""

_MODEL: Final = re.compile(r"^(?:model name|Model|cpu model|Processor)\s*:\s*(.+)$", re.MULTILINE)

log = structlog.get_logger()


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One router's estimate, and the place it belongs to."""

    spec: ActuatorSpec
    unit: Unit
    prior: Prior
    at: float
    """Seconds of wall-clock time (time(2))."""


class Book(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    version: int
    cpu: str
    """The host's CPU: estimates from another CPU are worthless."""
    routers: dict[str, Kept] = {}


class Remembered:
    """The estimates of a host's routers, read at the start and saved periodically."""

    def __init__(
        self, journal: Journal, *, cpu: str, wall: Callable[[], float] = time.time
    ) -> None:
        """Read the file of an earlier daemon in the journal's directory.

        Args:
            journal: open; it writes the file.
            cpu: the host's CPU model.
            wall: seconds of wall-clock time.
        """
        self._journal, self._cpu, self._wall = journal, cpu, wall
        self._routers = dict(self._read())
        self._saved_at: Seconds | None = None

    def of(self, managed: ManagedRouter, unit: Unit) -> Prior | None:
        """Return the estimate for a router at its place, in a unit; None where there is none."""
        kept = self._routers.get(managed.plan.name)
        known = kept is not None and kept.spec == managed.plan.spec and kept.unit is unit
        return kept.prior if kept is not None and known else None

    def note(self, managed: ManagedRouter) -> None:
        """Remember what a router's loop has learned, if that is certain."""
        instance = managed.instance
        if instance is None or instance.mode is not Mode.CLOSED_LOOP or not instance.capped:
            return
        state = instance.law_state
        prior = learned(state.estimate) if isinstance(state, AdaptiveState) else None
        if prior is not None and prior.is_sane():
            kept = Kept(managed.plan.spec, instance.lease.unit, prior, self._wall())
            self._routers[managed.plan.name] = kept

    def look(self, routers: Iterable[ManagedRouter], now: Seconds) -> None:
        """Save the estimates, if the last time is long ago."""
        if self._saved_at is None:
            self._saved_at = now
        if now - self._saved_at >= SAVE_S:
            self._saved_at = now
            self.save(routers)

    def save(self, routers: Iterable[ManagedRouter]) -> None:
        """Have the journal's thread write the estimates of these routers."""
        known: dict[str, Kept] = {}
        for managed in routers:
            self.note(managed)
            kept = self._routers.get(managed.plan.name)
            if kept is not None and len(known) < MOST:
                known[managed.plan.name] = kept
        self._journal.keep(NAME, msgspec.json.encode(Book(VERSION, self._cpu, known)))

    def _read(self) -> Mapping[str, Kept]:
        try:
            raw = read_file(self._journal.descriptor, NAME, at_most=MAX_BYTES)
            book = msgspec.json.decode(raw, type=Book)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            log.warning("estimates_ignored", problem=f"{NAME}: {error}")
            return {}
        if book.version != VERSION or book.cpu != self._cpu:
            log.warning("estimates_ignored", problem=f"{NAME}: of another host or version")
            return {}
        return {name: kept for name, kept in book.routers.items() if self._is_usable(kept)}

    def _is_usable(self, kept: Kept) -> bool:
        age = self._wall() - kept.at
        return -FUTURE_S <= age <= OLDEST_S and kept.prior.is_sane()


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the kernel's name of the CPU; empty where it has none."""
    try:
        match = _MODEL.search(cpuinfo.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return match[1].strip() if match else ""
