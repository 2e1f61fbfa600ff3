"""Promise 6: `xtc release --all` works with nothing else running."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from manager_rig import FakeLimiter
from running_daemon import RunningDaemon

from common.errors import Busy
from xtc.daemon import build as assemble
from xtc.daemon.build import release_all
from xtc.daemon.client import Client
from xtc.errors import Denied, JournalError
from xtc.spec import CgroupOriginal, CgroupSpec, SimulatedOriginal, SimulatedSpec
from xtc.state.journal import Entry, Journal, Ledger, boot_id
from xtc.state.repair import carry_out, planned, read_all
from xtc.wire import Activate

GONE = Entry(CgroupSpec("/sys/fs/cgroup/cpu/xtc-no-such-group"), CgroupOriginal(None, 100_000))
SIMULATED = Entry(SimulatedSpec("a"), SimulatedOriginal(None))


@pytest.fixture
def process(tmp_path: Path) -> Iterator[RunningDaemon]:
    with RunningDaemon(tmp_path) as process:
        yield process


def left(directory: Path) -> Ledger:
    with Journal(directory) as journal:
        return journal.ledger


def leave(directory: Path, ledger: Ledger) -> None:
    with Journal(directory) as journal:
        journal.store(ledger)


def test_after_kill_9_a_process_of_its_own_releases(process: RunningDaemon) -> None:
    """No daemon, no configuration, no socket: the state directory is enough."""
    process.start()
    with Client(process.run, timeout=10) as client:
        client.call(Activate("a", 20e3, epoch=3))
        for _, _ in zip(range(2), client.telemetry(), strict=False):
            continue
    process.signal(signal.SIGKILL)
    process.ended()
    process.path.unlink()
    assert left(process.state).entries.keys() == {"a"}
    done = subprocess.run(
        [sys.executable, "-m", "xtc", "release", "--all", "--json"],
        env={"PATH": os.environ["PATH"], "XTC_STATE_DIR": str(process.state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {"a": "released"})
    assert left(process.state) == Ledger(boot_id(), highest_epoch=3)


def test_what_is_gone_is_released(tmp_path: Path) -> None:
    leave(tmp_path, Ledger(boot_id(), {"r": GONE, "s": SIMULATED}))
    assert release_all(tmp_path) == {"r": "released", "s": "released"}
    assert not left(tmp_path).entries


def test_what_fails_is_told_and_stays_in_the_journal_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An actuator that refuses: the journal's original is of another kind than its place."""
    odd = Entry(GONE.spec, SimulatedOriginal(None))
    limiter = FakeLimiter({"r.0": 1e3}, Denied("r.0", "not allowed"))
    monkeypatch.setattr(assemble, "BestLimiter", lambda: limiter)
    leave(tmp_path, Ledger(boot_id(), {"odd": odd, "s": SIMULATED}, {}, {"r": ("r.0",)}, 7))
    outcome = release_all(tmp_path)
    assert outcome.pop("s") == "released"
    assert "the journal holds a SimulatedOriginal" in outcome.pop("odd")
    assert outcome == {"r's limit": "r.0: not allowed"}
    assert left(tmp_path) == Ledger(boot_id(), {"odd": odd}, {}, {"r": ("r.0",)}, 7)


def test_a_running_daemon_is_not_undermined(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(Busy):
        release_all(tmp_path)


def test_a_journal_that_cannot_be_trusted_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"nonsense")
    with pytest.raises(JournalError, match="xtc journal show"):
        release_all(tmp_path)


def test_a_journal_that_was_set_aside_is_a_failure_until_it_is_repaired(tmp_path: Path) -> None:
    leave(tmp_path, Ledger(boot_id(), {"a": SIMULATED}))
    (tmp_path / "journal").write_bytes(b"damage " + (tmp_path / "journal").read_bytes())
    with pytest.raises(JournalError):
        release_all(tmp_path)
    leave(tmp_path, Ledger(boot_id(), {"s": SIMULATED}))
    outcome = release_all(tmp_path)
    assert outcome.pop("s") == "released"
    ((path, words),) = outcome.items()
    assert Path(path).name.startswith("journal.corrupt-")
    assert "run `xtc journal repair`" in words
    with Journal(tmp_path) as journal:
        carry_out(journal, planned(read_all(journal.descriptor), boot_id()))
    assert release_all(tmp_path) == {"a": "released"}


def test_a_journal_of_another_boot_that_was_set_aside_has_no_caps(tmp_path: Path) -> None:
    (tmp_path / "journal.corrupt-7").write_bytes(
        b"damage\n" + msgspec.json.encode(Ledger("another", {"a": SIMULATED}))
    )
    assert release_all(tmp_path) == {}
