"""What holds a state directory is looked at before it is taken by force."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_daemon import RunningDaemon
from support.waiting import eventually

from xtc.daemon.holder import LOOKS, Holder, look, obstacle
from xtc.daemon.server import REQUESTS
from xtc.state.journal import Journal

RUN = ("xtc", "run")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[RunningDaemon]:
    with RunningDaemon(tmp_path) as process:
        yield process


def forced(state: Path, runtime: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "xtc", "release", "--all", "--force"]
    directories = ["--state-dir", str(state), "--runtime-dir", str(runtime)]
    return subprocess.run(
        [*command, *directories], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_daemon_asked_at_the_wrong_place_keeps_its_directory(
    process: RunningDaemon, tmp_path: Path
) -> None:
    process.start()
    done = forced(process.state, tmp_path / "elsewhere")
    assert done.returncode == 2
    assert f"--runtime-dir {process.run}" in done.stderr
    assert forced(process.state, process.run).returncode == 0  # it goes on, and answers


def test_a_command_that_is_no_daemon_keeps_its_directory(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with Journal(tmp_path / "state"):
        done = forced(tmp_path / "state", tmp_path / "run")
    assert done.returncode == 2
    assert "is no daemon: wait until it ends, or kill it" in done.stderr


def test_what_is_seen_of_a_daemon_that_is_stopped(process: RunningDaemon) -> None:
    process.start()
    process.signal(signal.SIGSTOP)
    eventually(lambda: look(process.state)[0].hangs)
    (holder,) = look(process.state)
    assert (holder.is_daemon, holder.listens) == (True, (str(process.run / REQUESTS),))
    assert "stopped by a signal" in str(holder)


HERE = Path("/run/xtc")
MINE = (str(HERE / REQUESTS),)
OTHER = ("/srv/xtc/manager.sock",)


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        (Holder(7, RUN, "S", MINE), ""),
        (Holder(7, RUN, "S", ()), ""),
        (Holder(7, RUN, "S", (*MINE, *OTHER)), ""),
        (Holder(7, RUN, "S", OTHER), "--runtime-dir /srv/xtc"),
        (Holder(7, RUN, "T", OTHER), ""),
        (Holder(7, (), "", ()), ""),
        (Holder(7, ("xtc", "journal", "repair"), "S", ()), "no daemon"),
        (Holder(7, ("xtc", "journal", "repair"), "D", ()), ""),
    ],
)
def test_only_what_may_hang_is_overruled(holder: Holder, words: str) -> None:
    found = obstacle((holder,), HERE)
    assert bool(found) is bool(words)
    assert words in found


def test_no_holder_that_can_be_seen_is_no_obstacle() -> None:
    assert obstacle((), HERE) == ""


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    with Journal(tmp_path):
        (holder,) = look(tmp_path, proc=tmp_path / "no-proc")
    assert (holder.command, holder.state, holder.listens) == ((), "", ())


def test_a_name_in_brackets_hides_no_state(tmp_path: Path) -> None:
    with Journal(tmp_path / "state"):
        (pid,) = {holder.pid for holder in look(tmp_path / "state")}
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) R (b) T 1 1")
        (holder,) = look(tmp_path / "state", proc=tmp_path)
    assert holder.state == "T"


@pytest.mark.parametrize(("until", "hangs"), [(3, False), (LOOKS + 1, True)])
def test_a_daemon_that_writes_to_a_disk_does_not_hang(
    tmp_path: Path, until: int, hangs: bool
) -> None:
    with Journal(tmp_path / "state"):
        (pid,) = {holder.pid for holder in look(tmp_path / "state")}
        (tmp_path / str(pid)).mkdir()
        stat = tmp_path / str(pid) / "stat"
        stat.write_text(f"{pid} (xtc) D 1 1")
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == until:
                stat.write_text(f"{pid} (xtc) S 1 1")

        (holder,) = look(tmp_path / "state", proc=tmp_path, pause=pause)
    assert holder.hangs is hangs
    assert sum(pauses) <= 2.0 + 1e-9
