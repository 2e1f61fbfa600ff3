"""A configuration without addresses is read without undefined behaviour."""

import subprocess
from pathlib import Path

from xco_coordinator_rig import CORE

FLAGS = ("-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1")
SANITIZER = ("-fsanitize=undefined", "-fno-sanitize-recover=all")


def test_a_list_of_addresses_that_is_empty_is_neither_sorted_nor_searched(tmp_path: Path) -> None:
    program = tmp_path / "empty"
    main = Path(__file__).parents[3] / "tests" / "rigs" / "xco_empty_config.c"
    sources = [main, CORE / "coordinator/config.c"]
    command = ["cc", *FLAGS, *SANITIZER, f"-I{CORE}", "-o", program, *sources]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
