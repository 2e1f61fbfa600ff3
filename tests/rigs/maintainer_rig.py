"""Maintainer scripts of the Debian packages, run on a folder in the system's place."""

import re
import shutil
import subprocess
from pathlib import Path

REAL = ("ls", "rm")
"""Programs that scripts run as they are."""
SILENT = (
    *("adduser", "deb-systemd-helper", "deb-systemd-invoke", "install"),
    *("py3clean", "py3compile", "systemctl"),
)
"""Programs that would change the system: here they do nothing, and succeed."""


class Maintained:
    """A folder with what packages left in it, and the only programs that scripts find."""

    def __init__(self, folder: Path) -> None:
        """Make the programs of every system."""
        self.folder, self._programs = folder, folder / "bin"
        self._programs.mkdir()
        for name in REAL:
            found = shutil.which(name)
            assert found
            (self._programs / name).symlink_to(found)
        for name in SILENT:
            self.program(name, "exit 0")

    def program(self, name: str, script: str) -> None:
        """Install a shell script as a program, or replace one."""
        path = self._programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, script: Path, *words: str) -> str:
        """Run a maintainer script, which must succeed; return what it says to the administrator."""
        text = re.sub(r"(?<![\w/])/(?=(?:run|usr|var)/)", f"{self.folder}/", script.read_text())
        done = subprocess.run(
            ["/bin/sh", "-c", text, script.name, *words],
            env={"PATH": str(self._programs)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stderr
