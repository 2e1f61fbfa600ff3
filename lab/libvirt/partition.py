"""The control groups of a private libvirtd's guests: created before them, cleaned up after them.

libvirt puts a domain of the partition ``/P`` below ``P.partition`` of every hierarchy
(libvirt.org/cgroups.html). Without systemd, another program must create that group.
"""

import contextlib
import errno
import os
import signal
from pathlib import Path
from typing import Final

from lab.system import cgroups

CONTROLLERS: Final = "+cpu +cpuset +memory +io +pids"


def groups(partition: str, mounts: str) -> list[Path]:
    """Return the partition's group in each hierarchy, given the text of /proc/mounts."""
    lines = [line.split()[:3] for line in mounts.splitlines() if len(line.split()) >= 3]
    points = [point for _, point, kind in lines if kind in {"cgroup", "cgroup2"}]
    return [Path(point, f"{partition}.partition") for point in dict.fromkeys(points)]


def create(partition: str) -> None:
    """Create the groups of a partition."""
    for group in groups(partition, _mounts()):
        group.mkdir(exist_ok=True)
        _hand_down_controllers(group.parent)
        _copy_cpuset(group)


def _hand_down_controllers(parent: Path) -> None:
    control = parent / "cgroup.subtree_control"
    if control.exists():
        present = (parent / "cgroup.controllers").read_text().split()
        wanted = [word for word in CONTROLLERS.split() if word.removeprefix("+") in present]
        control.write_text(" ".join(wanted))


def _copy_cpuset(group: Path) -> None:
    """Let the group use the CPUs of its parent: a new version 1 cpuset has no CPU at all."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (group / name).exists() and (group.parent / name).exists():
            (group / name).write_text((group.parent / name).read_text())


def sweep(partition: str) -> list[Path]:
    """Kill all processes in the groups of a partition, remove the groups and return them.

    Raises:
        OSError: a process does not die within two seconds.
    """
    found = [group for group in groups(partition, _mounts()) if group.is_dir()]
    below = {group: _deepest_first(group) for group in found}
    for directory in (directory for group in found for directory in below[group]):
        for pid in _processes(directory):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for directory in (directory for group in found for directory in below[group]):
        cgroups.remove(directory)
    return found


def _processes(group: Path) -> set[int]:
    try:
        return cgroups.processes(group)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return set()  # a threaded group of version 2: its parent lists its processes


def _deepest_first(group: Path) -> list[Path]:
    entries = [entry for entry in group.rglob("*") if entry.is_dir()]
    return [*sorted(entries, key=lambda entry: -len(entry.parts)), group]


def _mounts() -> str:
    return Path("/proc/self/mounts").read_text()
