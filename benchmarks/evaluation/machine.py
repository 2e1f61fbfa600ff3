"""The machine and the commit that made a run."""

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts for the head of the report."""

    cpu: str
    cores: int
    kernel: str
    commit: str

    @property
    def words(self) -> str:
        """The facts in a line."""
        return f"{self.cpu}, {self.cores} cores, kernel {self.kernel}, commit {self.commit}"


def cpu_of(cpuinfo: str) -> str:
    """Return the name of the CPU from the text of /proc/cpuinfo."""
    lines = [line.partition(":") for line in cpuinfo.splitlines()]
    return next((value.strip() for key, _, value in lines if key.strip() == "model name"), "")


def commit_of(described: str, changes: str) -> str:
    """Return the commit in words; changes are the lines of `git status --porcelain`."""
    if not described:
        return "unknown"
    return described + (", with changes" if changes else "")


def this_machine() -> Machine:
    """Return the facts of this machine."""
    cpu = cpu_of(Path("/proc/cpuinfo").read_text()) or platform.machine()
    described = _git("rev-parse", "--short=12", "HEAD")
    changes = _git("status", "--porcelain", "--untracked-files=no")
    cores = len(os.sched_getaffinity(0))
    return Machine(cpu, cores, platform.release(), commit_of(described, changes))


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.strip() if done.returncode == 0 else ""
