"""The processes of a sandbox: a real daemon for each simulated host, which exits with its owner."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from common.directories import open_directory
from common.errors import Busy, ConfigError
from common.process import end_with_parent
from xtc.config.plan import model_named
from xtc.daemon.build import run_daemon
from xtc.sandbox.layout import MODEL, HostPlace
from xtc.sandbox.loads import Sent, Watched, write_loads
from xtc.simulation.shared_host import SharedHost

START_S = 30.0
"""How long hosts may take to start: seconds on a busy machine."""
STOP_S = 15.0
"""How long they may take to restore everything."""
LOOK_S = 0.2
Processes = Mapping[str, "subprocess.Popen[bytes]"]
"""By host."""


@dataclass
class EndRequest:
    """Whether a signal has requested the exit.

    A handler may run while its own thread holds a lock, so this uses no lock, unlike an event.
    """

    made: bool = False

    def wait(self, seconds: float) -> bool:
        """Sleep unless the exit was requested; return whether it was."""
        if not self.made:
            time.sleep(seconds)
        return self.made


def run_host(place: HostPlace, owner: int) -> None:
    """Run the daemon of a simulated host, until the owner exits or a signal arrives.

    Raises:
        XtcError: as `run_daemon`.
    """
    end_with_parent(signal.SIGTERM)
    if os.getppid() != owner:  # it exited before the line above
        return
    host = SharedHost(model_named(MODEL), Watched(place.loads, place.usual))
    run_daemon(place.config(), None, sandbox=host)


def end_request() -> EndRequest:
    """Return an object that records requests to exit by signal, from now on."""
    request = EndRequest()

    def ask(_number: int, _frame: FrameType | None) -> None:
        request.made = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ask)
    return request


@contextmanager
def running(places: Sequence[HostPlace], asked: EndRequest) -> Iterator[Processes]:
    """Run the daemons of all hosts within the block, which begins once they answer.

    Args:
        places: the hosts.
        asked: whether the exit was requested, which stops the wait for hosts.

    Raises:
        ConfigError: a directory cannot be used, or a daemon did not start; names its log.
        Busy: a sandbox runs there already.
    """
    for place in places:
        _prepare(place)
    processes = {place.name: _started(place) for place in places}
    try:
        for place in places:
            _await(place, processes[place.name], asked)
        yield processes
    finally:
        _end(processes.values())


def wait_for_end(processes: Processes, asked: EndRequest) -> str:
    """Wait until the exit is requested, or a daemon exits by itself.

    Returns:
        That daemon's host; "" if the exit was requested.
    """
    while not asked.wait(LOOK_S):
        for name, process in processes.items():
            if process.poll() is not None:
                return name
    return ""


def _prepare(place: HostPlace) -> None:
    """Create a host's directory, with the initial load of its routers.

    Raises:
        ConfigError: it cannot be created, or another user could write there.
        Busy: a daemon answers there.
    """
    try:
        os.close(open_directory(place.directory, mode=0o700))
        if place.runs():
            raise Busy(f"a sandbox runs in {place.directory.parent} (name another --directory)")
        write_loads(place.loads, {vr: Sent(pps, pps) for vr, pps in place.usual.items()})
    except OSError as error:
        problem = f"{place.directory}: {error.strerror or error}"
        raise ConfigError("--directory", problem, "name one of your own") from error


def _started(place: HostPlace) -> "subprocess.Popen[bytes]":
    words = (str(place.directory.parent), place.name, str(os.getpid()))
    with place.log.open("wb") as log:
        return subprocess.Popen(  # noqa: S603  this very program
            [sys.executable, "-m", "xtc.sandbox", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _await(place: HostPlace, process: "subprocess.Popen[bytes]", asked: EndRequest) -> None:
    until = time.monotonic() + START_S
    while not place.runs() and not asked.made:
        if process.poll() is not None or time.monotonic() > until:
            said = place.log.read_text(errors="replace").strip().split("\n")[-1]
            raise ConfigError(place.name, f"did not start: {said}", f"see {place.log}")
        asked.wait(LOOK_S)


def _end(processes: "Iterable[subprocess.Popen[bytes]]") -> None:
    """Have all daemons restore their changes and exit."""
    left = [*processes]
    for process in left:
        process.terminate()
    until = time.monotonic() + STOP_S
    for process in left:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
