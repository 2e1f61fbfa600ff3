"""What a program gives up after its start: capabilities, and calls that only an intruder makes."""

import subprocess
import sys
from pathlib import Path

import pytest
from xco_controller_rig import CORE, FLAGS

AFTER = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
library.xco_privileges_drop.restype = ctypes.c_bool
assert library.xco_privileges_drop(ctypes.c_uint64(int(sys.argv[2])))
libc = ctypes.CDLL(None, use_errno=True)
said = [line.split() for line in open("/proc/self/status")]
print(*[f"{line[0]}{line[1]}" for line in said if line[0][:3] in ("Cap", "NoN", "Sec")])
for name, call in {
    "execve": lambda: os.execv("/bin/true", ["true"]),
    "ptrace": lambda: libc.ptrace(0, 0, 0, 0),
    "mount": lambda: libc.mount(b"none", b"/mnt", b"tmpfs", 0, None),
}.items():
    try:
        ctypes.set_errno(0)
        result = call()
        print(name, result, os.strerror(ctypes.get_errno()))
    except OSError as error:
        print(name, -1, error.strerror)
print("memory", len(bytearray(1 << 24)), "file", len(open(sys.argv[1], "rb").read(4)))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("privileges") / "privileges.so"
    flags = (*FLAGS, "-Wconversion", f"-I{CORE}")
    command = ["cc", *flags, "-o", target, CORE / "common/privileges.c"]
    subprocess.run(command, check=True)
    return target


@pytest.mark.parametrize("keep", [0, 1 << 14])
def test_only_what_is_kept_is_left(library: Path, keep: int) -> None:
    command = [sys.executable, "-c", AFTER, str(library), str(keep)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    status, *calls = done.stdout.splitlines()
    left = dict(entry.split(":") for entry in status.split())
    assert int(left["CapEff"], 16) | int(left["CapPrm"], 16) in {0, keep}
    assert int(left["CapInh"], 16) == int(left["CapAmb"], 16) == 0
    assert (left["NoNewPrivs"], left["Seccomp"]) == ("1", "2")
    refused = "-1 Operation not permitted"
    assert calls == [
        *(f"{name} {refused}" for name in ("execve", "ptrace", "mount")),
        "memory 16777216 file 4",
    ]
