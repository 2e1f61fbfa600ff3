"""The cache of built parts of virtual routers, and whether they are up to date."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
DEFAULT: Final = HERE.parent.parent / "build" / "guest"
SOURCES: Final = ("build.py", "forward.c", "guest_init.sh", "container_init.sh")


@dataclass(frozen=True, slots=True)
class GuestCache:
    """The built parts; each of its two folders exists completely or not at all."""

    folder: Path = DEFAULT

    @property
    def kernel(self) -> Path:
        """The folder with the guests' kernel, which is downloaded once."""
        return self.folder / "kernel"

    @property
    def vmlinux(self) -> Path:
        """The uncompressed kernel, which QEMU boots directly (PVH)."""
        return self.kernel / "vmlinux"

    @property
    def modules(self) -> Path:
        """The folder with the kernel's modules."""
        return self.kernel / "modules"

    @property
    def parts(self) -> Path:
        """The folder with everything built from this package's sources."""
        return self.folder / "parts"

    @property
    def initramfs(self) -> Path:
        """The root file system of QEMU routers."""
        return self.parts / "initramfs.gz"

    @property
    def container_root(self) -> Path:
        """The root file system of LXC routers; each router gets a copy."""
        return self.parts / "root"

    @property
    def stamp(self) -> Path:
        """The file that identifies the sources of the parts."""
        return self.parts / "stamp"

    def has_kernel(self) -> bool:
        """Whether the kernel exists."""
        return self.vmlinux.exists()

    def has_parts(self) -> bool:
        """Whether the parts exist and were built from the current sources."""
        return self.stamp.exists() and self.stamp.read_text() == fingerprint()

    def missing(self) -> list[str]:
        """Return what is missing, each as a sentence with a fix."""
        if self.has_kernel() and self.has_parts():
            return []
        return ["The routers' kernel and programs are not built: run scripts/setup-libvirt.sh."]


def fingerprint() -> str:
    """Return a digest of the sources of the parts."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()
