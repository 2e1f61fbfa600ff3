"""Run a command, follow its output line by line, and end it with its children."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

NAP_S = 0.1
"""Delay until a wait notices that the command ended or must end."""
LINES = 8
"""Number of last lines of standard error that are kept."""
LONGEST_LINE = 500
"""Characters of a line that are kept."""
CHUNK = 1 << 16
HANG_UP_S = 10.0
"""How long a command may take to end once its standard input is closed."""
TERMINATE_S = 5.0
"""How long its process group may take to end at SIGTERM, before SIGKILL."""
DIES_S = 1.0
"""How long to wait after SIGKILL: a zombie without a waiting parent stays."""
GO = b"go\n"
"""First line on a command's standard input; it shows the command that it has one."""

TETHER = (
    'read -r go || exec "$@"; '
    "exec 3<&0; "
    '"$@" 3<&- </dev/null & command=$!; '
    "( exec >/dev/null 2>&1; while read -r go; do :; done <&3; "
    'kill -TERM "$command" ) & tether=$!; '
    "exec 3<&-; "
    'wait "$command"; code=$?; '
    'kill "$tether" 2>/dev/null; '
    'exit "$code"'
)
"""End a command when its standard input ends, that is when the owner or the connection ends.

SIGTERM to a local ssh does not reach the program on the host, which would continue on an unattended
router. If a prefix does not pass on standard input (`docker exec` without -i), the first line never
comes, and the command runs without this watch.
"""


@dataclass
class Ended:
    """Result of a command."""

    code: int
    """The exit code; negative: the signal that ended it."""
    output: bytes
    lines: list[str]
    """The last lines of its standard error."""
    stopped: bool = False
    """Whether it was ended on request."""


def bound_to_parent(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command that runs the words, and ends them when its standard input ends."""
    return ("sh", "-c", TETHER, "sh", *words)


def run(
    words: Sequence[str],
    *,
    stop: Callable[[], bool],
    on_line: Callable[[str], object] = lambda _line: None,
    most: int = CHUNK,
    hang_up_s: float = HANG_UP_S,
    terminate_s: float = TERMINATE_S,
) -> Ended:
    """Run a command until it ends, or until it was ended on request.

    Args:
        words: the command; it gets a process group of its own.
        stop: whether to end it, called ten times a second.
        on_line: called with each line of standard error.
        most: bytes of standard output that are kept; one more byte shows that there is more.
        hang_up_s: seconds from closing its standard input to SIGTERM.
        terminate_s: seconds from SIGTERM to SIGKILL.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603  the operator's own command
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,  # Ctrl-C must not reach it: it is ended in order
    )
    pipes = _Pipes(process, on_line, most)
    ending = _Ending(process, hang_up_s, terminate_s)
    with process:
        try:
            _greet(process)
            while process.poll() is None or not ending.is_over():
                pipes.read(NAP_S)
                if stop():
                    ending.go_on(time.monotonic())
            while pipes.read(0.0):
                pass
        finally:
            ending.by_force()
    return Ended(process.returncode, bytes(pipes.output), list(pipes.last), ending.asked)


def _greet(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None  # Popen opened a pipe
    with contextlib.suppress(BrokenPipeError):  # it reads nothing, or has ended
        process.stdin.write(GO)


class _Pipes:
    """Output of a command: standard output in bytes, standard error in lines."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", on_line: Callable[[str], object], most: int
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.output, self.last = bytearray(), deque[str](maxlen=LINES)
        self._most, self._on_line, self._part = most, on_line, b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(process.stdout, selectors.EVENT_READ, self._keep)
        self._selector.register(process.stderr, selectors.EVENT_READ, self._split)

    def read(self, seconds: float) -> bool:
        """Wait for output and read it; return whether there was any."""
        if not self._selector.get_map():
            time.sleep(seconds)
            return False
        found = self._selector.select(seconds)
        for key, _ in found:
            data = os.read(key.fd, CHUNK)
            if not data:
                self._selector.unregister(key.fileobj)
            key.data(data)
        return bool(found)

    def _keep(self, data: bytes) -> None:
        self.output += data[: self._most + 1 - len(self.output)]

    def _split(self, data: bytes) -> None:
        *whole, part = (self._part + data).replace(b"\r", b"\n").split(b"\n")
        # At the end of the stream, text without a newline is a line, too.
        self._part = part[: 4 * LONGEST_LINE] if data else b""
        for line in [*whole, *([] if data else [part])]:
            if text := line.decode("utf-8", "replace").strip()[:LONGEST_LINE]:
                self.last.append(text)
                self._on_line(text)


@dataclass
class _Ending:
    """The steps that end a command and its process group, each after the time of the one before."""

    process: "subprocess.Popen[bytes]"
    hang_up_s: float
    terminate_s: float
    asked: bool = False
    _left: deque[tuple[float, Callable[[], object]]] = field(default_factory=deque)
    """Steps to take, each with its delay after the one before."""
    _last: float = 0.0
    """When the last step was taken."""

    def go_on(self, now: float) -> None:
        """Take the steps that are due, in seconds of the monotonic clock.

        A late step delays those after it: a command gets its time even if this process stood still.
        """
        if not self.asked:
            self.asked, self._last = True, now
            self._left.extend(
                (
                    (0.0, self._hang_up),
                    (self.hang_up_s, lambda: self._signal(signal.SIGTERM)),
                    (self.terminate_s, lambda: self._signal(signal.SIGKILL)),
                    (DIES_S, lambda: None),
                )
            )
        while self._left and now >= self._last + self._left[0][0]:
            self._left.popleft()[1]()
            self._last = now

    def is_over(self) -> bool:
        """Whether nothing is left to end: without a request, its children are left alone."""
        return not self.asked or not self._left or not self._signal(0)

    def by_force(self) -> None:
        """End it now if it still runs: following it failed here."""
        if self.process.poll() is None:
            self._signal(signal.SIGKILL)

    def _hang_up(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def _signal(self, number: int) -> bool:
        """Send a signal to the process group; return whether a process of it is left."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return False
        return True
