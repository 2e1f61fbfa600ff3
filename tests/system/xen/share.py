"""What the host gave the emulator: how long each emulated CPU ran, and waited to run."""

import json
import time
from pathlib import Path
from typing import Final

from support.schedstat import turns

CPUS: Final = {"CPU 0/TCG": "dom0", "CPU 1/TCG": "guests"}
"""Threads of qemu by name, and who runs on them: dom0 and guests are pinned."""


class Share:
    """Notes, now and again, the CPU time and the delay of the emulated CPUs."""

    def __init__(self, pid: int, to: Path) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._to = to

    def note(self) -> None:
        """Note what has added up until now."""
        found = {}
        for task in self._tasks.glob("*"):
            try:
                who = CPUS.get((task / "comm").read_text().strip())
                had = turns(int(task.name))
            except OSError:  # this thread has ended meanwhile
                continue
            if who is not None:
                found[who] = {"ran_s": had.ran, "waited_s": had.waited}
        if found:
            with self._to.open("a") as file:
                file.write(json.dumps({"wall": round(time.time(), 3), **found}) + "\n")
