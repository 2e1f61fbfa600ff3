"""Guests with Debian's kernel, emulated by QEMU on ports of a switch, driven by their console."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from support.waiting import eventually
from system.kernels.guest import MARK, debian_kernel, debian_modules
from system.xen.cache import Cache
from system.xen.debian import run
from system.xen.kernel import initramfs

HERE: Final = Path(__file__).parent
MODULES: Final = ("virtio_pci", "virtio_net")
LINUX: Final = "console=ttyS0 mitigations=off nokaslr quiet panic=-1 net.ifnames=0 ipv6.disable=1"
MEMORY_MIB: Final = 256
READY: Final = f"{MARK}ready"
END: Final = f"{MARK}end "
PATIENCE_S: Final = 120.0
"""A boot takes 10 s on a quiet host."""


class System:
    """What guests boot."""

    def __init__(self, cache: Cache, folder: Path) -> None:
        """Build it.

        Raises:
            RuntimeError: apt could not download the kernel, or a program could not be built.
        """
        with cache.locked():
            self.kernel, modules = debian_kernel(cache), debian_modules(cache, MODULES)
        self.initrd = folder / "initrd.cpio"
        program, busybox = folder / "datagrams", Path(str(shutil.which("busybox")))
        options = ("-O2", "-Wall", "-Wextra", "-Werror", "-static")
        run("gcc", *options, "-o", program, HERE / "datagrams.c")
        initramfs(busybox, modules, HERE / "init.sh", [program], self.initrd)


def words(address: str) -> str:
    """Return the command line of the kernel of a guest with this address."""
    return f"{LINUX} address={address}"


def qemu(system: System, socket: str, mac: str, address: str) -> list[str]:
    """Return the command of a guest on a port, as docs/howto/zovn.md has it for emulation."""
    size = f"{MEMORY_MIB}M"
    return [
        *("qemu-system-x86_64", "-accel", "tcg", "-M", "q35", "-cpu", "max", "-m", size),
        *(
            "-object",
            f"memory-backend-memfd,id=mem,size={size},share=on",
            "-numa",
            "node,memdev=mem",
        ),
        *("-chardev", f"socket,id=net0,path={socket},reconnect=1"),
        *("-netdev", "vhost-user,id=net0,chardev=net0"),
        *("-device", f"virtio-net-pci,netdev=net0,mac={mac},vectors=0"),
        *("-display", "none", "-nodefaults", "-serial", "stdio", "-append", words(address)),
        *("-kernel", str(system.kernel), "-initrd", str(system.initrd)),
    ]


class Console:
    """A guest's console: what it wrote is in a file, what it reads comes from a pipe."""

    def __init__(self, log: Path, command: Sequence[str]) -> None:
        self.log = log
        with log.open("wb") as to:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.PIPE,
                stdout=to,
                stderr=subprocess.STDOUT,
            )

    def text(self) -> str:
        """Return what it wrote."""
        return self.log.read_text(errors="replace")

    def wait_until_ready(self, boots: int = 1) -> None:
        """Wait until it has booted so many times."""
        eventually(lambda: self.text().count(READY) >= boots, PATIENCE_S, state=self._state)

    def tell(self, line: str) -> None:
        """Have it run a line, without waiting."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def run(self, line: str) -> str:
        """Have it run a line; return what that printed.

        Raises:
            AssertionError: the line failed, or did not end.
        """
        before = len(self.text())
        self.tell(line)
        return self.answer(before)

    def answer(self, before: int) -> str:
        """Wait for the end of a line that was told; return what came after `before` characters."""
        said = eventually(lambda: self._ended(before), PATIENCE_S, state=self._state)
        printed, _, code = said.partition(END)
        assert code.split()[0] == "0", said
        return printed

    def _ended(self, before: int) -> str:
        said = self.text()[before:]
        return said if "\n" in said.partition(END)[2] else ""

    def _state(self) -> str:
        return f"exit code {self.process.poll()}: {self.text()[-4000:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
