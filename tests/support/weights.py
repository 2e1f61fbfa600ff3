"""CPU for the routers that a test judges, on a machine that is busy with other work.

Only ordinary tasks are overtaken: real-time ones and the hypervisor take what they want.
"""

from pathlib import Path
from typing import Final

HEAVIEST: Final = {"cpu.weight": "10000", "cpu.shares": "262144"}
"""What version 2 and version 1 of the controller know, with the largest weight of each."""


def prefer(group: Path) -> None:
    """Give a control group the largest weight: ordinary tasks outside it take little of its CPU."""
    (name,) = (name for name in HEAVIEST if (group / name).exists())
    (group / name).write_text(HEAVIEST[name])
