"""Keeps the file of locations current while a coordinator's loop runs."""

import time
from pathlib import Path
from threading import Event, Thread
from typing import Final

import structlog

from common.durable import replace_file
from xco.coordinator.config import CoordinatorConfig
from xco.coordinator.locations import addresses, render
from xco.errors import ControllerError
from xco.protocol.stats import Stamp, read_stamp, read_statistics

PAUSE_S: Final = 0.5
"""Between two looks at what the loop publishes."""
_NOTHING: Final = Stamp(0, 0, 0)
_log = structlog.get_logger()


class LocationsFile:
    """Write the file in a thread during a `with` block; do nothing if none is configured.

    It stays at the end, so that wires go on while xco restarts. The loop recalls an existing one,
    which is not replaced until the controller has named all addresses that it knows.
    """

    def __init__(self, config: CoordinatorConfig) -> None:
        self._config = config
        self._path = Path(config.table.locations or "")
        named = addresses(config.topology, config.host)
        self._hosts = {number: address for number, address in named.items() if address}
        self._began_ns = time.monotonic_ns()
        self._written = _NOTHING
        self._problem: str | None = None
        self._ended = Event()
        self._thread = Thread(target=self._run, name="locations")

    def __enter__(self) -> None:
        if self._config.table.locations is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def look(self) -> None:
        """Write the file if the loop has published something new, and say what prevents it."""
        try:
            self._update()
        except OSError as error:
            self._tell(f"{self._path}: {error.strerror or 'cannot be written'}")
        except Exception as error:  # noqa: BLE001  the thread's firewall: the next look may work
            _log.exception("unexpected_error", where="locations")
            self._tell(f"{self._path}: unexpected error: {error}")
        else:
            self._tell("")

    def _run(self) -> None:
        self.look()
        while not self._ended.wait(PAUSE_S):
            self.look()

    def _update(self) -> None:
        stamp = self._stamp()
        missing = not self._path.exists()
        if stamp == self._written and not missing:
            return
        stations = self._stations() if stamp != _NOTHING else None
        if stations is None and not missing:
            return
        replace_file(self._path, render(self._hosts, stations or {}).encode())
        self._written = _NOTHING if stations is None else stamp

    def _stamp(self) -> Stamp:
        """Return that of what the loop publishes; an earlier loop's does not count."""
        try:
            stamp = read_stamp(self._config.places_file)
        except ControllerError:
            return _NOTHING
        return stamp if stamp.updated_ns >= self._began_ns else _NOTHING

    def _stations(self) -> dict[int, int] | None:
        """Return the number of the host of each MAC address; None: some may be unknown yet."""
        try:
            table = read_statistics(self._config.places_file)
        except ControllerError:
            return None  # the loop ended during a write
        rows = (row for row in table.rows if row["ethernet"] and row["host"] in self._hosts)
        stations = {row["ethernet"]: row["host"] for row in rows}
        return stations if table.values["complete"] else None

    def _tell(self, problem: str) -> None:
        """Log a change, and show it to `xco status`."""
        if problem == self._problem:
            return
        if problem:
            _log.warning("locations are not written", problem=problem)
        elif self._problem:
            _log.info("locations are written again", file=str(self._path))
        self._problem = problem
        note = self._config.locations_problem_file
        try:
            replace_file(note, problem.encode())
        except OSError as error:
            _log.warning("status cannot show it", file=str(note), problem=error.strerror)


def problem_of(config: CoordinatorConfig) -> str:
    """Return why the file is not written; empty: it is, or none is configured."""
    if config.table.locations is None:
        return ""
    try:
        problem = config.locations_problem_file.read_text()
    except OSError:
        return ""
    return f"locations: {problem}" if problem else ""
