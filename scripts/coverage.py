"""Prints which lines of the pure cores their unit and property tests reach.

The files and their tests are those of the mutations: scripts/mutation/modules.toml.
"""

import subprocess
import sys
from pathlib import Path

from scripts.mutation.__main__ import modules

ROOT = Path(__file__).resolve().parent.parent


def command(found: dict[str, list[str]]) -> list[str]:
    """Return the run of pytest that measures these files by these tests."""
    names = [path.removesuffix(".py").replace("/", ".") for path in found]
    return [
        *(sys.executable, "-m", "pytest", "--quiet", "-n", "3", "--dist", "loadfile"),
        *("-p", "no:schemathesis", "-m", "not xen and not external"),
        *("--cov-report", "term:skip-covered", *(f"--cov={name}" for name in names)),
        *sorted({test for tests in found.values() for test in tests}),
    ]


if __name__ == "__main__":
    sys.exit(subprocess.run(command(modules(ROOT)), cwd=ROOT, check=False).returncode)  # noqa: S603
