"""The load of a simulated host's routers: a file that an operator's command rewrites."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import structlog

from common.durable import replace_file
from common.errors import ConfigError
from common.units import MAX_RATE

MAX_BYTES = 1 << 16
Pps = Annotated[float, msgspec.Meta(ge=0, le=MAX_RATE)]

log = structlog.get_logger()


class Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Load of one router, in packets/s."""

    usual_pps: Pps
    offered_pps: Pps


Loads = dict[str, Sent]


def write_loads(path: Path, loads: Mapping[str, Sent]) -> None:
    """Replace the file atomically, so that readers never see half of it."""
    replace_file(path, msgspec.json.format(msgspec.json.encode(loads), indent=1) + b"\n")


def read_loads(path: Path) -> Loads:
    """Read the file.

    Raises:
        ConfigError: it is missing, or contains no loads.
    """
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MAX_BYTES), type=Loads)
    except (OSError, msgspec.DecodeError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise ConfigError(str(path), problem, "start the sandbox again") from error


class Watched:
    """The current loads of a host from its file; an unreadable file changes nothing."""

    def __init__(self, path: Path, at_first: Mapping[str, float]) -> None:
        self._path = path
        self._offered = dict(at_first)
        self._seen: tuple[int, int] | None = None
        """Inode and time of the last file read."""

    def __call__(self) -> Mapping[str, float]:
        """Return the load of each router, in packets/s."""
        stamp = self._stamp()
        if stamp is not None and stamp != self._seen:
            self._seen = stamp
            self._take()
        return self._offered

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _take(self) -> None:
        try:
            loads = read_loads(self._path)
        except ConfigError as error:
            log.warning("loads_not_read", problem=str(error))
            return
        for name in self._offered.keys() & loads.keys():
            self._offered[name] = loads[name].offered_pps
