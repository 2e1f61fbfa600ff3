"""A private libvirtd: own folders, a given network namespace, and fault injection."""

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
from lab.libvirt.layout import Layout
from lab.libvirt.supervisor import END_TIMEOUT_S
from lab.programs.processes import Place, Program

Driver = Literal["lxc", "qemu"]
READY_TIMEOUT_S: Final = 60.0
VIRSH_TIMEOUT_S: Final = 60.0
"""A migration is one command, too."""
_POLL_S: Final = 0.02


class Supervisor(Program):
    """The running program that starts libvirtd and kills all that it leaves behind."""

    def start_libvirtd(self) -> int:
        """Start a libvirtd and return its pid."""
        self._tell("start")
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def stop(self) -> None:
        """Make it stop libvirtd and all guests, and wait until that is done.

        Raises:
            ProgramError: it failed, or took too long.
        """
        self._stopped = True
        try:
            _, problem = self._process.communicate(timeout=2 * END_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            super().stop()
            raise ProgramError(self.name, "it does not end") from error
        if self._process.returncode != 0:
            raise ProgramError(self.name, "it did not clean up", problem)


class PrivateLibvirtd:
    """A libvirtd that shares only the kernel with the host's; a context manager.

    It serves the LXC and QEMU drivers. Its sockets are in the folder and reachable from any
    namespace; its interfaces are those of the network namespace. Leaving it, or the death of its
    owner, stops all its guests and removes their control groups.

    Raises:
        BadRequestError: the folder's path is too long for sockets.
        LibvirtError: it does not become ready.
        ProgramError: its supervisor does not start.
    """

    def __init__(self, folder: Path, netns: str, partition: str | None = None) -> None:
        """Start it in the network namespace at a path, with a ``partition`` of its own."""
        self.layout = Layout(folder)
        self.partition = partition or Path(netns).name
        partitions.sweep(self.partition)  # also what is left of one with a killed supervisor
        self.layout.write()
        self._supervisor = Supervisor(
            "libvirt.supervisor", [str(folder), self.partition], Place(netns)
        )
        self._pid = 0
        try:
            self.start()
        except BaseException:  # even Ctrl-C must leave nothing behind
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process of the libvirtd started last."""
        return self._pid

    def uri(self, driver: Driver) -> str:
        """Return the URI for ``virConnectOpen`` in any namespace."""
        return f"{driver}+unix:///system?socket={self.layout.socket}"

    def start(self) -> None:
        """Start libvirtd and wait until it answers.

        Raises:
            LibvirtError: it does not within a minute.
        """
        self._pid = self._supervisor.start_libvirtd()
        self.wait_ready()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill libvirtd with a signal and wait for its end; its guests continue.

        Raises:
            LibvirtError: it does not end within a minute.
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
        """Stop libvirtd with SIGSTOP: it accepts connections but does not answer."""
        os.kill(self._pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume a frozen libvirtd."""
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
        """Run a virsh command on it and return the output.

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
        """Stop libvirtd and all guests, and remove its folder."""
        self._supervisor.stop()
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
