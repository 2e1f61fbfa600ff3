"""A kernel alone in pure emulation: its only process takes steps with a BPF program."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from xen.cache import Cache
from xen.debian import dependency, release, run, unpack
from xen.kernel import pack

HERE: Final = Path(__file__).parent
LIBRARIES: Final = ("-lbpf", "-lelf", "-lz")
LINUX: Final = "console=ttyS0 mitigations=off nokaslr quiet panic=-1"
LIMIT_S: Final = 240
"""Five seconds on a quiet host."""
MARK: Final = "[xtc] "
"""Lines of the console that begin so are the process's own."""


def debian_kernel(cache: Cache) -> Path:
    """Return the kernel of this host's release, for virtual machines.

    Raises:
        RuntimeError: apt could not download it.
    """
    package = dependency("linux-image-cloud-amd64", r"linux-image-\d\S+")

    def take(into: Path) -> None:
        unpack([package], into / "tree")
        shutil.copy(next((into / "tree/boot").glob("vmlinuz-*")), into / "vmlinuz")
        shutil.rmtree(into / "tree")

    return cache.part("kernel", (release(), package), take) / "vmlinuz"


def boot(kernel: Path, steps: Sequence[str], files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Boot a kernel, have the steps of `init.c` taken, and return what was printed of them.

    Raises:
        RuntimeError: the process could not be built.
        subprocess.TimeoutExpired: the machine did not switch itself off.
    """
    root, archive = folder / "root", folder / "boot.cpio"
    root.mkdir()
    for name, content in {**files, "steps": "\n".join(steps).encode()}.items():
        (root / name).write_bytes(content)
    source, options = HERE / "init.c", ("-O2", "-Wall", "-Wextra", "-Werror", "-static")
    run("gcc", *options, "-o", root / "init", source, *LIBRARIES)
    pack(root, archive)
    command = _machine(kernel, archive)
    done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    console = (done.stdout + done.stderr).decode(errors="replace")
    (folder / "console.log").write_text(console)
    return [line.partition(MARK)[2].strip() for line in console.splitlines() if MARK in line]


def _machine(kernel: Path, archive: Path) -> list[str]:
    command = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-M", "q35"]
    command += ["-cpu", "max", "-m", "512M", "-accel", "tcg", "-display", "none", "-nodefaults"]
    command += ["-no-reboot", "-serial", "stdio", "-append", LINUX]
    return [*command, "-kernel", str(kernel), "-initrd", str(archive)]
