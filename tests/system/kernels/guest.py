"""A kernel alone in pure emulation: its only process takes steps with a BPF program."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from xen.cache import Cache
from xen.debian import dependency, release, run, unpack
from xen.kernel import copy_modules, pack

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
    package = _package()

    def take(into: Path) -> None:
        unpack([package], into / "tree")
        shutil.copy(next((into / "tree/boot").glob("vmlinuz-*")), into / "vmlinuz")
        shutil.rmtree(into / "tree")

    return cache.part("kernel", (release(), package), take) / "vmlinuz"


def debian_modules(cache: Cache, names: Sequence[str]) -> Path:
    """Return a folder with modules of that kernel and what they need, as in `/lib/modules`.

    Raises:
        RuntimeError: apt could not download it, or it has no such module.
    """
    package = _package()

    def take(into: Path) -> None:
        unpack([package], into / "tree")
        copy_modules(into / "tree", names, into)
        shutil.rmtree(into / "tree")

    return cache.part("modules", (release(), package, *names), take)


def _package() -> str:
    return dependency("linux-image-cloud-amd64", r"linux-image-\d\S+")


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
    console = run_machine(kernel, archive, folder)
    return [line.partition(MARK)[2].strip() for line in console.splitlines() if MARK in line]


def run_machine(kernel: Path, archive: Path, folder: Path) -> str:
    """Boot until the machine switches itself off; its console is returned, and kept in the folder.

    Raises:
        subprocess.TimeoutExpired: it did not.
    """
    command = _machine(kernel, archive)
    done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    console = (done.stdout + done.stderr).decode(errors="replace")
    (folder / "console.log").write_text(console)
    return console


def _machine(kernel: Path, archive: Path) -> list[str]:
    command = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-M", "q35"]
    command += [
        "-cpu",
        "max",
        "-m",
        "512M",
        "-smp",
        "2",
        "-accel",
        "tcg",
        "-display",
        "none",
        "-nodefaults",
    ]
    command += ["-no-reboot", "-serial", "stdio", "-append", LINUX]
    return [*command, "-kernel", str(kernel), "-initrd", str(archive)]
