"""The extremes of what the wire permits overflow no sum of a coordinator."""

import subprocess
from pathlib import Path

from xco_coordinator_rig import CORE

PARTS = ("engine", "decide", "drain", "orders", "state", "clock_offset")
FLAGS = ("-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1")
SANITIZER = ("-fsanitize=undefined", "-fno-sanitize-recover=all")


def test_extreme_times_overflow_nothing(tmp_path: Path) -> None:
    program = tmp_path / "extreme"
    main = Path(__file__).parents[3] / "tests" / "rigs" / "xco_extreme_times.c"
    sources = [main, *(CORE / f"coordinator/engine/{part}.c" for part in PARTS)]
    command = ["cc", *FLAGS, *SANITIZER, f"-I{CORE}", "-o", program, *sources]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
