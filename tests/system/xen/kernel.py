"""Kernel modules and initial file systems."""

import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

from xen.debian import run


def copy_modules(tree: Path, names: Sequence[str], into: Path) -> None:
    """Copy modules with all that they need from an unpacked kernel package.

    Raises:
        RuntimeError: the kernel has no such module.
    """
    source = tree / "lib/modules"
    version = next(source.iterdir()).name
    if not (source / version / "modules.dep").exists():
        run("depmod", "-b", tree, version)
    for name in names:
        steps = run("modprobe", "-d", tree, "-S", version, "--show-depends", name)
        for module in (line.split()[1] for line in steps.splitlines() if line.startswith("insmod")):
            target = into / Path(module).relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(module, target)
    for index in ("modules.builtin", "modules.order", "modules.builtin.modinfo"):
        shutil.copy(source / version / index, into / version / index)


def initramfs(busybox: Path, modules: Path, init: Path, programs: Sequence[Path], to: Path) -> None:
    """Pack an init script, busybox, modules and programs into an uncompressed archive."""
    root = to.with_suffix(".root")
    for name in ("bin", "proc", "sys", "dev", "run"):
        (root / name).mkdir(parents=True)
    for program in (busybox, *programs):
        shutil.copy(program, root / "bin" / program.name)
    shutil.copy(init, root / "init")
    (root / "init").chmod(stat.S_IRWXU)
    shutil.copytree(modules, root / "lib/modules")
    run("depmod", "-b", root, next(modules.iterdir()).name)
    pack(root, to)
    shutil.rmtree(root)


def pack(root: Path, to: Path) -> None:
    """Make an uncompressed archive of a root file system, as kernels read it at boot."""
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with to.open("wb") as archive:
        subprocess.run(
            ["cpio", "--create", "--format=newc", "--quiet"],
            cwd=root,
            input=names.encode(),
            stdout=archive,
            check=True,
        )
