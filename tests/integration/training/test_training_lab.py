"""xtc-train on real packets: a short sweep, and what is left of one that is stopped or killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import quota_of
from support.inconclusive import inconclusive
from support.processes import command_line
from support.stalls import Stalls
from support.waiting import eventually
from support.weights import make_punctual, prefer

from lab.system import cgroups, requirements
from lab.system.teardown import find, tear_down
from training.errors import RecordingError, UnfitError
from training.fit.fit import Fit, fit
from training.recording.recording import Recording, Sample, read_csv
from training.sweep.targets import LAB_PREFIX, LAB_ROUTER
from xtc.daemon.build import release_all
from xtc.state.journal import Journal

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
OFFERED = "60kpps"
PERIOD_S = 0.5
PATIENCE_S = 180.0
"""A sweep of 25 s takes longer where its start does."""


class Sweeps:
    """Starts sweeps of the lab's user-space router, all into one file if no other is named."""

    def __init__(self, folder: Path) -> None:
        self.file, self.state = folder / "sweep.csv", folder / "state"
        self.running: list[subprocess.Popen[str]] = []

    def start(
        self, budget: str, *, file: Path | None = None, state: Path | None = None
    ) -> "subprocess.Popen[str]":
        options = ["--budget", budget, "--period", str(PERIOD_S), "--offered", OFFERED, "--json"]
        places = ["--output", str(file or self.file)]
        places += ["--lab-state-dir", str(state or self.state)]
        command = [sys.executable, "-m", "training.cli.main", "sweep", "--lab", "user-space"]
        process = subprocess.Popen(
            [*command, *options, *places],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def capped(self) -> tuple[Sample, ...]:
        """Wait until the file shows a sample under a cap; return all that it shows."""

        def found() -> tuple[Sample, ...]:
            samples = self.samples()
            return samples if samples and samples[-1].cap is not None else ()

        return eventually(found, PATIENCE_S, state=self.samples)

    def prefer(self) -> None:
        """Wait for the lab, and let other work take little of its router's and source's CPU."""
        for source in eventually(sources, PATIENCE_S):
            make_punctual(source)
        prefer(router_group().parent)

    def samples(self) -> tuple[Sample, ...]:
        try:
            return read_csv(self.file).samples
        except RecordingError:
            return ()

    def close(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()
        tear_down(LAB_PREFIX)


@pytest.fixture
def sweeps(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sweeps]:
    missing = requirements.missing() if os.geteuid() == 0 else ["needs root"]
    if missing:
        pytest.skip("; ".join(missing))
    request.getfixturevalue("training_lab_alone")
    sweeps = Sweeps(tmp_path)
    yield sweeps
    sweeps.close()


def router_group() -> Path:
    """Return the control group of the lab's router."""
    root = cgroups.find_root()
    assert root is not None
    return root / LAB_PREFIX / LAB_ROUTER


def sources() -> list[int]:
    """Return the processes of the lab that send."""
    found = find(LAB_PREFIX).processes
    return [pid for pid in found if "lab.programs.source" in command_line(pid)]


def quota() -> int | None:
    """Return the quota of the lab's router, None where it has none."""
    return quota_of(router_group())[0]


def left_in(state: Path) -> list[str]:
    """Return what the journal says may still be capped."""
    with Journal(state) as journal:
        return list(journal.ledger.entries)


def ended(process: "subprocess.Popen[str]") -> tuple[int, Any, str]:
    out, error = process.communicate(timeout=PATIENCE_S)
    return process.returncode, json.loads(out) if out else None, error


def fitted(recording: Recording, stalls: Stalls) -> Fit:
    """Fit a sweep; one of 25 s has no samples to spare, and a late tick gives none."""
    try:
        return fit(recording)
    except UnfitError as error:
        if stalls.longest() < PERIOD_S / 2:
            raise
        inconclusive(f"a CPU stood still for {stalls.longest():.2g} s: {error}")


def test_a_sweep_that_was_stopped_goes_on_and_ends_with_a_fit(
    sweeps: Sweeps, stalls: Stalls
) -> None:
    first = sweeps.start("25s")
    sweeps.prefer()
    sweeps.capped()
    first.send_signal(signal.SIGINT)
    code, _, error = ended(first)
    assert code == 1
    assert "stopped; what was capped is as it was" in error
    assert left_in(sweeps.state) == []
    before = sweeps.samples()
    again = sweeps.start("45s")  # with samples and steps to spare for the fit
    sweeps.prefer()
    code, summary, error = ended(again)
    assert code == 0, error
    assert left_in(sweeps.state) == []
    recording = read_csv(sweeps.file)
    assert recording.samples[: len(before)] == before
    assert summary["samples"] == len(recording.samples) > len(before)
    # A sample begins while a period is left; a late tick may end it after the budget.
    assert recording.samples[-2].at <= 45 - PERIOD_S + 1e-5
    assert recording.metadata.offered_pps == 60e3
    found = fitted(recording, stalls)
    assert found.points[0].throughput_pps.value < 0.3 * found.top_pps
    assert found.curve_r_squared > 0.8
    assert -0.5 < found.eq1.a.value < 0.5


def test_a_killed_sweep_is_undone_by_release_all_and_can_be_gone_on_with(sweeps: Sweeps) -> None:
    killed = sweeps.start("60s")
    sweeps.capped()
    killed.kill()
    killed.wait()
    assert quota() is not None
    assert left_in(sweeps.state) == [LAB_ROUTER]
    assert release_all(sweeps.state) == {LAB_ROUTER: "released"}
    assert quota() is None
    before = sweeps.samples()
    again = sweeps.start("60s")
    while len(sweeps.samples()) == len(before) and again.poll() is None:
        time.sleep(0.05)
    again.terminate()
    assert ended(again)[0] == 1
    assert sweeps.samples()[: len(before)] == before
    assert left_in(sweeps.state) == []


def test_a_second_sweep_leaves_the_labs_first_unharmed(sweeps: Sweeps, tmp_path: Path) -> None:
    """Whether it names another state directory or not."""
    first = sweeps.start("60s")
    sweeps.capped()
    programs = find(LAB_PREFIX).processes
    for number, state in enumerate((sweeps.state, tmp_path / "another")):
        file = tmp_path / f"second{number}.csv"
        code, summary, error = ended(sweeps.start("60s", file=file, state=state))
        assert (code, summary) == (1, None)
        assert (
            error == "xtc-train: --lab: another xtc-train runs its lab (wait for it, or stop it)\n"
        )
        assert not file.exists()
    before = len(sweeps.samples())
    while len(sweeps.samples()) == before and first.poll() is None:
        time.sleep(0.05)
    assert find(LAB_PREFIX).processes == programs
    assert sweeps.samples()[-1].throughput_pps > 0
    assert first.poll() is None
    assert quota() is not None
    first.send_signal(signal.SIGINT)
    assert ended(first)[0] == 1
    assert left_in(sweeps.state) == []
