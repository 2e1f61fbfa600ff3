"""What dom0 is given to do: the wheel of this working tree, unpacked, and the exercise."""

import compileall
import py_compile
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
SECTOR: Final = 512


def pack(project: Path, to: Path, aspects: Sequence[str], limit_s: int) -> None:
    """Build the wheel and write the job as an archive that fits a disk.

    Args:
        project: the root of the working tree.
        to: the archive.
        aspects: what the exercise goes through, in this order.
        limit_s: after so many seconds dom0 ends the exercise.
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
        (job / "limit").write_text(str(limit_s))
        (job / "aspects").write_text(" ".join(aspects))
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
