"""Where the parts of virtual routers are kept once they are built, and whether they still fit."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
DEFAULT: Final = HERE.parent.parent / "build" / "guest"
SOURCES: Final = ("build.py", "forward.c", "guest_init.sh", "container_init.sh")


@dataclass(frozen=True, slots=True)
class GuestCache:
    """The built parts; each of its two folders is there as a whole or not at all."""

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
        """The folder with all that is made from this package's own sources."""
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
        """The file that says which sources the parts were made from."""
        return self.parts / "stamp"

    def has_kernel(self) -> bool:
        """Whether the kernel is there."""
        return self.vmlinux.exists()

    def has_parts(self) -> bool:
        """Whether the parts are there and made from the sources as they are now."""
        return self.stamp.exists() and self.stamp.read_text() == fingerprint()

    def missing(self) -> list[str]:
        """Return what is missing, each as a sentence that says how to mend it."""
        if self.has_kernel() and self.has_parts():
            return []
        return ["The routers' kernel and programs are not built: run scripts/setup-libvirt.sh."]


def fingerprint() -> str:
    """Return a digest of the sources of the parts."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()
