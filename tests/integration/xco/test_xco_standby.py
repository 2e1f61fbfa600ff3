"""Two controllers: one leads, the other takes over in a higher epoch, whatever ends the first."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from support.stalls import Stalls
from support.waiting import PATIENCE_S, eventually
from xco_controller_scenes import controller_config, settings_text, star
from xco_loop_hosts import PATIENT, UdpHost, now_ns

from xco.controller.config import ControllerConfig
from xco.controller.metrics import ControllerCollector, controller_status
from xco.controller.shell import Controller, run_controller
from xco.controller.state import Role
from xco.errors import ControllerError, Stale
from xco.leader.lease import FileLease
from xco.leader.postgres import PostgresLease
from xco.protocol.messages import Mode, Status
from xco.protocol.stats import read_statistics
from xco.protocol.wire import Origin
from xco.topology.file import load_topology

if TYPE_CHECKING:
    from benchmarks.policer.postgres import PostgresServer

pytest_plugins = ["xco_loop_rig", "postgres_rig"]
pytestmark = pytest.mark.timeout(180)

TOPOLOGY = star(3)


def prepared(folder: Path) -> ControllerConfig:
    folder.mkdir()
    (folder / "topology.toml").write_text(TOPOLOGY)
    return controller_config(folder, **PATIENT)


@pytest.fixture
def pair(controller_program: Path, tmp_path: Path) -> Iterator[list[Controller]]:
    """Two controllers, each with files of its own, and one lease."""
    assert controller_program.exists()
    lease = tmp_path / "shared"
    made = [Controller(prepared(tmp_path / name), FileLease(lease)) for name in ("first", "second")]
    yield made
    for controller in made:
        controller.close()


def leads(controller: Controller) -> bool:
    controller.step()
    return controller.state.role is Role.LEADER and published(controller)


def published(controller: Controller) -> bool:
    """Whether the loop of this very epoch is up."""
    with suppress(ControllerError):
        values = read_statistics(controller.config.stats_file).values
        return values["epoch"] == controller.state.epoch and values["port"] > 0
    return False


def host_of(controller: Controller, index: int = 0) -> UdpHost:
    port = read_statistics(controller.config.stats_file).values["port"]
    digest = load_topology(controller.config.topology).hosts_digest()
    return UdpHost(index, digest, port)


def test_only_one_of_two_leads(pair: list[Controller]) -> None:
    first, second = pair
    eventually(lambda: leads(first))
    for _ in range(5):
        second.step()
    assert second.state.role is Role.STANDBY
    assert not second.config.stats_file.exists(), "a standby's loop does not run"


def test_a_loop_that_is_killed_starts_again_in_a_higher_epoch(pair: list[Controller]) -> None:
    first, second = pair
    eventually(lambda: leads(first))
    before = first.state
    os.kill(before.loop_pid, signal.SIGKILL)
    eventually(lambda: leads(first) and first.state.epoch > before.epoch)
    second.step()
    assert (first.state.starts, second.state.role) == (2, Role.STANDBY)


def test_the_standby_takes_over_in_a_higher_epoch_and_hosts_follow(
    pair: list[Controller],
) -> None:
    first, second = pair
    eventually(lambda: leads(first))
    host = host_of(first)
    host.join()
    old = host.next_directive()
    first.close()
    eventually(lambda: leads(second))
    assert second.state.epoch > old.header.epoch
    host.port = read_statistics(second.config.stats_file).values["port"]
    host.send(host.report(now_ns(), 2))
    while not (host.welcomes and host.welcomes[-1].status is Status.HELLO_FIRST):
        host.receive()
    assert host.join().status is Status.JOINED
    host.send(host.report(now_ns(), 2))
    new = host.next_directive(lambda directive: directive.mode is Mode.SLICE)
    origin = Origin()
    origin.accept(new.header)
    with pytest.raises(Stale, match="epoch"):
        origin.accept(old.header)
    host.close()


def test_a_leader_with_its_lease_goes_on_above_what_hosts_have_heard(
    pair: list[Controller],
) -> None:
    first, _ = pair
    eventually(lambda: leads(first))
    host = host_of(first)
    host.join()
    host.epoch = heard = first.state.epoch + 10**9

    def raised() -> bool:
        host.send(host.report(now_ns(), 2))
        first.step()
        return first.state.epoch > heard

    eventually(raised)
    assert first.state.role is Role.LEADER
    eventually(lambda: leads(first))
    assert host.join().status is Status.JOINED
    host.close()


def test_a_lost_lease_stops_the_loop_at_once(pair: list[Controller]) -> None:
    first, second = pair
    eventually(lambda: leads(first))
    loop = first.state.loop_pid
    (first.config.run_dir.parent / "shared" / "lease").unlink()
    first.step()
    assert (first.state.role, first.state.problem) == (Role.STANDBY, "the lease was lost")
    assert not Path(f"/proc/{loop}").exists()
    eventually(lambda: leads(second))


@pytest.fixture
def process(
    controller_program: Path, tmp_path: Path
) -> Iterator[Callable[[str], multiprocessing.Process]]:
    """Start controllers as processes of their own."""
    assert controller_program.exists()
    started: list[multiprocessing.Process] = []

    def start(name: str) -> multiprocessing.Process:
        prepared(tmp_path / name)
        path = tmp_path / name / "xco.toml"
        path.write_text(settings_text(tmp_path / name, tmp_path / "shared"))
        context = multiprocessing.get_context("spawn")
        started.append(context.Process(target=run_controller, args=(path,)))
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.join()


def test_a_controller_that_is_killed_leaves_no_loop_and_the_standby_leads(
    process: Callable[[str], multiprocessing.Process],
    tmp_path: Path,
    pair: list[Controller],
    stalls: Stalls,
) -> None:
    leader = process("alone")
    config = controller_config(tmp_path / "alone")
    eventually(lambda: is_up(config))
    status = controller_status(config, ("h1", "h2", "h3"))
    loop, epoch = status["controller"]["loop_pid"], status["loop"]["epoch"]
    standby = pair[1]
    standby.step()
    assert standby.state.role is Role.STANDBY
    assert leader.pid is not None
    began = time.monotonic()
    os.kill(leader.pid, signal.SIGKILL)
    eventually(lambda: leads(standby))
    ended = time.monotonic()
    assert standby.state.epoch > epoch
    eventually(lambda: not Path(f"/proc/{loop}").exists())
    stalls.check_within(began, ended, 2.0)


def is_up(config: ControllerConfig) -> bool:
    try:
        return bool(controller_status(config, ())["loop"]["alive"])
    except (ControllerError, TypeError):
        return False


def test_signals_reload_and_stop(
    process: Callable[[str], multiprocessing.Process], tmp_path: Path
) -> None:
    running = process("alone")
    config = controller_config(tmp_path / "alone")
    eventually(lambda: is_up(config))
    assert running.pid is not None
    config.topology.write_text(TOPOLOGY.replace('"h3", "middle"', '"h3", "nowhere"'))
    os.kill(running.pid, signal.SIGHUP)
    eventually(lambda: "reload was refused" in problem_of(config))
    assert is_up(config), "it goes on with the topology that it had"
    config.topology.write_text(TOPOLOGY + "\n[host.h4]\n[[link]]\n" + H4)
    os.kill(running.pid, signal.SIGHUP)
    eventually(lambda: len(read_statistics(config.stats_file).rows) == 4)
    eventually(lambda: problem_of(config) == "")
    os.kill(running.pid, signal.SIGTERM)
    running.join(PATIENCE_S)
    assert running.exitcode == 0
    assert not Path(f"/proc/{read_statistics(config.stats_file).pid}").exists()


H4 = 'between = ["h4", "middle"]\ncapacity = "1Gbps"\n'


def problem_of(config: ControllerConfig) -> str:
    state = msgspec.json.decode(config.state_file.read_bytes())
    return str(state["problem"])


def test_a_loop_that_refuses_its_settings_is_an_error_not_a_circle(
    pair: list[Controller], tmp_path: Path
) -> None:
    first, second = pair
    (tmp_path / "first" / "key").write_bytes(b"short")
    first.step()
    with pytest.raises(ControllerError, match="a master key has exactly 32 bytes"):
        eventually(lambda: first.step() is not None)
    eventually(lambda: leads(second))


def test_metrics_say_what_the_loop_published(pair: list[Controller]) -> None:
    first, second = pair
    names = ("h1", "h2", "h3")
    assert sample(second, names, "xco_up") == 0.0
    eventually(lambda: leads(first))
    host = host_of(first)
    host.join()
    host.send(host.report(now_ns(), 2))
    host.next_directive(lambda directive: directive.mode is Mode.SLICE)
    eventually(lambda: sample(first, names, "xco_slices_started_total") >= 1.0)
    assert sample(first, names, "xco_up") == 1.0
    assert sample(first, names, "xco_host_joined") == 1.0
    assert sample(first, names, "xco_epoch") == first.state.epoch
    host.close()


def sample(controller: Controller, names: tuple[str, ...], name: str) -> float:
    """Return the first sample of a name; 0 where there is none."""
    for family in ControllerCollector(controller.config.stats_file, names).collect():
        for one in family.samples:
            if one.name == name:
                return one.value
    return 0.0


def test_postgresql_gives_the_lease_to_one_and_epochs_that_rise(postgres: "PostgresServer") -> None:
    with postgres.database() as url:
        first, second = (PostgresLease(url, name, clock=lambda: 1000) for name in ("a", "b"))
        assert first.acquire() == 1000
        assert second.acquire() is None
        assert first.still()
        assert first.acquire() == 1001
        first.release()
        assert eventually(second.acquire) == 1002  # the server ends the session a little later
        second.release()


def test_a_session_that_ended_holds_the_lease_no_more(postgres: "PostgresServer") -> None:
    with postgres.database() as url:
        holder, other = (PostgresLease(url, name, clock=lambda: 1000) for name in ("a", "b"))
        assert holder.acquire() == 1000
        with postgres.connect(url) as connection:
            connection.autocommit = True
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
            )
        assert not holder.still()
        assert eventually(other.acquire) == 1001
        holder.release()
        other.release()
