"""A handle on a program that reports counts: start it, read its counts, stop it."""

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

import msgspec

from lab.errors import ProgramError

TIMEOUT_S: Final = 60.0
_CHUNK: Final = 1 << 16
Counts = TypeVar("Counts", bound=msgspec.Struct)


class Reporter(Generic[Counts]):
    """A running program that counts from its start on.

    It says "ready" once it runs, answers each line of its input with a report in JSON, and at the
    end of the input writes a last one. The kernel kills it when the thread that started it ends.

    Raises:
        ProgramError: it ended, or was not ready within a minute.
    """

    def __init__(
        self,
        name: str,
        counts: type[Counts],
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it and wait until it is ready.

        Args:
            name: for errors.
            counts: the type of its reports.
            command: that starts it in its place.
            environment: its variables; None means those of this process.
        """
        self.name = name
        self._decoder = msgspec.json.Decoder(counts)
        self._pending = b""
        self._process = subprocess.Popen(  # noqa: S603  our own program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the owner, which then ends its programs
        )
        self._line("not ready")

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def counts(self) -> Counts:
        """Return the current counts, while it continues.

        Raises:
            ProgramError: it has ended, or does not answer within a minute.
        """
        assert self._process.stdin is not None  # we asked for a pipe
        try:
            self._process.stdin.write(b"\n")
        except BrokenPipeError:
            self._fail("it no longer runs")
        return self._decoder.decode(self._line("no answer"))

    def finish(self) -> Counts:
        """Stop it and return its last counts.

        Raises:
            ProgramError: it has already exited, or does not answer within a minute.
        """
        assert self._process.stdin is not None
        self._process.stdin.close()
        counts = self._decoder.decode(self._line("no answer"))
        self.stop()
        return counts

    def stop(self) -> None:
        """Stop it immediately, if it still runs."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _line(self, problem: str) -> bytes:
        """Return the next line of its output, of any length."""
        assert self._process.stdout is not None
        deadline, parts = time.monotonic() + TIMEOUT_S, [self._pending]
        while b"\n" not in parts[-1]:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], left)[0]:
                self._fail(f"{problem} within {TIMEOUT_S:g} s")
            chunk = os.read(self._process.stdout.fileno(), _CHUNK)
            if not chunk:
                self._fail("it ended")
            parts.append(chunk)
        line, _, self._pending = b"".join(parts).partition(b"\n")
        return line

    def _fail(self, problem: str) -> None:
        self._process.kill()
        stderr = self._process.stderr.read() if self._process.stderr else b""
        self.stop()
        raise ProgramError(self.name, problem, stderr.decode(errors="replace"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def words_of(**options: str | int | None) -> list[str]:
    """Return options as words of a command line, without those that are None."""
    given = {key: value for key, value in options.items() if value is not None}
    return [word for key, value in given.items() for word in (_flag(key), str(value))]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
