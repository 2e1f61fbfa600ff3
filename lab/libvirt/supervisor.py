"""Supervises one private libvirtd: gives it its own mounts, starts it on request, and outlives it.

Guests outlive their libvirtd, which tests of its restart require. So this program is the nearest
subreaper (prctl(2)): all processes that libvirtd leaves behind become its children. When its
standard input ends, because its owner closed it or was killed, it kills all of them.
"""

import argparse
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from common.process import end_with_parent
from lab.libvirt import partition
from lab.libvirt.layout import HIDDEN, PRIVATE, Layout

LIBVIRTD: Final = "/usr/sbin/libvirtd"
END_TIMEOUT_S: Final = 30.0
_REAP_S: Final = 0.05
_CLONE_NEWNS: Final = 0x00020000
_PR_SET_CHILD_SUBREAPER: Final = 36


def _libc(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{function}: {os.strerror(code)}")


def take_charge() -> None:
    """Inherit every orphan, and exit cleanly when the owner's thread ends."""
    signal.signal(signal.SIGTERM, _end_input)
    _libc("prctl", _PR_SET_CHILD_SUBREAPER, 1)
    end_with_parent(signal.SIGTERM)


def _end_input(*_: object) -> None:
    """Close the standard input; an exception could interrupt a shutdown in progress."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def make_private(layout: Layout) -> None:
    """Enter a mount namespace in which libvirt's folders are those of the layout.

    /sys is also that of the network namespace, where libvirtd looks for its bridges.
    """
    _libc("unshare", _CLONE_NEWNS)
    _mount("--make-rprivate", "/")
    (layout.folder / "cgroup").mkdir(exist_ok=True)
    _mount("--rbind", "/sys/fs/cgroup", str(layout.folder / "cgroup"))
    _mount("-t", "sysfs", "sysfs", "/sys")
    _mount("--rbind", str(layout.folder / "cgroup"), "/sys/fs/cgroup")
    for name, target in PRIVATE.items():
        Path(target).mkdir(parents=True, exist_ok=True)
        _mount("--bind", str(layout.folder / name), target)
    for name in ("passwd", "group"):
        _mount("--bind", str(layout.folder / name), f"/etc/{name}")
    for target in HIDDEN:
        if Path(target).is_dir():
            _mount("-t", "tmpfs", "tmpfs", target)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)  # noqa: S603, S607  util-linux, by PATH


def serve(layout: Layout) -> None:
    """Start libvirtd for each line of the standard input and answer its pid, until the input ends.

    Children that end are reaped, otherwise their pids would look alive.
    """
    while True:
        if select.select([0], [], [], _REAP_S)[0]:
            if not os.read(0, 4096):
                return
            sys.stdout.write(f"{_start(layout)}\n")
            sys.stdout.flush()
        reap()


def _start(layout: Layout) -> int:
    with layout.output.open("ab") as output:
        return subprocess.Popen(  # noqa: S603  Debian's own path
            [LIBVIRTD, "-f", str(layout.config), "-p", str(layout.pid_file)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        ).pid


def reap() -> None:
    """Reap every child that has ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def descendants(pid: int) -> list[int]:
    """Return every process below one, including zombies."""
    children: dict[int, list[int]] = {}
    for entry in (entry for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def end_all() -> None:
    """Kill every descendant, including new ones, and wait until they are gone."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while (left := descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reap()
        time.sleep(_REAP_S)


def main() -> None:
    """Supervise the libvirtd that the command line describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("partition")
    options = parser.parse_args()
    take_charge()
    layout = Layout(options.folder)
    make_private(layout)
    partition.create(options.partition)
    try:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        serve(layout)
    finally:
        end_all()
        partition.sweep(options.partition)


if __name__ == "__main__":
    main()
