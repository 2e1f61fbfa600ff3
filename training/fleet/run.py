"""Sweep the hosts of a fleet in parallel, and fetch their recordings.

A sweep writes its recording on its host. A broken connection loses no measurement: the same command
resumes from that file. Only a complete recording is fetched, under its own name.
"""

import contextlib
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import msgspec

from common.durable import replace_file
from training.errors import FleetPathError, FleetStopped, RecordingError
from training.fleet import child
from training.fleet.file import REMOTE_SHELLS, FleetHost
from training.recording.recording import MAX_BYTES, parse_csv, read_csv
from training.sweep.watch import Stop

NAP_S = 0.2
"""How often to check the running hosts."""
WAYS = {
    1: "do what its lines say, then run the same command again: the sweep goes on with its file",
    2: "correct its sweep in the list of hosts, or the configuration there, then run again",
    126: "make the program on the host executable, or give command its path",
    127: "install xtc there, or give command the path of xtc-train",
}
"""Advice by exit code."""

Tell = Callable[[str, str], object]
"""Called with a host's name and a text."""


class HostFailure(msgspec.Struct, frozen=True):
    """A host that was not swept: reason, last lines of its standard error, and what to do."""

    name: str
    problem: str
    fix: str
    lines: tuple[str, ...] = ()


def sweep_fleet(
    hosts: Sequence[FleetHost], folder: Path, *, jobs: int, again: bool, tell: Tell
) -> list[HostFailure]:
    """Sweep the hosts whose recordings are not in the folder yet; return those that failed.

    Args:
        hosts: the hosts, and how to reach them.
        folder: where the recordings go, as NAME.csv.
        jobs: how many hosts are swept at the same time.
        again: sweep finished hosts, too, from the beginning.
        tell: called with a host's name and each line of its progress.

    Raises:
        FleetStopped: the operator asked to stop; every sweep has ended.
    """
    with Stop() as stop, ThreadPoolExecutor(jobs) as pool:
        runs = [_HostRun(host, folder, stop, tell) for host in hosts]
        running = [pool.submit(one.done, again=again) for one in runs]
        try:
            left = set(running)
            while left:
                left = wait(left, NAP_S).not_done
        finally:
            stop.asked |= bool(left)  # an error here must not leave a sweep running
    if stop.asked:
        raise FleetStopped
    return [failure for one in running if (failure := one.result()) is not None]


class _FailedError(Exception):
    """The failure of one host, raised by its steps."""

    def __init__(self, failure: HostFailure) -> None:
        self.failure = failure
        super().__init__(failure.problem)


class _HostRun:
    """The steps on one host."""

    def __init__(self, host: FleetHost, folder: Path, stop: Stop, tell: Tell) -> None:
        self._host, self._stop = host, stop
        self._csv = folder / f"{host.name}.csv"
        self._mark = folder / f"{host.name}.swept"
        self._tell: Callable[[str], object] = lambda words: tell(host.name, words)

    def done(self, *, again: bool) -> HostFailure | None:
        """Sweep the host and fetch its recording; return the failure, if any."""
        if self._stop.asked:
            return None
        try:
            if again:
                self._start_over()
            elif self._is_complete():
                self._tell("swept already")
                return None
            self._sweep()
            self._fetch()
        except _FailedError as error:
            self._tell(f"failed: {error.failure.problem}")
            return error.failure
        return None

    def _is_complete(self) -> bool:
        """Whether the recording is here, and is of the sweep in the list of hosts."""
        try:
            read_csv(self._csv)
            swept = self._mark.read_text(encoding="utf-8")
        except RecordingError:
            return False
        except OSError:
            return True  # the operator put it here: use it
        return swept == self._asked

    @property
    def _asked(self) -> str:
        return json.dumps([*self._host.run, *self._host.sweeping]) + "\n"

    def _start_over(self) -> None:
        """Remove the recording on the host and rename the local one: both would count as done."""
        ended = self._run(("rm", "-f", "--", self._host.remote_csv))
        self._check(ended, "its earlier recording cannot be removed")
        with self._written(self._csv), contextlib.suppress(FileNotFoundError):
            self._csv.replace(self._csv.with_name(f"{self._csv.name}.before"))

    def _sweep(self) -> None:
        self._check(self._run(child.bound_to_parent(self._host.sweeping), on_line=self._tell), "")

    def _fetch(self) -> None:
        ended = self._run(("cat", "--", self._host.remote_csv), most=MAX_BYTES)
        self._check(ended, "its recording cannot be read")
        try:
            parse_csv(ended.output[: MAX_BYTES + 1].decode(), self._host.remote_csv)
        except (RecordingError, UnicodeDecodeError) as error:
            fix = "see that nothing else there writes to standard output, then run again"
            raise self._failed(f"what came is no recording: {error}", fix, ended) from error
        with self._written(self._csv):
            write_result(self._csv, ended.output)
            write_result(self._mark, self._asked.encode())
        self._tell("swept")

    def _run(
        self,
        words: tuple[str, ...],
        *,
        on_line: Callable[[str], object] = lambda _line: None,
        most: int = child.CHUNK,
    ) -> child.Ended:
        command = self._host.there(words)
        try:
            return child.run(command, stop=lambda: self._stop.asked, on_line=on_line, most=most)
        except OSError as error:
            problem = f"{command[0]}: {error.strerror or error}"
            fix = "correct run in the list of hosts, or install the program here"
            raise _FailedError(HostFailure(self._host.name, problem, fix)) from error

    def _check(self, ended: child.Ended, what: str) -> None:
        if ended.stopped or self._stop.asked:
            raise self._failed("stopped", "run the same command again", ended)
        if ended.code:
            problem = f"{what}: {_end(ended.code)}" if what else _end(ended.code)
            raise self._failed(problem, self._way(ended.code), ended)

    def _failed(self, problem: str, fix: str, ended: child.Ended) -> _FailedError:
        return _FailedError(HostFailure(self._host.name, problem, fix, tuple(ended.lines)))

    def _way(self, code: int) -> str:
        """Return what to do about an exit code."""
        run = self._host.run
        if code == 255 and run and Path(run[0]).name in REMOTE_SHELLS:
            return f"check that `{' '.join(run)} true` works without a question, then run again"
        return WAYS.get(code, "run the same command again: the sweep goes on with its file")

    @contextlib.contextmanager
    def _written(self, path: Path) -> Iterator[None]:
        """Turn an error of writing a local file into this host's failure."""
        try:
            yield
        except FleetPathError as error:
            failure = HostFailure(self._host.name, f"{path}: {error.problem}", error.fix)
            raise _FailedError(failure) from error
        except OSError as error:
            failure = HostFailure(self._host.name, f"{path}: {error.strerror}", "correct that")
            raise _FailedError(failure) from error


def _end(code: int) -> str:
    """Describe how a command ended; shells add 128 to the number of the signal that killed it."""
    number = -code if code < 0 else code - 128
    if number in {each.value for each in signal.Signals}:
        return f"killed by {signal.Signals(number).name}"
    return f"exit code {code}"


def write_result(path: Path, content: bytes) -> None:
    """Write a file of the results.

    Raises:
        FleetPathError: it cannot be written.
    """
    try:
        replace_file(path, content, durable=True)
    except OSError as error:
        fix = "give a folder that this user may write"
        raise FleetPathError(str(path), error.strerror or str(error), fix) from error
