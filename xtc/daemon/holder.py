"""Finds the holder of a state directory: a working or hung daemon, or another command (proc(5))."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.dirlock import holders
from xtc.daemon.server import REQUESTS

_STATES: Final = {
    "T": "stopped by a signal",
    "t": "stopped by a debugger",
    "D": "waits in the kernel",
    "Z": "has ended, and its parent has not noticed",
}
"""States in `ps` of processes that do not respond; all others run or wait."""
_RUN: Final = "run"
"""The command of a daemon."""
WAITING: Final = "D"
"""Also the state of a process that writes to a disk: it hangs only if it stays so."""
LOOKS: Final = 20
"""Until a process that waits in the kernel counts as hung ..."""
PAUSE_S: Final = 0.1
"""... and the seconds between two of them."""
READINGS: Final = 3
"""Of the kernel's table of sockets."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a state directory."""

    pid: int
    command: tuple[str, ...]
    """Empty where it cannot be read, or where the process is ending."""
    state: str
    """Its state letter in proc(5); empty where it cannot be read."""
    listens: tuple[str, ...] = ()
    """The request sockets that it has bound."""

    @property
    def is_daemon(self) -> bool:
        """Whether it is `xtc run`, as far as that is known."""
        return not self.command or _RUN in self.command

    @property
    def hangs(self) -> bool:
        """Whether it is certainly not running now."""
        return self.state in _STATES

    def __str__(self) -> str:
        command = f" ({' '.join(self.command)})" if self.command else ""
        state = f", which {words}" if (words := _STATES.get(self.state)) else ""
        return f"process {self.pid}{command}{state}"


def look(
    directory: Path, proc: Path = Path("/proc"), pause: Callable[[float], None] = time.sleep
) -> tuple[Holder, ...]:
    """Return the processes that hold a state directory, as far as they are visible.

    This takes two seconds where one of them waits in the kernel.
    """
    for _ in range(LOOKS):
        found = tuple(_holder(pid, proc / str(pid)) for pid in holders(directory))
        if all(one.state != WAITING for one in found):
            break
        pause(PAUSE_S)
    return found


def obstacle(found: tuple[Holder, ...], runtime_dir: Path) -> str:
    """Return why a directory must not be taken over by force, "" if it may be.

    A holder that does not answer may hang, or have another runtime directory.
    """
    asked = os.path.realpath(runtime_dir / REQUESTS)
    for holder in found:
        if holder.hangs:
            continue
        if not holder.is_daemon:
            return f"{holder} is no daemon: wait until it ends, or kill it"
        elsewhere = [path for path in holder.listens if os.path.realpath(path) != asked]
        if elsewhere and len(elsewhere) == len(holder.listens):
            place = Path(elsewhere[0]).parent
            return f"{holder} listens elsewhere: ask it with --runtime-dir {place}"
    return ""


def _holder(pid: int, place: Path) -> Holder:
    return Holder(pid, _command(place), _state(place), _listens(place))


def _command(place: Path) -> tuple[str, ...]:
    raw = _read(place / "cmdline")
    return tuple(os.fsdecode(word) for word in raw.rstrip(b"\0").split(b"\0") if word)


def _state(place: Path) -> str:
    """Return the field after the name, which may contain `)` but ends at the last one."""
    found = re.search(rb".*\) (\S)", _read(place / "stat"), re.DOTALL)
    return found[1].decode("ascii", "replace") if found else ""


def _listens(place: Path) -> tuple[str, ...]:
    """Return the paths of the request sockets that a process has bound.

    A socket may be missing from a reading of the table during which others ended, so it is read
    several times: to miss a daemon would be to take its directory.
    """
    own = {link.removeprefix("socket:[").rstrip("]") for link in _links(place / "fd")}
    paths = set()
    lines = {line for _ in range(READINGS) for line in _read(place / "net/unix").splitlines()[1:]}
    for line in lines:
        fields = os.fsdecode(line).split(maxsplit=7)
        if len(fields) == 8 and fields[6] in own and fields[7].endswith(f"/{REQUESTS}"):
            paths.add(fields[7])
    return tuple(sorted(paths))


def _links(directory: Path) -> list[str]:
    try:
        return [str(entry.readlink()) for entry in directory.iterdir()]
    except OSError:
        return []  # it ended, or may not be read


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # as above
