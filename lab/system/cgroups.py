"""Control groups of the lab's user-space routers, in version 1 or 2 of the ``cpu`` controller."""

import errno
import time
from pathlib import Path
from typing import Final

REMOVE_TIMEOUT_S: Final = 10.0
_RETRY_S: Final = 0.01


def cpu_root(mounts: str) -> Path | None:
    """Return where the ``cpu`` controller is mounted, given the text of /proc/mounts.

    A version 1 mount names its controllers in its options; without one, a version 2 mount is used,
    which lists its controllers in ``cgroup.controllers``. None: there is no such controller.
    """
    entries = [line.split()[:4] for line in mounts.splitlines() if len(line.split()) >= 4]
    for _, point, kind, options in entries:
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(point)
    for _, point, kind, _ in entries:
        if kind == "cgroup2" and _has_cpu(Path(point)):
            return Path(point)
    return None


def _has_cpu(mount: Path) -> bool:
    try:
        return "cpu" in (mount / "cgroup.controllers").read_text().split()
    except FileNotFoundError:  # the mount is hidden from this process
        return False


def find_root() -> Path | None:
    """Return where this machine's ``cpu`` controller is mounted, None if it has none."""
    return cpu_root(Path("/proc/self/mounts").read_text())


def create(root: Path, prefix: str, name: str) -> Path:
    """Create the control group of a router, and the lab's above it; return its directory."""
    group = create_top(root, prefix) / name
    group.mkdir(exist_ok=True)
    return group


def create_top(root: Path, prefix: str) -> Path:
    """Create the control group of a lab, which contains its routers'; return its directory."""
    top = root / prefix
    top.mkdir(exist_ok=True)
    for parent in (root, top):
        control = parent / "cgroup.subtree_control"
        if control.exists():  # version 2 delegates controllers only on request
            control.write_text("+cpu")
    return top


def groups(root: Path, prefix: str) -> list[Path]:
    """Return the lab's control groups, the deepest first."""
    top = root / prefix
    below = [entry for entry in top.rglob("*") if entry.is_dir()] if top.is_dir() else []
    return [*sorted(below, key=lambda entry: -len(entry.parts)), *([top] if top.is_dir() else [])]


def processes(group: Path) -> set[int]:
    """Return the processes of one control group; none if it is gone."""
    try:
        return {int(line) for line in (group / "cgroup.procs").read_text().split()}
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return set()


def remove(group: Path) -> None:
    """Remove a control group after its processes were killed, waiting for the last to exit.

    Raises:
        OSError: a process still runs in it after two seconds.
    """
    deadline = time.monotonic() + REMOVE_TIMEOUT_S
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_S)
        else:
            return
