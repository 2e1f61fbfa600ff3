"""A sweep under faults: what a killed one leaves running, and sources and routers that go away."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes import command_line
from support.waiting import eventually
from training_rig import CONFIG

from lab.system import cgroups, requirements
from lab.system.teardown import find, tear_down
from training.errors import RecordingError
from training.recording.recording import Sample, read_csv
from training.sweep.targets import LAB_PREFIX, LAB_ROUTER
from xtc.state.journal import Journal

PATIENCE_S = 180.0
pytestmark = pytest.mark.timeout(600)
SOURCE = "sh -c 'sleep 60 & echo $$ $! > {0}; wait' {{rate}}"
"""A source as operators write them: a shell, and the program that it starts."""


class Sweep:
    """A running sweep."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.file, self.state = folder / "sweep.csv", folder / "state"
        command = [
            sys.executable,
            "-m",
            "training.cli.main",
            "sweep",
            "-o",
            str(self.file),
            "--json",
        ]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def samples(self) -> tuple[Sample, ...]:
        try:
            return read_csv(self.file).samples
        except RecordingError:
            return ()

    def capped(self) -> bool:
        return any(sample.cap is not None for sample in self.samples())

    def ended(self) -> tuple[int, str]:
        _, error = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, error

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def runs(pid: int) -> bool:
    """Whether a process is there, and more than a zombie."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the second: it ends while it is read
        return False
    return "State:\tZ" not in status


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[Sweep, list[int]]]:
    """A sweep of a simulated router with a source of two processes, and their ids."""
    (tmp_path / "xtc.toml").write_text(CONFIG.format(tmp_path))
    place, pids = ["--config", str(tmp_path / "xtc.toml")], tmp_path / "pids"
    source = ["--source", SOURCE.format(pids), "--offered", "90kpps"]
    sweep = Sweep(tmp_path, *place, *source)
    try:
        eventually(lambda: pids.exists() and pids.read_text().endswith("\n"), PATIENCE_S)
        yield sweep, [int(pid) for pid in pids.read_text().split()]
    finally:
        sweep.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_source_and_what_it_started_end_with_the_sweep(
    started: tuple[Sweep, list[int]], number: signal.Signals
) -> None:
    sweep, pids = started
    assert [runs(pid) for pid in pids] == [True, True]
    sweep.process.send_signal(number)
    eventually(lambda: not any(runs(pid) for pid in pids))


@pytest.fixture
def lab_sweep(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sweep]:
    missing = requirements.missing() if os.geteuid() == 0 else ["needs root"]
    if missing:
        pytest.skip("; ".join(missing))
    request.getfixturevalue("training_lab_alone")
    lab = ["--lab", "user-space", "--lab-state-dir", str(tmp_path / "state"), "--period", "0.5"]
    sweep = Sweep(tmp_path, *lab, "--offered", "60kpps", "--budget", "60s")
    yield sweep
    sweep.close()
    tear_down(LAB_PREFIX)


def programs(module: str) -> list[int]:
    """Return the running programs of the lab that were made of a module."""
    found = find(LAB_PREFIX).processes
    return [pid for pid in found if module in command_line(pid)]


def ends_in_order(sweep: Sweep, *words: str) -> None:
    """The one line says why, nothing is left capped, and no sample is broken."""
    code, error = sweep.ended()
    assert code == 1, error
    (line,) = [line for line in error.splitlines() if line.startswith("xtc-train: ")]
    assert [word for word in words if word not in line] == []
    assert "Traceback" not in error
    with Journal(sweep.state) as journal:
        assert journal.ledger.entries == {}
    assert sweep.file.read_text().endswith("\n")
    assert sweep.capped()


@pytest.mark.root
def test_a_lab_whose_source_is_killed(lab_sweep: Sweep) -> None:
    eventually(lab_sweep.capped, PATIENCE_S)
    (source,) = programs("lab.programs.source")
    os.kill(source, signal.SIGKILL)
    ends_in_order(lab_sweep, "the source: ended by itself", "goes on where it stopped")


@pytest.mark.root
def test_a_lab_whose_forwarder_is_killed(lab_sweep: Sweep) -> None:
    """Its control group and interfaces stay: a router that forwards nothing, to the meter."""
    eventually(lab_sweep.capped, PATIENCE_S)
    (forwarder,) = programs("lab.programs.forwarder")
    os.kill(forwarder, signal.SIGKILL)
    ends_in_order(lab_sweep, "the lab: vr: forwarder ended by itself", "goes on where it stopped")
    assert all(sample.throughput_pps > 0 for sample in lab_sweep.samples())


@pytest.mark.root
def test_a_router_whose_group_is_removed(lab_sweep: Sweep) -> None:
    """Its forwarder runs on, elsewhere."""
    eventually(lab_sweep.capped, PATIENCE_S)
    root = cgroups.find_root()
    assert root is not None
    group = root / LAB_PREFIX / LAB_ROUTER
    for pid in cgroups.processes(group):
        (root / "cgroup.procs").write_text(str(pid))
    group.rmdir()
    ends_in_order(lab_sweep, str(group))
