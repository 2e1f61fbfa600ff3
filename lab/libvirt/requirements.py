"""Checks what this machine lacks for routers under libvirt, in addition to a lab's needs."""

import shutil
import sys
from pathlib import Path
from typing import Final

from lab.libvirt.cache import GuestCache
from lab.libvirt.supervisor import LIBVIRTD

DRIVERS: Final = Path("/usr/lib")
_PROGRAMS: Final = {
    LIBVIRTD: "libvirt-daemon",
    "/usr/lib/libvirt/libvirt_lxc": "libvirt-daemon-driver-lxc",
    "/usr/bin/qemu-system-x86_64": "qemu-system-x86",
    "virsh": "libvirt-clients",
}


def missing(cache: GuestCache | None = None) -> list[str]:
    """Return what is missing, each as a sentence with a fix; empty if ready."""
    programs = [
        f"{Path(program).name} is missing: install {package}."
        for program, package in _PROGRAMS.items()
        if shutil.which(program) is None
    ]
    drivers = [
        f"libvirt's {name} driver is missing: install libvirt-daemon-driver-{name}."
        for name in ("lxc", "qemu")
        if not list(DRIVERS.glob(f"*/libvirt/connection-driver/libvirt_driver_{name}.so"))
    ]
    return [*programs, *drivers, *(cache or GuestCache()).missing()]


def main() -> None:
    """Print what is missing; the exit code shows whether anything is missing."""
    lacking = missing()
    sys.stdout.writelines(f"{sentence}\n" for sentence in lacking)
    sys.exit(bool(lacking))


if __name__ == "__main__":
    main()
