"""A process that is tied to its parent gets the signal when that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.process import end_with_parent

PATIENCE_S = 30.0
CHILD = """
import signal, sys, time
from common.process import end_with_parent
end_with_parent(signal.SIGTERM)
print("tied", flush=True)
time.sleep(60)
"""
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
input()
"""


def ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second: it is reaped while it is read
        return True


def test_a_killed_parent_takes_its_child_along() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not ended(child)
        parent.kill()
    deadline = time.monotonic() + PATIENCE_S
    while not ended(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended(child)


def test_a_signal_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        end_with_parent(max(signal.valid_signals()) + 1)
    assert os.getppid() > 0
