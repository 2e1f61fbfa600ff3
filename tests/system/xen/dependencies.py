"""The daemon's Python libraries, of the versions and hashes in the lock file."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

GLIBC = (17, 28, 34, 35, 36)


def of_daemon(lock: Path, project: Path, python: str) -> str:
    """Return the part of the lock file that the daemon needs without extras on that Python."""
    table = tomllib.loads((project / "pyproject.toml").read_text())
    needed: set[str] = set()
    pending = list(table["project"]["dependencies"])
    while pending:
        requirement = Requirement(pending.pop())
        name = canonicalize_name(requirement.name)
        if name not in needed and _applies(requirement, python):
            needed.add(name)
            pending += metadata.requires(name) or []
    blocks = re.split(r"\n(?=[a-z0-9])", lock.read_text())
    return "\n".join(block for block in blocks if block.partition("==")[0] in needed) + "\n"


def _applies(requirement: Requirement, python: str) -> bool:
    environment = {"extra": "", "python_version": python, "python_full_version": f"{python}.0"}
    return requirement.marker is None or requirement.marker.evaluate(environment)


def install(wanted: str, python: str, into: Path) -> None:
    """Unpack binary packages for dom0's Python; pip checks every hash."""
    lock = into / "requirements.lock"
    lock.write_text(wanted)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--only-binary=:all:", "--no-compile"]
    command += ["--target", str(into), "--python-version", python, "--implementation", "cp"]
    command += [f"--platform=manylinux_2_{minor}_x86_64" for minor in GLIBC]
    command += ["--platform=manylinux2014_x86_64", "--requirement", str(lock)]
    subprocess.run(command, check=True)
