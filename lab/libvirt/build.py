"""Builds what virtual routers are made of: kernel, initramfs, container root, forwarder.

Run by scripts/setup-libvirt.sh, which brings the unpacked kernel package. Each folder of the cache
is made under another name and renamed when it is whole.
"""

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lab.libvirt.cache import DEFAULT, HERE, GuestCache, fingerprint
from lab.libvirt.errors import LibvirtError

MODULES: Final = (
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
)
"""In the order in which they must be loaded; one that the kernel has built in is no file."""
BUSYBOX: Final = Path("/bin/busybox")
APPLETS: Final = ("arp", "ip", "sh", "sleep")

_ELF: Final = b"\x7fELF"
_DECOMPRESSORS: Final = {b"\x02\x21\x4c\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}
_SECTOR: Final = 512
_SIZE_BYTES: Final = 4


def payload(image: bytes) -> bytes:
    """Return the compressed kernel inside a bzImage (kernel document x86/boot).

    Raises:
        LibvirtError: it is none.
    """
    if image[0x202:0x206] != b"HdrS":
        raise LibvirtError("read the kernel image", "it is not an x86 bzImage")
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * _SECTOR + offset
    return image[start : start + length - _SIZE_BYTES]  # the last word is the unpacked size


def vmlinux(image: bytes) -> bytes:
    """Return the uncompressed kernel of a bzImage.

    Raises:
        LibvirtError: the image is none, or is compressed in a way that is not known here.
    """
    packed = payload(image)
    tool = _DECOMPRESSORS.get(packed[:4])
    if tool is None:
        raise LibvirtError("unpack the kernel", f"unknown compression {packed[:4].hex()}")
    unpacked = _run([tool, "-dc"], packed)
    if not unpacked.startswith(_ELF):
        raise LibvirtError("unpack the kernel", f"{tool} did not produce an ELF file")
    return unpacked


def build_kernel(cache: GuestCache, package: Path) -> None:
    """Take the kernel and its modules out of an unpacked Debian kernel package.

    Raises:
        LibvirtError: the package has no kernel, or a tool fails.
    """
    images = sorted((package / "boot").glob("vmlinuz-*"))
    if not images:
        raise LibvirtError("read the kernel package", f"no vmlinuz in {package}/boot")
    with _whole(cache.kernel) as folder:
        (folder / "vmlinux").write_bytes(vmlinux(images[0].read_bytes()))
        (folder / "modules").mkdir()
        for module in package.rglob("*.ko"):
            if module.stem in MODULES:
                shutil.copy(module, folder / "modules")


def build_parts(cache: GuestCache) -> None:
    """Make the initramfs and the container's root.

    Raises:
        LibvirtError: a tool fails.
    """
    with _whole(cache.parts) as folder:
        _make_container_root(folder / "root")
        _make_initramfs(cache.modules, folder)
        (folder / "stamp").write_text(fingerprint())


def _make_container_root(root: Path) -> None:
    for name in ("bin", "sbin", "proc", "sys", "dev", "etc", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    _install(HERE / "container_init.sh", root / "sbin" / "init")
    _run(["gcc", "-O2", "-static", "-o", str(root / "bin" / "forward"), str(HERE / "forward.c")])


def _make_initramfs(modules: Path, folder: Path) -> None:
    root = folder / "initramfs"
    for name in ("bin", "proc", "sys", "dev", "lib", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    present = [f"{name}.ko" for name in MODULES if (modules / f"{name}.ko").exists()]
    for name in present:
        _run(["strip", "--strip-debug", "-o", str(root / "lib" / name), str(modules / name)])
    (root / "lib" / "order").write_text("".join(f"{name}\n" for name in present))
    _install(HERE / "guest_init.sh", root / "init")
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    archive = _run(["cpio", "-o", "-H", "newc", "--quiet", "-D", str(root)], names.encode())
    (folder / "initramfs.gz").write_bytes(_run(["gzip", "-9"], archive))
    shutil.rmtree(root)


def _install(script: Path, target: Path) -> None:
    shutil.copy(script, target)
    target.chmod(0o755)


def _run(command: list[str], stdin: bytes = b"") -> bytes:
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, check=True)  # noqa: S603  our own commands
    except FileNotFoundError as error:
        raise LibvirtError(command[0], "it is not installed") from error
    except subprocess.CalledProcessError as error:
        raise LibvirtError(" ".join(command), error.stderr.decode(errors="replace")) from error
    return done.stdout


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """Give a folder to fill, and put it in the target's place once it is full."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        folder = Path(scratch, target.name)
        folder.mkdir()
        yield folder
        if target.exists():
            target.rename(Path(scratch, "old"))
        folder.rename(target)


def main() -> None:
    """Build what is missing, and say so."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", type=Path, help="an unpacked Debian kernel package")
    parser.add_argument("--folder", type=Path, default=DEFAULT, help="the cache")
    options = parser.parse_args()
    cache = GuestCache(options.folder)
    if options.kernel:
        build_kernel(cache, options.kernel)
    if not cache.has_kernel():
        sys.exit("the guests' kernel is missing; name its unpacked package with --kernel")
    if not cache.has_parts():
        build_parts(cache)


if __name__ == "__main__":
    main()
