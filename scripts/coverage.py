"""Prints which lines of the pure cores their unit and property tests reach.

The files and their tests are those of the mutations: scripts/mutation/modules.toml.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from scripts.mutation.__main__ import modules

ROOT: Final = Path(__file__).resolve().parent.parent


def measured() -> list[str]:
    """Return pytest's options that measure these files and print those not reached as a whole."""
    names = [path.removesuffix(".py").replace("/", ".") for path in modules(ROOT)]
    return ["--cov-report", "term:skip-covered", *(f"--cov={name}" for name in names)]


def own_tests() -> set[Path]:
    """Return the files with these files' tests."""
    return {ROOT / test for tests in modules(ROOT).values() for test in tests}


def command() -> list[str]:
    """Return the run of pytest that measures these files by these tests."""
    return [
        *(sys.executable, "-m", "pytest", "--quiet", "-n", "3", "--dist", "loadfile"),
        *("-p", "no:schemathesis", "-m", "not xen and not external"),
        *measured(),
        *map(str, sorted(own_tests())),
    ]


if __name__ == "__main__":
    sys.exit(subprocess.run(command(), cwd=ROOT, check=False).returncode)  # noqa: S603  our own
