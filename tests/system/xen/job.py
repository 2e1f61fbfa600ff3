"""What dom0 is given to do: the wheel of this working tree, unpacked, and a program to run."""

import compileall
import py_compile
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
SECTOR: Final = 512


@dataclass(frozen=True)
class Job:
    """What dom0 is to do."""

    command: tuple[str, ...]
    """A program of the folder dom0, and its arguments."""
    limit_s: int
    """After so many seconds dom0 ends it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What the program reads, by the name of the file."""


def pack(project: Path, to: Path, given: Job) -> None:
    """Build the wheel and write the job as an archive that fits a disk.

    Args:
        project: the root of the working tree.
        to: the archive.
        given: what dom0 is to do.
    """
    with tempfile.TemporaryDirectory() as scratch:
        job = Path(scratch) / "job"
        job.mkdir()
        wheel = _wheel(project, Path(scratch))
        zipfile.ZipFile(wheel).extractall(job / "xtc")
        # Emulated, this would take a minute; another Python than dom0's does it in vain.
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(job / "xtc", quiet=1, invalidation_mode=mode)
        for program in (HERE / "dom0").glob("*.py"):
            shutil.copy(program, job)
        (job / "limit").write_text(str(given.limit_s))
        (job / "command").write_text(" ".join(given.command))
        for name, text in given.files.items():
            (job / name).write_text(text)
        with tarfile.open(to, "w") as archive:
            archive.add(job, ".")
    with to.open("r+b") as disk:
        disk.truncate(-(-to.stat().st_size // SECTOR) * SECTOR)


def _wheel(project: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run(
        [*command, "--directory", str(into)], cwd=project, check=True, capture_output=True
    )
    return next(into.glob("*.whl"))
