"""xtc journal, xtc epoch and a forced release, from the command line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running_daemon import RunningDaemon
from simulated_rig import Rig, plan

from common import dirlock as held
from xtc.daemon.build import release_all
from xtc.daemon.client import Client
from xtc.errors import JournalError, TakenOver
from xtc.lease import Lease
from xtc.spec import SimulatedOriginal, SimulatedSpec
from xtc.state.journal import Entry, Journal, Ledger, boot_id
from xtc.wire import Activate, Status

ENTRY = Entry(SimulatedSpec("a"), SimulatedOriginal(0.5))
LEDGER = Ledger(boot_id(), {"a": ENTRY}, {"a": Lease(2e4, epoch=7)}, {"a": ("a.0",)}, 9)


def leave(directory: Path, ledger: Ledger = LEDGER) -> None:
    with Journal(directory) as journal:
        journal.store(ledger)


def left(directory: Path) -> Ledger:
    with Journal(directory) as journal:
        assert journal.quarantined is None
        return journal.ledger


def damage(directory: Path) -> None:
    path = directory / "journal"
    path.write_bytes(path.read_bytes().replace(b"20000", b"30000"))


def xtc(
    directory: Path, *words: str, code: int = 0, answer: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run a command as the shell would; it must end with this exit code."""
    places = {"XTC_STATE_DIR": str(directory), "XTC_RUNTIME_DIR": str(directory.parent / "run")}
    done = subprocess.run(
        [sys.executable, "-m", "xtc", *words],
        env=os.environ | places,
        input=answer,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    return done


def told(directory: Path, *words: str) -> Any:
    return json.loads(xtc(directory, *words, "--json").stdout)


# Show


def test_what_is_recorded_is_shown_while_a_daemon_runs(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.store(LEDGER)
        before = sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir())
        shown = xtc(tmp_path, "journal", "show").stdout
        (one,) = told(tmp_path, "journal", "show")
        after = sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir())
    assert after == before
    for words in ("highest epoch 9", "original of a:", "lease of a: 20 kp/s", "limit of a: a.0"):
        assert words in shown
    assert one["problems"] == []
    assert one["ledger"]["highest_epoch"] == 9


def test_a_damaged_journal_is_shown_with_its_problems(tmp_path: Path) -> None:
    leave(tmp_path)
    damage(tmp_path)
    assert "problem: the checksum does not match" in xtc(tmp_path, "journal", "show").stdout
    (one,) = told(tmp_path, "journal", "show")
    assert one["ledger"]["entries"].keys() == {"a"}
    assert (tmp_path / "journal").exists()


def test_a_directory_without_a_journal_says_so(tmp_path: Path) -> None:
    assert "holds no journal" in xtc(tmp_path, "journal", "show").stdout
    assert str(tmp_path / "no") in xtc(tmp_path / "no", "journal", "show", code=1).stderr


# Repair


def test_a_damaged_journal_is_repaired_and_everything_before_is_kept(tmp_path: Path) -> None:
    leave(tmp_path)
    damage(tmp_path)
    with pytest.raises(JournalError, match="xtc journal repair"):
        release_all(tmp_path)
    leave(tmp_path, Ledger(boot_id(), {"a": Entry(ENTRY.spec, SimulatedOriginal(0.1))}))
    assert "older" not in xtc(tmp_path, "journal", "repair", code=1, answer="n\n").stdout
    assert left(tmp_path).highest_epoch == 0
    outcome = told(tmp_path, "journal", "repair", "--yes")
    assert left(tmp_path).entries == {"a": ENTRY}
    assert left(tmp_path).highest_epoch == 9
    assert all((tmp_path / name).exists() for name in outcome["kept"])
    assert len(outcome["kept"]) == 2
    assert "nothing to repair" in xtc(tmp_path, "journal", "repair").stdout


def test_a_repair_that_is_confirmed_is_made(tmp_path: Path) -> None:
    leave(tmp_path)
    damage(tmp_path)
    xtc(tmp_path, "journal", "repair", answer="y\n")
    assert left(tmp_path).entries == {"a": ENTRY}


@pytest.mark.parametrize("words", [("journal", "repair"), ("epoch", "reset")])
def test_a_running_daemon_is_not_undermined(tmp_path: Path, words: tuple[str, ...]) -> None:
    with Journal(tmp_path):
        assert "running xtc daemon" in xtc(tmp_path, *words, "--yes", code=2).stderr


