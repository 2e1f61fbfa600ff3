"""CPU for what a test measures with, and for what it measures, on a machine that is busy.

Routers are ordinary tasks that outweigh others; real-time tasks and the hypervisor take of their
CPU what they want. Sources are real-time tasks themselves.
"""

import os
from pathlib import Path
from typing import Final

HEAVIEST: Final = {"cpu.weight": "10000", "cpu.shares": "262144"}
"""What version 2 and version 1 of the controller know, with the largest weight of each."""

PRIORITY: Final = 60


def prefer(group: Path) -> None:
    """Give a control group the largest weight: ordinary tasks outside it take little of its CPU."""
    (name,) = (name for name in HEAVIEST if (group / name).exists())
    (group / name).write_text(HEAVIEST[name])


def make_punctual(pid: int) -> None:
    """Let a program that seldom works begin as soon as its work is due."""
    os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(PRIORITY))
