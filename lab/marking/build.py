"""Builds the marker and its BPF program, once for each version of their sources.

Both are in the traffic program's cache, under a digest of their own.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from lab.errors import MissingRequirementError, ProgramError
from lab.traffic import build as traffic

HERE: Final = Path(__file__).parent
COMMON: Final = (traffic.SOURCES / "common.c", traffic.SOURCES / "common.h")
BPF_FLAGS: Final = ("-O2", "-g", "-Wall", "-Wextra", "-target", "bpf", "-mcpu=v3")
FIX: Final = "install clang, gcc, libc6-dev and libbpf-dev"
_TIMEOUT_S: Final = 120.0


class Built(NamedTuple):
    """The two files."""

    marker: Path
    programs: Path
    """The BPF object."""


def built() -> Built:
    """Return the built files, and build this version if needed.

    Raises:
        MissingRequirementError: there is no C compiler, no clang or no libbpf.
        ProgramError: a compiler refuses the sources.
        OSError: the cache cannot be written.
    """
    folder = traffic.cache() / f"marking-{digest()}"
    if not folder.exists():
        _build(folder)
    return Built(folder / "marker", folder / "port.bpf.o")


def digest() -> str:
    """Return a digest of sources, flags and machine."""
    sources = [*sorted(HERE.glob("*.[ch]")), *COMMON]
    words = [*BPF_FLAGS, *traffic.FLAGS, *_compiler(), _clang(), os.uname().machine]
    said = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources))
    said.update("\0".join(words).encode())
    return said.hexdigest()[:16]


def _build(folder: Path) -> None:
    lacking = [name for name in (_clang(), _compiler()[0]) if shutil.which(name) is None]
    if lacking:
        raise MissingRequirementError([f"There is no '{lacking[0]}': {FIX}."])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as whole:
        fresh = Path(whole, "built")
        fresh.mkdir()
        for command in _commands(fresh):
            _compile(command)
        if not folder.exists():  # another process may have been faster
            fresh.rename(folder)


def _commands(folder: Path) -> list[list[str]]:
    multiarch = sysconfig.get_config_var("MULTIARCH") or f"{os.uname().machine}-linux-gnu"
    program = [_clang(), *BPF_FLAGS, f"-I/usr/include/{multiarch}", "-c", str(HERE / "port.bpf.c")]
    marker = [*_compiler(), *traffic.FLAGS, f"-I{traffic.SOURCES}", str(HERE / "marker.c")]
    return [
        [*program, "-o", str(folder / "port.bpf.o")],
        [*marker, str(COMMON[0]), "-o", str(folder / "marker"), "-lbpf"],
    ]


def _compile(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603  the compiler that the user has chosen
        command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )
    if "bpf/" in done.stderr and "file not found" in done.stderr:
        raise MissingRequirementError([f"There is no libbpf: {FIX}."])
    if done.returncode != 0:
        raise ProgramError(command[0], "it does not compile the marker", done.stderr)


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "")) or ["cc"]


def _clang() -> str:
    return os.environ.get("CLANG", "clang")