# The epoch


def test_an_epoch_given_by_mistake_is_undone(tmp_path: Path) -> None:
    leave(tmp_path)
    done = xtc(tmp_path, "epoch", "reset", "--to", "3", "--yes", "--json")
    assert json.loads(done.stdout) == {"before": 9, "highest_epoch": 3}
    assert "epoch_reset" in done.stderr
    assert left(tmp_path).highest_epoch == 3
    assert left(tmp_path).leases["a"].epoch == 3
    assert left(tmp_path).entries == LEDGER.entries
    assert "--to" in xtc(tmp_path, "epoch", "reset", "--to", "4", "--yes", code=2).stderr


def test_an_epoch_is_lowered_only_when_confirmed(tmp_path: Path) -> None:
    leave(tmp_path)
    xtc(tmp_path, "epoch", "reset", code=1, answer="n\n")
    assert left(tmp_path).highest_epoch == 9
    xtc(tmp_path, "epoch", "reset", answer="y\n")
    assert left(tmp_path).highest_epoch == 0


def test_after_a_reset_lower_epochs_are_obeyed_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"a": plan("a")})
    rig.ask(Activate("a", 20e3, epoch=10**9, sequence=4))
    assert "--epoch 1000000000" in rig.refused(Activate("a", 1e4, epoch=5)).fix
    assert "xtc epoch reset" in rig.refused(Activate("a", 1e4, epoch=5)).fix
    rig.tick()
    rig.crash()
    xtc(tmp_path, "epoch", "reset", "--to", "5", "--yes")
    rig.start()
    rig.ask(Activate("a", 30e3, epoch=5, sequence=1))


# Past a daemon that hangs


@pytest.fixture
def process(tmp_path: Path) -> Iterator[RunningDaemon]:
    with RunningDaemon(tmp_path) as process:
        yield process


def test_past_a_daemon_that_hangs_caps_are_released_and_it_ends_when_it_wakes_up(
    process: RunningDaemon,
) -> None:
    process.start()
    with Client(process.run, timeout=10) as client:
        client.call(Activate("a", 20e3, epoch=3))
        for _, _ in zip(range(3), client.telemetry(), strict=False):
            continue
    process.signal(signal.SIGSTOP)
    (hung,) = held.holders(process.state)
    refused = xtc(process.state, "release", "--all", code=3).stderr
    assert "--force" in refused
    assert f"process {hung}" in refused
    done = xtc(process.state, "release", "--all", "--force", "--json")
    assert json.loads(done.stdout) == {"a": "released"}
    assert "warning" in done.stderr
    process.signal(signal.SIGCONT)
    assert process.ended() == 4
    assert "taken over" in process.log.read_text()
    assert left(process.state) == Ledger(boot_id(), left(process.state).entries, highest_epoch=3)
    assert left(process.state).entries.keys() == {"a"}
    assert xtc(process.state, "release", "--all").stdout == "a: released\n"
    assert left(process.state).entries == {}


def test_a_daemon_that_answers_is_asked_though_force_is_given(process: RunningDaemon) -> None:
    process.start()
    xtc(process.state, "release", "--all", "--force")
    with Client(process.run, timeout=10) as client:
        assert client.call(Status())


def test_force_goes_with_all(tmp_path: Path) -> None:
    assert "--all" in xtc(tmp_path, "release", "a", "--force", code=2).stderr


def test_a_daemon_whose_journal_was_taken_over_caps_and_stores_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"a": plan("a"), "b": plan("b")})
    rig.hold("a", 20e3)
    release_all(tmp_path, force=True)
    rig.plant.actuator("a").restore(SimulatedOriginal(None))
    with pytest.raises(TakenOver):
        rig.manager.check_held()
    rig.ask(Activate("b", 20e3))
    rig.tick(5)
    assert rig.cap("a") is rig.cap("b") is None
    assert "taken over" in rig.manager.journal_problem
    rig.crash()
    assert left(tmp_path).leases == {}


def test_the_holder_of_a_directory_is_known(tmp_path: Path) -> None:
    with Journal(tmp_path):
        assert held.holders(tmp_path) == [os.getpid()]
    assert held.holders(tmp_path) == held.holders(tmp_path / "no") == []
