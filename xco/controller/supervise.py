"""Runs a compiled loop as a child: starts it, sends it commands, reads its exit."""

import socket
import subprocess
import tempfile
from enum import IntEnum
from pathlib import Path
from typing import IO

from xco.errors import ControllerError

COMMAND_PATIENCE_S = 2.0
STOP_PATIENCE_S = 2.0


class Exit(IntEnum):
    """Exit codes of xco-controller (enum xco_exit); death by a signal counts as FAILED."""

    STOPPED = 0
    FAILED = 1
    CONFIG = 2


class Loop:
    """One run of the program. It does not outlive this process: it watches its standard input."""

    def __init__(self, program: Path, loop_file: Path) -> None:
        """Start it.

        Raises:
            ControllerError: the program cannot be started.
        """
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by `stop`
        try:
            self._process = subprocess.Popen(  # noqa: S603  the program is ours
                [program, loop_file, "--with-parent"], stdin=subprocess.PIPE, stderr=self._said
            )
        except OSError as error:
            self._said.close()
            problem = error.strerror or "cannot be started"
            raise ControllerError(str(program), problem, "build it again") from error

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def ended(self) -> Exit | None:
        """Return its exit; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        return Exit(code) if code in Exit.__members__.values() else Exit.FAILED

    def said(self) -> str:
        """Return the end of its standard error."""
        size = self._said.seek(0, 2)
        self._said.seek(max(0, size - 2000))
        return self._said.read().decode(errors="replace").strip()

    def stop(self) -> None:
        """Stop it and wait; kill it if it does not exit."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


def command(path: Path, line: str) -> None:
    """Send one command to a loop: `epoch NUMBER`, `reload`, `strategy NAME`, `stop`, `ping`.

    Raises:
        ControllerError: no loop answers, or the loop's reason for refusing the command.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(COMMAND_PATIENCE_S)
            client.connect(str(path))
            client.send(line.encode())
            answer = client.recv(1024).decode(errors="replace")
    except OSError as error:
        problem = f"no answer: {error.strerror or error}"
        raise ControllerError(
            str(path), problem, "is the controller running, and leading?"
        ) from error
    if answer != "ok":
        raise ControllerError(line, answer.removeprefix("error: ") or "no answer", "")
