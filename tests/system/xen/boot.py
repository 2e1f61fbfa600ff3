"""One boot of Xen, and what the exercise in its dom0 found."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from xen import job
from xen.image import Image
from xen.machine import Machine

LIMIT_S: Final = 900
CONSOLE: Final = 4000
"""Characters of the console that a failure shows."""


class Findings:
    """What the exercise in dom0 wrote down, aspect by aspect."""

    def __init__(self, report: dict[str, dict[str, Any]], console: str) -> None:
        self.report, self._console = report, console

    def of(self, aspect: str) -> dict[str, Any]:
        """Return one aspect, or fail with what dom0 said of it."""
        found = self.report.get(aspect, {"failed": f"dom0 did not get to it:\n{self._console}"})
        if "failed" in found:
            pytest.fail(f"in dom0: {found['failed']}", pytrace=False)
        return found


class Xen:
    """The image, with a folder for each boot of it."""

    def __init__(
        self, image: Image, project: Path, folder: Path, say: Callable[[str], None]
    ) -> None:
        self._image, self._project, self._folder, self._say = image, project, folder, say
        self.reports: dict[str, dict[str, Any]] = {}
        """By scheduler."""

    def run(self, scheduler: str, aspects: Sequence[str]) -> Findings:
        """Boot with a scheduler, have dom0 go through aspects, and return what it found."""
        folder = self._folder / f"run-{scheduler}"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        archive = folder / "job.tar"
        job.pack(self._project, archive, aspects, LIMIT_S)
        machine = Machine(self._image, folder, self._say)
        self._say(f"booting Xen with sched={scheduler}")
        machine.run(archive, scheduler)
        path = folder / "report.json"
        report = json.loads(path.read_text()) if path.exists() else {}
        self.reports[scheduler] = report
        return Findings(report, machine.console[-CONSOLE:])
