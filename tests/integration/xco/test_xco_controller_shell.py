"""The controller's shell when something around it is wrong: leases, files, a silent database."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from structlog.testing import capture_logs
from support.stalls import Stalls
from support.waiting import eventually
from xco_controller_rig import MASTER
from xco_controller_scenes import settings_text, star
from xco_loop_hosts import UdpHost, now_ns

from xco.controller.config import load_controller_config
from xco.controller.metrics import controller_status
from xco.controller.shell import RETRY_S, Controller
from xco.controller.state import Role
from xco.controller.supervise import command
from xco.errors import ControllerError
from xco.leader.lease import FileLease
from xco.leader.postgres import PostgresLease
from xco.protocol.stats import read_statistics

if TYPE_CHECKING:
    from benchmarks.policer.postgres import PostgresServer

pytest_plugins = ["xco_loop_rig", "postgres_rig"]
pytestmark = pytest.mark.timeout(180)

TOPOLOGY = star(2)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def controller(controller_program: Path, tmp_path: Path, clock: Clock) -> Iterator[Controller]:
    assert controller_program.exists()
    (tmp_path / "topology.toml").write_text(TOPOLOGY)
    (tmp_path / "xco.toml").write_text(settings_text(tmp_path, tmp_path))
    (tmp_path / "key").write_bytes(MASTER)
    path = tmp_path / "xco.toml"
    lease = FileLease(tmp_path / "lease")
    made = Controller(load_controller_config(path), lease, path=path, clock=clock)
    yield made
    made.close()


def leads(controller: Controller) -> bool:
    controller.step()
    try:
        values = read_statistics(controller.config.stats_file).values
    except ControllerError:
        return False
    leader = controller.state.role is Role.LEADER
    return leader and values["epoch"] == controller.state.epoch and values["port"] > 0


def overtake(controller: Controller) -> None:
    """Let a host tell the leader that it has heard a higher epoch."""
    eventually(lambda: leads(controller))
    port = read_statistics(controller.config.stats_file).values["port"]
    host = UdpHost(0, bytes(32), port)
    host.epoch = higher = controller.state.epoch + 10**9

    def heard() -> bool:
        host.send(host.report(now_ns(), 1))
        return read_statistics(controller.config.stats_file).values["epoch_heard"] == higher

    eventually(heard)
    host.close()


def test_a_higher_epoch_is_answered_by_one_above_it_ever_less_often(
    controller: Controller, clock: Clock
) -> None:
    eventually(lambda: leads(controller))
    loop, pause_s = controller.state.loop_pid, RETRY_S
    for _ in range(3):
        before = controller.state.epoch
        overtake(controller)
        controller.step()
        assert controller.state.epoch > before + 10**9
        assert "does another controller use another lease?" in controller.state.problem
        before = controller.state.epoch
        overtake(controller)
        clock.now_s += 0.9 * pause_s
        controller.step()
        assert controller.state.epoch == before, "not yet"
        clock.now_s += 0.2 * pause_s
        controller.step()
        assert controller.state.epoch > before
        clock.now_s += 2.1 * pause_s
        pause_s *= 4
    assert (controller.state.role, controller.state.loop_pid) == (Role.LEADER, loop)
    eventually(lambda: leads(controller))


def test_a_leader_whose_lease_is_lost_answers_no_higher_epoch(
    controller: Controller, tmp_path: Path
) -> None:
    overtake(controller)
    (tmp_path / "lease" / "lease").unlink()
    controller.step()
    assert (controller.state.role, controller.state.problem) == (Role.STANDBY, "the lease was lost")


def test_a_directory_for_run_files_is_not_changed_while_it_runs(
    controller: Controller, tmp_path: Path
) -> None:
    eventually(lambda: leads(controller))
    before = controller.config
    (tmp_path / "xco.toml").write_text(settings_text(tmp_path / "other", tmp_path))
    controller.reload()
    assert "controller.run_dir" in controller.state.problem
    (tmp_path / "xco.toml").write_text(settings_text(tmp_path, tmp_path) + 'slice = "4ms"\n')
    controller.reload()
    assert controller.state.problem == ""
    assert controller.config.durations_ns["slice"] == 4_000_000
    command(before.command_socket, "ping")
    assert load_controller_config(tmp_path / "xco.toml").run_dir == before.run_dir


def test_what_waits_for_a_restart_is_said(
    controller: Controller, tmp_path: Path, clock: Clock
) -> None:
    eventually(lambda: leads(controller))
    settings = settings_text(tmp_path, tmp_path)
    changed = settings.replace("realtime = 0", 'slice = "4ms"')
    (tmp_path / "xco.toml").write_text(changed)
    controller.reload()
    assert controller.state.problem == "realtime: restart the controller to change it"
    assert controller.config.durations_ns["slice"] == 4_000_000
    (tmp_path / "xco.toml").write_text(settings)
    controller.reload()
    assert controller.state.problem == "", "it is as it was"
    (tmp_path / "xco.toml").write_text(changed)
    controller.reload()
    os.kill(controller.state.loop_pid, signal.SIGKILL)
    clock.now_s += 10
    eventually(lambda: leads(controller) and controller.state.starts == 2)
    assert controller.state.problem == "", "the loop that runs has it"


def test_what_was_refused_is_said_as_long_as_it_holds(
    controller: Controller, tmp_path: Path, clock: Clock
) -> None:
    holder = FileLease(tmp_path / "lease")
    assert holder.acquire() is not None
    settings = tmp_path / "xco.toml"
    settings.write_text(settings_text(tmp_path, tmp_path) + 'slice = "none"\n')
    controller.reload()
    for _ in range(2):
        controller.step()
        assert controller.state.role is Role.STANDBY
        assert "controller.slice" in controller.state.problem
    holder.release()
    eventually(lambda: leads(controller))
    assert "controller.slice" in controller.state.problem, "it has taken over"
    os.kill(controller.state.loop_pid, signal.SIGKILL)
    clock.now_s += 10
    eventually(lambda: leads(controller) and controller.state.starts == 2)
    assert "controller.slice" in controller.state.problem, "its loop has started again"
    settings.write_text(settings_text(tmp_path, tmp_path))
    controller.reload()
    assert controller.state.problem == ""


def test_it_logs_once_that_it_stands_by(controller: Controller, tmp_path: Path) -> None:
    holder = FileLease(tmp_path / "lease")
    assert holder.acquire() is not None
    with capture_logs() as logs:
        controller.step()
        controller.step()
    assert [entry["event"] for entry in logs] == ["stands_by"]
    holder.release()


def test_it_logs_once_that_the_lease_cannot_be_asked(
    controller: Controller, tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "lease").write_text("no directory")
    with capture_logs() as logs:
        for _ in range(3):
            controller.step()
            clock.now_s += 2 * RETRY_S
    assert [entry["event"] for entry in logs] == ["lease_not_asked"]
    assert str(tmp_path / "lease") in logs[0]["problem"]


def test_who_leads_says_the_hosts_names(controller: Controller, tmp_path: Path) -> None:
    eventually(lambda: leads(controller))
    assert json.loads((tmp_path / "controller.hosts").read_text()) == ["h1", "h2"]


def test_a_state_that_cannot_be_written_ends_no_leader(controller: Controller) -> None:
    controller.config.state_file.mkdir()
    eventually(lambda: leads(controller))
    controller.config.state_file.rmdir()
    controller.step()
    controller._say()
    state = json.loads(controller.config.state_file.read_text())
    assert state["role"] == "leader"
    assert not list(controller.config.run_dir.glob("controller.json.*"))


def test_who_cannot_write_the_loop_file_stands_by_and_lets_others_lead(
    controller: Controller, clock: Clock
) -> None:
    controller.config.loop_file.mkdir()
    controller.step()
    assert controller.state.role is Role.STANDBY
    assert str(controller.config.loop_file) in controller.state.problem
    other = FileLease(controller.config.run_dir / "lease")
    assert other.acquire() is not None
    other.release()
    controller.config.loop_file.rmdir()
    clock.now_s += 2 * RETRY_S
    eventually(lambda: leads(controller))


def test_a_leader_whose_loop_stands_still_does_not_run(controller: Controller) -> None:
    names = ("h1", "h2")
    eventually(lambda: leads(controller))
    eventually(lambda: bool(controller_status(controller.config, names)["running"]))
    os.kill(controller.state.loop_pid, signal.SIGSTOP)
    try:
        eventually(lambda: not controller_status(controller.config, names)["running"])
    finally:
        os.kill(controller.state.loop_pid, signal.SIGCONT)


def test_another_process_of_the_same_number_is_no_controller(controller: Controller) -> None:
    controller.step()
    controller.close()
    status = controller_status(controller.config, ())
    assert (status["controller"]["role"], status["running"]) == ("standby", True)
    state = json.loads(controller.config.state_file.read_text())
    controller.config.state_file.write_text(json.dumps(state | {"born": state["born"] + 1}))
    assert not controller_status(controller.config, ())["running"]


def test_a_database_that_falls_silent_is_a_lost_lease(
    postgres: "PostgresServer", stalls: Stalls
) -> None:
    with postgres.database() as url:
        holder, other = (PostgresLease(url, name) for name in ("a", "b"))
        assert holder.acquire() is not None
        server = server_of_lock(postgres.connect(url))
        os.kill(server, signal.SIGSTOP)
        try:
            began = time.monotonic()
            assert not holder.still()
            holder.release()
            ended = time.monotonic()
        finally:
            os.kill(server, signal.SIGCONT)
        eventually(lambda: other.acquire() is not None)
        other.release()
    stalls.check_within(began, ended, 4.0)  # it does not wait for an answer


def server_of_lock(connection: "psycopg.Connection[tuple[object, ...]]") -> int:
    """Return the server's process that holds the lock."""
    with connection:
        found = connection.execute("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")
        row = found.fetchone()
    assert row is not None
    return int(str(row[0]))
