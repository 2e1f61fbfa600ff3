"""The supervisor finds every process below it, and collects those that have ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lab.libvirt.supervisor import descendants, reap


@pytest.fixture
def family() -> Iterator["subprocess.Popen[str]"]:
    """A process with a child and a grandchild, each of which has printed a line."""
    code = (
        "import os, sys\n"
        "for _ in range(2):\n"
        "    if os.fork(): break\n"
        "os.write(1, b'%d\\n' % os.getpid())\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.communicate("")


def test_descendants_are_found_at_any_depth(family: "subprocess.Popen[str]") -> None:
    assert family.stdout is not None
    pids = {int(family.stdout.readline()) for _ in range(3)}
    assert set(descendants(family.pid)) == pids - {family.pid}
    assert pids <= set(descendants(os.getpid()))


def test_a_process_without_children_has_no_descendants() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert descendants(process.pid) == []
        process.send_signal(signal.SIGKILL)


def test_reaping_without_children_is_fine() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    reap()
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, 0)
    reap()
