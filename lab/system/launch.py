"""Starts a program in a namespace, control group and CPU, tied to the life of its owner.

Only setns(2) is used: unlike ``ip netns exec``, it does not remount /sys, so that the program still
sees the control groups. It uses only the standard library, and is run by file name.
"""

import argparse
import ctypes
import os
import signal
import sys
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


def _libc(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{function}: {os.strerror(code)}")


def enter_netns(path: str) -> None:
    """Move the calling thread into the network namespace (setns(2)).

    Raises:
        OSError: there is no such namespace, or the caller lacks CAP_SYS_ADMIN.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _libc("setns", descriptor, _CLONE_NEWNET)
    finally:
        os.close(descriptor)


def die_with(owner: int) -> None:
    """Make the kernel kill this process when the thread that started it ends (prctl(2))."""
    _libc("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != owner:  # it exited before the line above
        sys.exit(f"the owner {owner} is gone")


def main() -> None:
    """Set up the environment from the command line, then execute the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owner", type=int, required=True)
    parser.add_argument("--netns", required=True)
    parser.add_argument("--cgroup")
    parser.add_argument("--cpu", type=int)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    die_with(options.owner)
    if options.cgroup:
        Path(options.cgroup, "cgroup.procs").write_text(str(os.getpid()))
    if options.cpu is not None:
        os.sched_setaffinity(0, {options.cpu})
    enter_netns(options.netns)
    argv = options.program[1:]  # without the "--" that ends our own options
    os.execvp(argv[0], argv)  # noqa: S606  a shell is what this must not start


if __name__ == "__main__":
    main()
