"""A service manager of its own in a copy of this system: systemd as process 1, with few units."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from installed_rig import ENVIRONMENT, System
from support.waiting import PATIENCE_S, eventually

BOOTED = """
mkdir -p /run/groups /root/units
mountpoint -q /run/groups || mount -t cgroup2 none /run/groups
mkdir -p /run/groups/booted-$$
echo $$ >/run/groups/booted-$$/cgroup.procs
echo $$ >/run/booted.pid
exec unshare --mount --pid --fork --kill-child --cgroup sh -euc '
    mount -t proc proc /proc
    mount -t tmpfs none /run
    mount -t tmpfs none /sys/fs/cgroup
    mount -t cgroup2 none /sys/fs/cgroup
    exec env container=other SYSTEMD_UNIT_PATH=/root/units /usr/lib/systemd/systemd \
        --log-target=console --show-status=no'
"""
LEFT = "find /run/groups/booted-* -depth -type d -exec rmdir {} +; ! ls -d /run/groups/booted-*"
"""Removes the groups of its processes, once these have ended."""
UNITS = ("basic.target", "shutdown.target", "sysinit.target")
"""What services depend on by themselves; none of this machine's services is known."""
RUNNING = ("running\n", "degraded\n")


class Booted:
    """The service manager, as long as it runs."""

    def __init__(self, outside: "subprocess.Popen[str]") -> None:
        self.first = eventually(lambda: _systemd_below(outside.pid))
        eventually(lambda: self.run("systemctl", "is-system-running").stdout in RUNNING)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command beside process 1, to its end."""
        inside = ("nsenter", "-t", str(self.first), "-m", "-n", "-p", "-C", "-r", "-w")
        return subprocess.run(
            [*inside, *ENVIRONMENT, *words], capture_output=True, text=True, check=False
        )

    def shown(self, unit: str, key: str) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", unit, "--property", key, "--value").stdout.strip()

    def process(self, unit: str) -> int:
        """Return the main process of a unit, as this machine numbers it."""
        inside = self.shown(unit, "MainPID")
        for process in map(int, filter(str.isdecimal, os.listdir("/proc"))):  # noqa: PTH208
            if self._number_inside(process) == inside:
                return process
        raise LookupError(unit)

    def _number_inside(self, process: int) -> str:
        """Return the number that a process has for process 1; empty if it has none."""
        folder, first = Path(f"/proc/{process}"), Path(f"/proc/{self.first}")
        with suppress(OSError):  # it has just ended
            if (folder / "ns/pid").readlink() == (first / "ns/pid").readlink():
                numbers = re.search(r"(?m)^NSpid:.*\t(\d+)$", (folder / "status").read_text())
                return numbers[1] if numbers else ""
        return ""


def _systemd_below(process: int) -> int:
    """Return the process that systemd is, below what started it; 0 while it is not yet."""
    with suppress(OSError, IndexError):  # what comes before it has just ended
        first = _only_child(_only_child(process))
        if Path(f"/proc/{first}/comm").read_text() == "systemd\n":
            return first
    return 0


def _only_child(process: int) -> int:
    return int(Path(f"/proc/{process}/task/{process}/children").read_text().split()[0])


@contextmanager
def booted(system: System, *units: str) -> Iterator[Booted]:
    """Boot it with installed units, none of which it starts by itself."""
    system.said("mkdir", "-p", "/root/units")
    names = [f"/lib/systemd/system/{name}" for name in (*UNITS, *units)]
    system.said("cp", *names, "/root/units")
    system.said("cp", "/lib/systemd/system/basic.target", "/root/units/default.target")
    outside = subprocess.Popen(
        system.words("sh", "-euc", BOOTED), stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield Booted(outside)
    finally:
        system.run("sh", "-c", "kill -KILL $(cat /run/booted.pid)")
        outside.wait(PATIENCE_S)
        eventually(lambda: system.run("sh", "-c", LEFT).returncode == 0)
