"""A libvirtd of one's own: private folders, a given network namespace, and faults on request."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from lab.errors import ProgramError
from lab.libvirt import partition as partitions
from lab.libvirt.errors import LibvirtError
from lab.libvirt.keeper import END_TIMEOUT_S
from lab.libvirt.layout import Layout
from lab.programs.processes import Place, Program

Driver = Literal["lxc", "qemu"]
READY_TIMEOUT_S: Final = 60.0
VIRSH_TIMEOUT_S: Final = 20.0
_POLL_S: Final = 0.02


class Keeper(Program):
    """The running program that starts libvirtd and ends all that it leaves behind."""

    def start_libvirtd(self) -> int:
        """Start a libvirtd and return its pid."""
        self._tell("start")
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def stop(self) -> None:
        """Have it end libvirtd and all guests, and wait until that is done.

        Raises:
            ProgramError: it could not, or was not done in time.
        """
        self._stopped = True
        try:
            _, problem = self._process.communicate(timeout=2 * END_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            super().stop()
            raise ProgramError(self.name, "it does not end") from error
        if self._process.returncode != 0:
            raise ProgramError(self.name, "it left something behind", problem)


class PrivateLibvirtd:
    """A libvirtd that shares nothing with the host's but the kernel; a context manager.

    It serves the LXC and QEMU drivers. Its sockets are in the folder and can be reached from
    anywhere; its interfaces are those of the network namespace. Leaving it, or the death of the
    process that made it, ends all its guests and removes their control groups.

    Raises:
        BadRequestError: the folder's path is too long for sockets.
        LibvirtError: it does not become ready.
        ProgramError: its keeper does not start.
    """

    def __init__(self, folder: Path, netns: str, partition: str | None = None) -> None:
        """Start it in the network namespace of a path; ``partition`` must be its own alone."""
        self.layout = Layout(folder)
        self.partition = partition or Path(netns).name
        partitions.sweep(self.partition)  # what is left of one whose keeper was killed, too
        self.layout.write()
        self._keeper = Keeper("libvirt.keeper", [str(folder), self.partition], Place(netns))
        self._pid = 0
        try:
            self.start()
        except BaseException:  # Ctrl-C too must leave nothing behind
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process of the libvirtd started last."""
        return self._pid

    def uri(self, driver: Driver) -> str:
        """Return what a client in any namespace passes to ``virConnectOpen``."""
        return f"{driver}+unix:///system?socket={self.layout.socket}"

    def start(self) -> None:
        """Start libvirtd and wait until it answers.

        Raises:
            LibvirtError: it does not within a minute.
        """
        self._pid = self._keeper.start_libvirtd()
        self.wait_ready()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send libvirtd a signal that ends it, and wait for its end; its guests live on.

        Raises:
            LibvirtError: it lives on for a minute.
        """
        os.kill(self._pid, number)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while Path(f"/proc/{self._pid}").exists():
            if time.monotonic() > deadline:
                raise LibvirtError("end libvirtd", f"it survives {number.name}")
            time.sleep(_POLL_S)

    def revive(self) -> None:
        """Restart libvirtd if it has crashed, as its unit does; libvirt 9.0's may at `destroy`.

        Raises:
            LibvirtError: it does not answer within a minute.
        """
        if not Path(f"/proc/{self._pid}").exists():
            self.start()

    def freeze(self) -> None:
        """Stop libvirtd in its tracks: it accepts connections and answers none."""
        os.kill(self._pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen libvirtd go on."""
        os.kill(self._pid, signal.SIGCONT)

    def wait_ready(self, seconds: float = READY_TIMEOUT_S) -> None:
        """Wait until libvirtd answers.

        Raises:
            LibvirtError: it does not within that time.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.virsh("lxc", "version", timeout_s=seconds)
            except LibvirtError as error:
                if time.monotonic() > deadline or not Path(f"/proc/{self._pid}").exists():
                    raise LibvirtError("wait for libvirtd", self._last_words(error)) from error
                time.sleep(_POLL_S)
            else:
                return

    def virsh(self, driver: Driver, *words: str, timeout_s: float = VIRSH_TIMEOUT_S) -> str:
        """Run a command of virsh on it and return what that prints.

        Raises:
            LibvirtError: it failed, or took longer than the timeout in seconds.
        """
        command = ["virsh", "-q", "-c", self.uri(driver), *words]
        try:
            done = subprocess.run(  # noqa: S603  the caller's words, without a shell
                command, capture_output=True, text=True, check=False, timeout=timeout_s
            )
        except subprocess.TimeoutExpired as error:
            raise LibvirtError(" ".join(words), f"no answer for {timeout_s:g} s") from error
        if done.returncode != 0:
            raise LibvirtError(" ".join(words), done.stderr)
        return done.stdout

    def close(self) -> None:
        """End libvirtd and all guests and remove its folder."""
        self._keeper.stop()
        shutil.rmtree(self.layout.folder, ignore_errors=True)

    def _last_words(self, error: LibvirtError) -> str:
        texts = [
            path.read_text() for path in (self.layout.output, self.layout.log) if path.exists()
        ]
        return "\n".join([str(error), *(text[-2000:] for text in texts)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
