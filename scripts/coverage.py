"""Prints which lines of the pure cores their unit and property tests reach.

The files and their tests are those of the mutations: scripts/mutation/modules.toml.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from scripts.mutation.files import modules

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = "XTC_REACHED"
"""Environment variable: the folder where the processes of a run write the lines that they reach."""


def files() -> list[str]:
    """Return the files to measure, below the root."""
    return list(modules(ROOT))


def own_tests() -> set[Path]:
    """Return the files with these files' tests."""
    return {ROOT / test for tests in modules(ROOT).values() for test in tests}


def command() -> list[str]:
    """Return the run of pytest of these tests alone."""
    return [
        *(sys.executable, "-m", "pytest", "--quiet", "-n", "3", "--dist", "loadfile"),
        *("-p", "no:schemathesis", "-m", "not xen and not external"),
        *map(str, sorted(own_tests())),
    ]


def report(folder: Path) -> str:
    """Return the table of the files that have lines which no test reached."""
    from coverage import Coverage  # noqa: PLC0415  only to report

    measured = Coverage(data_file=None, config_file=False)
    data = measured.get_data()
    for part in folder.glob("reached-*.json"):
        data.add_lines(json.loads(part.read_text()))
    paths = [str(ROOT / path) for path in files()]
    data.touch_files(paths)
    table = io.StringIO()
    measured.report(morfs=paths, file=table, skip_covered=True)
    return table.getvalue()


def main() -> int:
    """Run these tests and print the table; return pytest's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, FOLDER: folder}
        ended = subprocess.run(command(), cwd=ROOT, env=environment, check=False)  # noqa: S603  our own
        sys.stdout.write(f"\n{report(Path(folder))}")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
