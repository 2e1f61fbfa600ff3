"""One boot of Xen, and what the program in its dom0 found."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from xen.cache import Cache
from xen.image import Image, build
from xen.job import Job, pack
from xen.judgement import judging
from xen.machine import Machine
from xen.samples import Sample, read

LIMIT_S: Final = 1500
CONSOLE: Final = 4000
"""Characters of the console that a failure shows."""


class Findings:
    """What the program in dom0 wrote down, aspect by aspect, with every sample."""

    def __init__(
        self, report: dict[str, dict[str, Any]], samples: list[Sample], console: str
    ) -> None:
        self.report, self.samples, self._console = report, samples, console

    def failure(self, aspect: str) -> str:
        """Return why dom0 has nothing of an aspect, in a line and then in full; "" if it has."""
        found = self.report.get(aspect)
        if found is None:
            return f"dom0 did not get to {aspect}\n{self._console}"
        if "failed" in found:
            return f"in dom0: {found['failed'].strip().splitlines()[-1]}\n{found['failed']}"
        return ""

    def of(self, aspect: str) -> dict[str, Any]:
        """Return one aspect, or fail with what dom0 said of it."""
        if words := self.failure(aspect):
            with self.judging(aspect):
                raise AssertionError(words)
        return self.report[aspect]

    def window(self, aspect: str, router: str) -> list[Sample]:
        """Return a router's samples of the window in which an aspect watched it."""
        first, last = self.of(aspect)["seen"][router]["ticks"]
        own = [one for one in self.samples if (one["aspect"], one["vr"]) == (aspect, router)]
        return [one for one in own if first <= one["tick"] <= last]

    def judging(self, aspect: str) -> AbstractContextManager[None]:
        """Judge an aspect by rates or times, which an unsteady emulator may have spoilt."""
        seen = [one for one in self.samples if one["aspect"] == aspect]
        return judging(aspect, seen or self.samples)


class Xen:
    """The image, with a folder for each boot of it."""

    def __init__(
        self, image: Image, project: Path, folder: Path, say: Callable[[str], None]
    ) -> None:
        self._image, self._project, self._folder, self._say = image, project, folder, say
        self.found: dict[str, Findings] = {}
        """By the name of the boot."""

    def run(self, scheduler: str, aspects: Sequence[str]) -> Findings:
        """Boot with a scheduler, have dom0 go through aspects, and return what it found."""
        return self.boot(scheduler, scheduler, Job(("exercise.py", *aspects), LIMIT_S))

    def boot(self, name: str, scheduler: str, job: Job) -> Findings:
        """Boot with a scheduler, have dom0 do a job, and return what it found.

        Args:
            name: of the boot, for its folder.
            scheduler: Xen's.
            job: for dom0.
        """
        folder = self._folder / f"run-{name}"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        archive = folder / "job.tar"
        pack(self._project, archive, job)
        machine = Machine(self._image, folder, self._say)
        self._say(f"booting Xen with sched={scheduler}")
        machine.run(archive, scheduler)
        path = folder / "report.json"
        report = json.loads(path.read_text()) if path.exists() else {}
        console = f"{machine.console[-CONSOLE:]}\nthe whole console, and logs: {folder}"
        found = Findings(report, read(folder), console)
        self.found[name] = found
        return found


@contextmanager
def opened(project: Path, folder: Path, say: Callable[[str], None]) -> Iterator[Xen]:
    """Return the image, built or from the cache, which no other run uses meanwhile."""
    cache = Cache(folder, say)
    with cache.locked():
        image = build(cache, project / "requirements.lock", project)
        yield Xen(image, project, folder, say)
