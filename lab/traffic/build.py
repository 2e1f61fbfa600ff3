"""Builds the traffic program from its C sources, once for each version of them.

The program is in ``xtc-lab`` below XDG_CACHE_HOME (by default ``~/.cache``), under a digest of its
sources, which separates versions.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from lab.errors import MissingRequirementError, ProgramError

SOURCES: Final = Path(__file__).parent
FLAGS: Final = ("-std=c17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Wconversion")
_TIMEOUT_S: Final = 120.0


def program() -> Path:
    """Return the traffic program, and build this version if needed.

    Raises:
        MissingRequirementError: there is no C compiler.
        ProgramError: the compiler refuses the sources.
        OSError: the cache cannot be written.
    """
    path = cache() / digest() / "traffic"
    if not path.exists():
        compile_to(path)
    return path


def cache() -> Path:
    """Return the folder of built programs."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "xtc-lab"


def digest() -> str:
    """Return a digest of the sources, flags and machine."""
    parts = [source.read_bytes() for source in sorted(SOURCES.glob("*.[ch]"))]
    said = hashlib.sha256(b"\0".join(parts))
    said.update("\0".join([*FLAGS, *_compiler(), os.uname().machine]).encode())
    return said.hexdigest()[:16]


def compile_to(path: Path, *more_flags: str) -> None:
    """Compile the program; concurrent callers always get a complete one.

    Raises:
        MissingRequirementError: there is no C compiler.
        ProgramError: the compiler refuses the sources.
    """
    compiler = _compiler()
    if shutil.which(compiler[0]) is None:
        raise MissingRequirementError(
            [f"There is no C compiler '{compiler[0]}': install gcc and libc6-dev, or set CC."]
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        fresh = Path(folder, path.name)
        _compile([*compiler, *FLAGS, *more_flags, *_sources(), "-o", str(fresh)])
        fresh.replace(path)


def _compile(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603  the compiler that the user has chosen
        command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )
    if done.returncode != 0:
        raise ProgramError(command[0], "it does not compile the traffic program", done.stderr)


def _sources() -> list[str]:
    return [str(source) for source in sorted(SOURCES.glob("*.c"))]


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "")) or ["cc"]
