"""A command is followed line by line, and ended with everything that it started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from training.fleet import child

WAIT = "import signal,sys,os; signal.signal(signal.SIGTERM, {handler}); "
WAIT += "os.write(2, b'ready %d\\n' % os.getpid())\nwhile True: signal.pause()"
MEEK = WAIT.format(handler="lambda *_: (os.write(2, b'ends\\n'), sys.exit(3))")
STUBBORN = WAIT.format(handler="signal.SIG_IGN")


def runs(pid: int) -> bool:
    """Whether a process runs; one that was killed may stay as a zombie for a moment."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def never() -> bool:
    return False


class Watcher:
    """Asks to stop once the command is ready."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, words: str) -> None:
        self.lines.append(words)

    def stop(self) -> bool:
        return bool(self.lines)

    @property
    def pid(self) -> int:
        return int(self.lines[0].removeprefix("ready "))


def stopped(
    words: tuple[str, ...], hang_up_s: float, terminate_s: float = 30.0
) -> tuple[child.Ended, Watcher]:
    watcher = Watcher()
    times = {"hang_up_s": hang_up_s, "terminate_s": terminate_s}
    ended = child.run(words, stop=watcher.stop, on_line=watcher.line, **times)
    assert ended.stopped
    assert not runs(watcher.pid)
    return ended, watcher


def test_output_and_the_last_lines_are_kept() -> None:
    script = "for n in 1 2 3 4 5 6 7 8 9 10; do echo line $n >&2; echo out; done; printf end >&2"
    lines: list[str] = []
    ended = child.run(("sh", "-c", script), stop=never, on_line=lines.append, most=7)
    assert (ended.code, ended.stopped) == (0, False)
    assert ended.output == b"out\nout\n"  # one byte more than wanted says that there is more
    assert lines == [*(f"line {n}" for n in range(1, 11)), "end"]
    assert ended.lines == lines[-child.LINES :]


def test_a_long_line_takes_no_memory() -> None:
    script = "import os; [os.write(2, b'x' * 65536) for _ in range(100)]"
    ended = child.run((sys.executable, "-c", script), stop=never)
    assert ended.lines == ["x" * child.LONGEST_LINE]


def test_what_a_program_left_behind_keeps_open_is_not_waited_for() -> None:
    """As the master of ssh's ControlPersist does with standard error."""
    script = "sleep 30 & echo $! >&2"
    ended = child.run(("sh", "-c", script), stop=never)
    os.kill(int(ended.lines[0]), 15)
    assert ended.code == 0


def test_the_end_of_standard_input_ends_a_tethered_command() -> None:
    ended, watcher = stopped(child.bound_to_parent((sys.executable, "-c", MEEK)), 60.0)
    assert watcher.lines[1:] == ["ends"]
    assert ended.code == 3


def test_sigterm_ends_what_does_not_follow_its_standard_input() -> None:
    ended, watcher = stopped((sys.executable, "-c", MEEK), 0.1)
    assert watcher.lines[1:] == ["ends"]
    assert ended.code == 3


def test_sigkill_ends_what_ignores_sigterm() -> None:
    stopped(child.bound_to_parent((sys.executable, "-c", STUBBORN)), 0.1, terminate_s=0.3)


def test_sigkill_comes_its_time_after_a_sigterm_that_is_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fleet that stood still past both times leaves a sweep the time to put its cap back."""
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda _group, number: sent.append(number))
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as process:
        ending = child._Ending(process, hang_up_s=10.0, terminate_s=5.0)
        for now in (0.0, 100.0, 104.9):
            ending.go_on(now)
        assert sent == [signal.SIGTERM]
        ending.go_on(105.0)
    assert sent == [signal.SIGTERM, signal.SIGKILL]


def test_a_tethered_command_runs_to_its_end_and_keeps_its_exit_code() -> None:
    words = child.bound_to_parent(
        ("sh", "-c", 'printf "%s" "$1" >&2; exit 7', "sh", "a  'b\" $HOME;")
    )
    ended = child.run(words, stop=never)
    assert (ended.code, ended.lines) == (7, ["a  'b\" $HOME;"])


def test_without_a_standard_input_a_command_runs_untethered() -> None:
    words = child.bound_to_parent(("sh", "-c", "echo runs >&2"))
    ended = child.run(("sh", "-c", 'exec "$@" </dev/null', "sh", *words), stop=never)
    assert (ended.code, ended.lines) == (0, ["runs"])


def test_an_error_of_who_follows_leaves_no_command_behind() -> None:
    seen: list[str] = []

    def fail(line: str) -> None:
        seen.append(line)
        raise ValueError(line)

    with pytest.raises(ValueError, match="ready"):
        child.run((sys.executable, "-c", STUBBORN), stop=never, on_line=fail)
    assert not runs(int(seen[0].removeprefix("ready ")))
