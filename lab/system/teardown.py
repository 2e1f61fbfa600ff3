"""Finds and removes all objects of a lab by its prefix, after its owner was killed."""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from lab.errors import LabError
from lab.plan import check_prefix
from lab.system import cgroups, namespaces

KILL_TIMEOUT_S: Final = 20.0
LOCKS: Final = Path("/run/xtc-lab")
"""A file for each prefix. It stays: of a removed one, two processes could lock a file each."""
_POLL_S: Final = 0.01
_ZOMBIE: Final = "Z"


class Remains(msgspec.Struct, frozen=True):
    """What exists of a lab on this machine."""

    namespaces: list[str]
    cgroups: list[str]
    processes: list[int]

    def __bool__(self) -> bool:
        return bool(self.namespaces or self.cgroups or self.processes)


def find(prefix: str) -> Remains:
    """Return the namespaces, control groups and processes of the lab with this prefix.

    Raises:
        BadRequestError: the prefix is invalid.
    """
    check_prefix(prefix)
    names = namespaces.named(prefix)
    root = cgroups.find_root()
    groups = cgroups.groups(root, prefix) if root else []
    found = _processes_in(names).union(*(cgroups.processes(group) for group in groups))
    return Remains(names, [str(group) for group in groups], sorted(found))


@contextlib.contextmanager
def alone(prefix: str) -> Iterator[None]:
    """Have no other lab with this prefix begin or end meanwhile; wait for one that does.

    The lock ends with its process (flock(2)). Only root reaches it, since a holder keeps others
    waiting.
    """
    LOCKS.mkdir(mode=0o700, exist_ok=True)
    with (LOCKS / prefix).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tear_down(prefix: str) -> Remains:
    """Kill and remove the lab with this prefix and return what was removed.

    Foreign processes in its namespaces count as its own.

    Raises:
        BadRequestError: the prefix is invalid.
        LabError: a process does not die, or a control group does not empty.
    """
    remains = find(prefix)
    _kill(remains.processes)
    for name in remains.namespaces:
        namespaces.remove(name)
    for group in remains.cgroups:
        try:
            cgroups.remove(Path(group))
        except OSError as error:
            raise LabError(f"control group {group} cannot be removed: {error}") from error
    return remains


def _processes_in(names: Iterable[str]) -> set[int]:
    wanted = {_identity(Path(namespaces.path(name))) for name in names} - {None}
    entries = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit()) if wanted else ()
    return {int(entry.name) for entry in entries if _identity(entry / "ns/net") in wanted}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:  # the process has ended, or is a zombie
        return None
    return status.st_dev, status.st_ino


def _kill(processes: Iterable[int]) -> None:
    left = set(processes) - {os.getpid()}
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while left := {pid for pid in left if _runs(pid)}:
        if time.monotonic() >= deadline:
            raise LabError(f"processes {sorted(left)} do not exit")
        time.sleep(_POLL_S)


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != _ZOMBIE
