"""What ends a sweep midway: one line, exit code 1, the cap put back, every whole sample kept."""

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.waiting import eventually
from training_rig import CONFIG

from common.clock import FakeClock
from common.units import CapFraction, Seconds
from training.cli.main import main
from training.errors import RecordingError
from training.recording.recording import Metadata, Recording, read_csv, write_csv
from xtc.config.plan import RouterPlan
from xtc.daemon.build import simulated_host
from xtc.simulation.host import SimulatedHost
from xtc.state.journal import Journal

ORIGINAL = CapFraction(0.7)
FILE_LIMIT = 4096
"""Bytes after which a file takes no more, as on a full disk; the journal needs fewer."""
MIDWAY = 160.0
"""When a fault comes, on a clock that starts at 100."""

Fault = Callable[["Sweeps"], None]


class FaultyClock(FakeClock):
    """A clock that jumps, and lets something happen on its way."""

    def __init__(self, fault: Callable[[], None]) -> None:
        super().__init__(100.0)
        self._fault: Callable[[], None] | None = fault

    def sleep(self, duration: Seconds) -> None:
        super().sleep(duration)
        if self.now() > MIDWAY and self._fault is not None:
            fault, self._fault = self._fault, None
            fault()


class Sweeps:
    """Runs the installed command on a simulated router that its operator has capped."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capsys: "Captured") -> None:
        self.folder, self.file = folder, folder / "sweep.csv"
        self.pids = folder / "pid"
        self.patch, self._capsys = patch, capsys
        self.host: SimulatedHost | None = None
        (folder / "xtc.toml").write_text(CONFIG.format(folder))
        patch.setattr("training.sweep.targets.simulated_host", self._host)

    def _host(self, plans: Mapping[str, RouterPlan]) -> SimulatedHost | None:
        self.host = simulated_host(plans)
        assert self.host is not None
        self.host.routers["gold"].cap = ORIGINAL
        return self.host

    def run(self, fault: Fault, *options: str) -> tuple[int | str | None, str]:
        """Return the exit code, and what was written to standard error but progress."""
        self.patch.setattr(
            "training.sweep.targets.MonotonicClock", lambda: FaultyClock(self._once(fault))
        )
        return self.called("sweep", "--output", str(self.file), *options)

    def validate(self, fault: Fault, *options: str) -> tuple[int | str | None, str]:
        """Judge the paper's model, as `run` sweeps."""
        self.patch.setattr(
            "training.sweep.targets.MonotonicClock", lambda: FaultyClock(self._once(fault))
        )
        return self.called("validate", "--model", "paper", *options)

    def called(self, command: str, *options: str) -> tuple[int | str | None, str]:
        """Return the exit code, and what was written to standard error but progress."""
        place = ["--config", str(self.folder / "xtc.toml")]
        self.patch.setattr(sys, "argv", ["xtc-train", command, "--json", *place, *options])
        try:
            main()
        except SystemExit as end:
            return end.code, self._capsys.readouterr().err
        return 0, self._capsys.readouterr().err

    def _once(self, fault: Fault) -> Callable[[], None]:
        return lambda: fault(self)

    @property
    def cap(self) -> float | None:
        """What the router is capped at."""
        assert self.host is not None
        return self.host.routers["gold"].cap

    @property
    def left(self) -> list[str]:
        """What the journal says may still be capped."""
        with Journal(self.folder / "state") as journal:
            return list(journal.ledger.entries)


Captured = pytest.CaptureFixture[str]
Work = Callable[..., tuple[int | str | None, str]]


@pytest.fixture
def sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Sweeps:
    return Sweeps(tmp_path, monkeypatch, capsys)


def nothing(_: Sweeps) -> None:
    """Let it run."""


def kill_source(sweeps: Sweeps) -> None:
    """Kill the source, and return when whoever minds it has ended, too."""
    while not sweeps.pids.exists() or not sweeps.pids.read_text().endswith("\n"):
        pass
    source = int(sweeps.pids.read_text())
    minder = int(status_of(source)["PPid"])
    os.kill(source, signal.SIGKILL)
    eventually(lambda: status_of(minder)["State"].startswith("Z"))


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def remove_router(sweeps: Sweeps) -> None:
    assert sweeps.host is not None
    del sweeps.host.routers["gold"]


