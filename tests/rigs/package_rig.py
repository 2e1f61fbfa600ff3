"""Debian packages, built once for all tests of a run, in whichever process they are."""

import fcntl
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT_S = 600
"""Patience with tests that may build packages."""


def output(*words: str | Path) -> str:
    """Return what a command prints that must succeed."""
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout


class Packages:
    """The packages of this run; a folder that all its processes know says what is built."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def built(self, script: str) -> Path:
        """Return the package that a script builds."""
        said = self._folder / f"{script}.built"
        with (self._folder / f"{script}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not said.exists():
                said.write_text(output("sh", f"deploy/debian/{script}"))
        return ROOT / said.read_text().strip()

    def unpacked(self, script: str) -> Path:
        """Return a folder with the files of the package that a script builds."""
        package, files = self.built(script), self._folder / f"{script}.files"
        with (self._folder / f"{script}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not files.exists():
                output("dpkg-deb", "--raw-extract", package, files)
        return files
