"""What the Xen test boots: hypervisor, kernel, dom0's disk and, on it, the guests' kernel."""

import gzip
import lzma
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xen import dependencies
from xen.cache import Cache
from xen.debian import bootstrap, dependency, release, run, unpack
from xen.kernel import copy_modules, initramfs

HERE: Final = Path(__file__).parent
BOOT_MODULES: Final = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic")
GUEST_MODULES: Final = ("xen-netfront", "af_packet")
GUEST_PROGRAMS: Final = ("forward", "thief")
DOM0_MODULES: Final = (
    *("xenfs", "xen-privcmd", "xen-evtchn", "xen-gntdev", "xen-gntalloc", "xen-netback"),
    *("bridge", "virtio_blk", "virtio_pci", "sch_ingress", "cls_bpf", "af_packet"),
)
DOM0_PACKAGES: Final = (
    *("libvirt-daemon", "libvirt-daemon-driver-xen", "libvirt-clients", "python3-libvirt"),
    *("iproute2", "kmod", "procps"),
)
DISK_BYTES: Final = 1 << 30  # sparse
_XZ: Final = b"\xfd7zXZ\x00"


@dataclass(frozen=True, slots=True)
class Image:
    """The files that qemu needs."""

    xen: Path
    kernel: Path
    initramfs: Path
    disk: Path


def build(cache: Cache, lock: Path, project: Path) -> Image:
    """Return the image, building what is not in the cache.

    Raises:
        RuntimeError: a program failed, or this is not root.
    """
    if os.geteuid() != 0:
        raise RuntimeError("building dom0 needs root")
    kernel = cache.part("kernel", _module_lists(), _kernel)
    packages = (*DOM0_PACKAGES, f"xen-utils-{_xen_version()}")
    root = cache.part("root", (release(), *packages), lambda into: bootstrap(into, packages))
    python = (root / "usr/bin/python3").readlink().name.removeprefix("python")
    wanted = dependencies.of_daemon(lock, project, python)
    libraries = cache.part(
        "libraries", (wanted, python), lambda into: dependencies.install(wanted, python, into)
    )
    inputs = (kernel.name, root.name, libraries.name, *_sources())
    disk = cache.part("disk", inputs, lambda into: _disk(kernel, root, libraries, into))
    return Image(kernel / "xen", kernel / "vmlinux", disk / "boot.cpio", disk / "dom0.img")


def _sources() -> Sequence[bytes]:
    """Return all of this folder that goes into the disk; the job goes to dom0 by itself."""
    paths = [path for room in ("dom0", "guest") for path in (HERE / room).iterdir()]
    programs = [path for path in paths if path.is_file() and path.suffix != ".py"]
    return [path.read_bytes() for path in (Path(__file__), *sorted(programs))]


def _module_lists() -> Sequence[str]:
    return (release(), *BOOT_MODULES, "/", *GUEST_MODULES, "/", *DOM0_MODULES)


def _xen_version() -> str:
    package = dependency("xen-system-amd64", r"xen-hypervisor-[\d.]+-amd64")
    return package.removeprefix("xen-hypervisor-").removesuffix("-amd64")


def _kernel(into: Path) -> None:
    """Take hypervisor, kernel, busybox and the modules needed out of their packages."""
    tree = into / "tree"
    linux = dependency("linux-image-amd64", r"linux-image-\d\S+")
    unpack([linux, f"xen-hypervisor-{_xen_version()}-amd64", "busybox-static"], tree)
    xen = next((tree / "boot").glob("xen-*.gz"))
    (into / "xen").write_bytes(gzip.decompress(xen.read_bytes()))
    # Uncompressed: emulated, Xen's own decompression of the kernel takes a minute.
    packed = next((tree / "boot").glob("vmlinuz-*")).read_bytes()
    kernel = lzma.LZMADecompressor().decompress(packed[packed.index(_XZ) :])
    (into / "vmlinux").write_bytes(kernel)
    shutil.copy(tree / "bin/busybox", into / "busybox")
    for name, modules in (
        ("boot", BOOT_MODULES),
        ("guest", GUEST_MODULES),
        ("dom0", DOM0_MODULES),
    ):
        copy_modules(tree, modules, into / "modules" / name)
    shutil.rmtree(tree)


def _disk(kernel: Path, root: Path, libraries: Path, into: Path) -> None:
    """Lay dom0's parts over its root file system and make a disk of it."""
    dom0 = into / "dom0"
    run("cp", "-a", root, dom0)
    xtc = dom0 / "opt/xtc"
    shutil.copytree(libraries, xtc / "lib")
    for name, target in (
        ("init", xtc / "init"),
        ("network.sh", xtc / "network.sh"),
        ("xtc", dom0 / "usr/local/bin/xtc"),
    ):
        shutil.copy(HERE / "dom0" / name, target)
        target.chmod(0o755)
    _guest(kernel, xtc, into)
    run("gcc", "-O2", "-Wall", "-Werror", "-static", "-o", xtc / "flood", HERE / "dom0/flood.c")
    _modules_of_dom0(kernel, dom0)
    _only_libxl(dom0)
    run("chroot", dom0, "python3", "-m", "compileall", "-q", "/opt/xtc/lib")
    init = HERE / "dom0/init-boot"
    initramfs(kernel / "busybox", kernel / "modules/boot", init, (), into / "boot.cpio")
    _file_system(dom0, into / "dom0.img")


def _guest(kernel: Path, xtc: Path, into: Path) -> None:
    programs = [into / name for name in GUEST_PROGRAMS]
    for program in programs:
        source = HERE / f"guest/{program.name}.c"
        run("gcc", "-O2", "-Wall", "-Werror", "-static", "-o", program, source)
    init, modules = HERE / "guest/init", kernel / "modules/guest"
    initramfs(kernel / "busybox", modules, init, programs, xtc / "guest.cpio")
    # Its symbols would only be read from disk at each start of a guest.
    run("strip", "-s", "-o", xtc / "vmlinux", kernel / "vmlinux")


def _modules_of_dom0(kernel: Path, dom0: Path) -> None:
    shutil.copytree(kernel / "modules/dom0", dom0 / "usr/lib/modules", dirs_exist_ok=True)
    version = next((kernel / "modules/dom0").iterdir()).name
    run("depmod", "-b", dom0, version)


def _only_libxl(dom0: Path) -> None:
    """Remove libvirt's other drivers: each would cost time at the start."""
    for driver in dom0.glob("usr/lib/*/libvirt/connection-driver/*.so"):
        if not re.search("libxl", driver.name):
            driver.unlink()


def _file_system(dom0: Path, disk: Path) -> None:
    with disk.open("wb") as file:
        file.truncate(DISK_BYTES)
    run("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", dom0, disk)
    shutil.rmtree(dom0)
