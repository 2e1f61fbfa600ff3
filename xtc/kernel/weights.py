"""The weight of a control group, v1 or v2: `cpu.shares` or `cpu.weight`, and its rivals.

An idle group (`cpu.idle` is 1) has the smallest possible weight, and accepts no other.
"""

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from xtc.kernel.files import KeptFile
from xtc.spec import CGROUP_V1, CGROUP_V2, Scale

SCALES: Final = (CGROUP_V2, CGROUP_V1)


class Level(NamedTuple):
    """A control group and its siblings."""

    path: str
    scale: Scale
    weight: int
    """0 for an idle group."""
    rivals: tuple[str, ...]
    """The siblings that have processes."""


class GroupWeight:
    """The weight of one control group, with a file that stays open."""

    def __init__(self, scale: Scale, directory: int) -> None:
        self.scale = scale
        self._file = KeptFile(scale.parameter, directory=directory, writable=True)
        self._idle: KeptFile | None = None
        with suppress(FileNotFoundError):  # before Linux 5.15
            self._idle = KeptFile("cpu.idle", directory=directory)

    @property
    def idle(self) -> bool:
        """Whether the group is idle, so that its weight has no effect; may raise OSError."""
        return self._idle is not None and self._idle.read().strip() == "1"

    def read(self) -> int:
        """Return the weight. Raises OSError or ValueError."""
        return int(self._file.read().partition("\n")[0])

    def write(self, weight: int) -> None:
        """Write the weight. Raises OSError."""
        self._file.write(f"{weight}\n")


def open_weight(path: str) -> GroupWeight | None:
    """Open a group's weight; None if its directory has none.

    Raises:
        OSError: there is no such directory, or its file may not be written.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for scale in SCALES:
            with suppress(FileNotFoundError):
                return GroupWeight(scale, directory)
        return None
    finally:
        os.close(directory)


def rivals(path: Path, but: Collection[str] = ()) -> dict[str, int]:
    """Return the weights of a group's siblings with processes, by name, and of its parent's own.

    Processes of the parent itself contend as well (v1, and the root of v2), each alone with the
    default weight; since only few of them want the CPU at the same time, they count as one, without
    a name.

    Args:
        path: the group's directory.
        but: names of siblings to exclude.

    Raises:
        OSError: the parent cannot be read.
    """
    found = {}
    for sibling in _directories(path.parent):
        if sibling.name == path.name or sibling.name in but:
            continue
        weight = weight_of(sibling)
        if weight is not None and populated(sibling):
            found[sibling.name] = weight
    scale = scale_of(path)
    if scale is not None and _has_processes(path.parent):
        found[""] = scale.default
    return found


def levels(path: Path) -> tuple[Level, ...]:
    """Return the weights of a group and of each ancestor, with their siblings, from the group up.

    A weight counts among siblings only: a group gets at most the CPU of its parent. The root of a
    hierarchy has no rivals.
    """
    found = []
    while not path.is_mount() and (scale := scale_of(path)) is not None:
        try:
            others = tuple(sorted(name or "other processes of its group" for name in rivals(path)))
        except OSError:
            break
        weight = weight_of(path)
        found.append(Level(str(path), scale, scale.default if weight is None else weight, others))
        path = path.parent
    return tuple(found)


def scale_of(path: Path) -> Scale | None:
    """Return the scale of a group's weight; None if it has no weight."""
    return next((scale for scale in SCALES if (path / scale.parameter).exists()), None)


def weight_of(path: Path) -> int | None:
    """Return a group's weight, 0 for an idle one; None where it cannot be read."""
    scale = scale_of(path)
    with suppress(OSError, ValueError):
        return None if scale is None else int((path / scale.parameter).read_text())
    return None


def populated(path: Path) -> bool:
    """Whether a group or one below it has processes; True where that cannot be read."""
    try:
        return "populated 1" in (path / "cgroup.events").read_text()
    except FileNotFoundError:
        below = _directories(path)
        return _has_processes(path) or any(populated(child) for child in below)
    except OSError:
        return True


def pressure(path: Path) -> float | None:
    """Return the share of the last 10 s in which something in the group waited for a CPU.

    None where the kernel does not report it (cgroup v1, or without pressure stall information).
    """
    try:
        some = (path / "cpu.pressure").read_text().partition("\n")[0]
        return float(some.partition("avg10=")[2].partition(" ")[0]) / 100
    except (OSError, ValueError):
        return None


def _has_processes(path: Path) -> bool:
    try:
        with (path / "cgroup.procs").open("rb") as file:
            return bool(file.read(1))
    except OSError as error:
        return error.errno == errno.EOPNOTSUPP  # a threaded group


def _directories(path: Path) -> Iterator[Path]:
    """Yield the direct child groups that still exist."""
    with suppress(FileNotFoundError), os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)