@contextmanager
def full_disk(limit: int = FILE_LIMIT) -> Iterator[None]:
    """Let no file grow beyond the limit; Python turns the signal into an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def one_line(error: str, *words: str) -> None:
    assert error.count("\n") == 1, error
    assert error.startswith("xtc-train: ")
    assert [word for word in words if word not in error] == []


def goes_on(sweeps: Sweeps, *options: str) -> Recording:
    """Run again to the end; all that was kept is still there."""
    before = read_csv(sweeps.file).samples
    assert before
    assert sweeps.run(nothing, *options) == (0, "")
    recording = read_csv(sweeps.file)
    assert recording.samples[: len(before)] == before
    assert len(recording.samples) > len(before)
    return recording


def test_a_source_that_dies(sweeps: Sweeps) -> None:
    source = f"sh -c 'echo $$ > {sweeps.pids}; exec sleep 60' {{rate}}"
    options = ("--source", source, "--offered", "90kpps")
    code, error = sweeps.run(kill_source, *options)
    assert code == 1
    one_line(error, "the source: ended by itself with exit code 137", "goes on where it stopped")
    assert (sweeps.cap, sweeps.left) == (ORIGINAL, [])
    assert read_csv(sweeps.file).samples[-1].at <= MIDWAY - 100
    assert goes_on(sweeps, *options).metadata.offered_pps == 90e3


@pytest.mark.parametrize("offered", [(), ("--offered", "200kpps")])
@pytest.mark.parametrize("work", [Sweeps.run, Sweeps.validate])
def test_a_source_that_ends_at_once(sweeps: Sweeps, work: Work, offered: tuple[str, ...]) -> None:
    """A simulated router forwards on without it; with no rate given, one is looked for first."""
    sweeps.patch.setattr(f"{__name__}.MIDWAY", 100.0)
    code, error = work(sweeps, await_end, "--source", 'sh -c "exit 3" {rate}', *offered)
    assert code == 1
    one_line(error, "the source: ended by itself with exit code 3")
    assert (sweeps.cap, sweeps.left) == (ORIGINAL, [])


def test_a_source_that_ends_at_once_where_nothing_is_left_to_measure(sweeps: Sweeps) -> None:
    whole = ("--offered", "90kpps", "--budget", "1min")
    assert sweeps.run(nothing, "--source", "sleep 60{rate}", *whole) == (0, "")
    before = sweeps.file.read_bytes()
    sweeps.patch.setattr(f"{__name__}.MIDWAY", 100.0)
    code, error = sweeps.run(await_end, "--source", 'sh -c "exit 3" {rate}', *whole)
    assert code == 1
    one_line(error, "the source: ended by itself with exit code 3")
    assert sweeps.file.read_bytes() == before


def await_end(_: Sweeps) -> None:
    eventually(ended_children)


def ended_children() -> list[str]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [c for c in children if status_of(int(c))["State"].startswith("Z")]


def test_a_router_that_disappears(sweeps: Sweeps) -> None:
    code, error = sweeps.run(remove_router)
    assert code == 1
    one_line(error, "gold", "no such router")
    assert sweeps.left == []
    goes_on(sweeps)


def test_a_full_disk(sweeps: Sweeps) -> None:
    with full_disk():
        code, error = sweeps.run(nothing)
    assert code == 1
    one_line(error, f"{sweeps.file}: File too large", "goes on where it stopped")
    assert sweeps.file.stat().st_size == FILE_LIMIT
    assert (sweeps.cap, sweeps.left) == (ORIGINAL, [])
    content = sweeps.file.read_bytes()
    assert not content.endswith(b"\n")  # a part of a line, which nobody reads as a whole one
    assert len(read_csv(sweeps.file).samples) > 20
    with full_disk(FILE_LIMIT // 2):
        code, error = sweeps.run(nothing)
    assert code == 1
    one_line(error, f"{sweeps.file}: File too large", "goes on where it stopped")
    assert sweeps.file.read_bytes() == content
    assert written_halves(sweeps.folder) == []
    recording = goes_on(sweeps)
    whole = content[: content.rindex(b"\n") + 1]
    assert sweeps.file.read_bytes().startswith(whole)
    assert recording.samples[-1].phase == "held_out"


def test_a_disk_that_is_full_from_the_start(sweeps: Sweeps) -> None:
    recording = Recording(Metadata(host="a"), ())
    with full_disk(16), pytest.raises(RecordingError, match="File too large"):
        write_csv(recording, sweeps.file)
    assert written_halves(sweeps.folder) == []
    assert not sweeps.file.exists()
    write_csv(recording, sweeps.file)
    assert read_csv(sweeps.file) == recording


def written_halves(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.new"))
