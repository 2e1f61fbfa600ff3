"""The controller's shell: holds the lease, runs the loop in a new epoch, supervises both.

The loop decides and never runs Python. The shell sets it up, restarts it when it fails, and stops
it when the lease is lost. Without the lease the shell is the standby: it waits, then takes over.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

import msgspec
import structlog

from xco.controller.config import ControllerConfig, load_controller_config
from xco.controller.loopfile import replace_file, write_loop_file
from xco.controller.preflight import check_key, check_listen
from xco.controller.state import Role, State, born_at, is_of_another, publish_names
from xco.controller.supervise import Exit, Loop, command
from xco.core_files import program
from xco.errors import ConfigError, ControllerError, TopologyError, XcoError
from xco.leader.base import Lease
from xco.leader.lease import make_lease
from xco.protocol.stats import read_statistics
from xco.topology.file import load_file
from xco.topology.follower import Follower
from xco.topology.graph import Topology

LOOK_EVERY_S = 0.05
"""How often to try or check the lease, and to check the loop."""
RETRY_S = 0.5
"""Backoff before restarting a loop that exits right after its start."""
LONGEST_PAUSE_S = 60.0
"""Longest backoff after hearing of a higher epoch; the backoff doubles each time."""
HEALTHY_S = 5.0
"""A loop that ran this long is restarted without a backoff."""
SHELL_KEEPS = ("lease", "metrics")
LOOP_KEEPS = ("listen", "realtime")
"""Settings that a reload cannot change while shell and loop run."""

log = structlog.get_logger("xco.controller")


class Controller:
    """One controller, leader or standby. Call `step` often; it starts no thread."""

    def __init__(
        self,
        config: ControllerConfig,
        lease: Lease,
        *,
        path: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take settings and a lease; `path` is the file that a reload reads again.

        Raises:
            ConfigError: the topology cannot be coordinated, or a weight names none of its hosts.
            CoreError: the loop's program is not built.
        """
        self.config = config
        self._lease, self._path, self._clock = lease, path, clock
        self._follower = Follower(config.topology)
        self._topology: Topology = self._follower.topology
        self._follower.start()
        self._program = program("xco-controller")
        self._loop: Loop | None = None
        self._started = self._not_before = 0.0
        self._raise_after, self._pause_s = 0.0, RETRY_S
        self._unsaid = False
        self._told = ""
        self._problems: dict[str, str] = {}
        """Current problems: of the lead, of the settings, of the topology."""
        self._in_force = _settings(config, SHELL_KEEPS)
        self.state = State(Role.STANDBY, os.getpid(), born=born_at(os.getpid()))

    def step(self) -> None:
        """Check the topology, the lease and the loop once.

        Raises:
            ControllerError: the loop rejects its settings; a restart would not help.
            ConfigError: as on construction.
        """
        self._follow()
        if self._loop is None:
            if self._clock() >= self._not_before:
                self._try_to_lead()
            return
        ended = self._loop.ended()
        if ended is not None:
            self._on_exit(ended)
        elif not self._lease.still():
            self._stand_by("the lease was lost")
        else:
            self._raise_epoch()

    def reload(self) -> None:
        """Read settings and topology again and apply them, or keep those in force.

        Changes of addresses, lease and priority wait for a restart, as the state then says. A
        changed run_dir is refused. The state says why a reload was refused. The reload waits for
        the switches, some seconds at most, while the loop continues.
        """
        try:
            config = load_controller_config(self._path) if self._path else self.config
            _check_reload(self.config, config, self._path)
            follower = Follower(config.topology)
            self._go_over_to(config, follower.topology)
        except XcoError as error:
            self._refuse("topology" if isinstance(error, TopologyError) else "settings", error)
            return
        self._follower.stop()
        self._follower = follower
        follower.start()
        log.info("reloaded", hosts=len(self._topology.hosts), waiting=self._waiting())
        self._problems.clear()
        self._say()

    def close(self) -> None:
        """Stop the loop and release the lease."""
        self._follower.stop()
        self._stand_by("")

    def _follow(self) -> None:
        """Apply a new topology if there is one: a changed file, or a changed tree."""
        match self._follower.news():
            case TopologyError() as error:
                self._refuse("topology", error)
            case Topology() as found:
                try:
                    if found != self._topology:
                        self._go_over_to(self.config, found)
                        log.warning("topology_changed", links=len(found.active_links))
                    self._problems.pop("topology", None)
                    self._say()
                except XcoError as error:
                    self._refuse("topology", error)

    def _refuse(self, what: str, error: XcoError) -> None:
        log.warning("reload_refused", problem=str(error))
        self._problems[what] = f"the last reload was refused: {error}"
        self._say()

    def _go_over_to(self, config: ControllerConfig, topology: Topology) -> None:
        before = self.config, self._topology
        if self._loop is not None:
            write_loop_file(config, topology, self.state.epoch)
            try:
                command(self.config.command_socket, "reload")
            except ControllerError:
                write_loop_file(*before, self.state.epoch)
                raise
            publish_names(config, topology)
        self.config, self._topology = config, topology

    def _try_to_lead(self) -> None:
        try:
            epoch = self._lease.acquire()
        except ControllerError as error:
            self._not_before = self._clock() + RETRY_S
            self._tell("lease_not_asked", str(error))
            self._say(problem=str(error))
            return
        if epoch is None:
            self._tell("stands_by", "another controller leads")
            self._say(problem="")
            return
        if not self._prepare(epoch):
            return
        try:
            self._loop = Loop(self._program, self.config.loop_file)
        except XcoError:
            self._lease.release()
            raise
        self._started = self._clock()
        self._in_force |= _settings(self.config, LOOP_KEEPS)
        self._told = "leads"
        log.warning("leads", epoch=epoch, loop=self._loop.pid)
        starts = self.state.starts + 1
        self._say(Role.LEADER, epoch=epoch, loop_pid=self._loop.pid, starts=starts, problem="")

    def _tell(self, event: str, problem: str) -> None:
        """Log why this controller does not lead, once per reason."""
        if event != self._told:
            log.warning(event, problem=problem)
        self._told = event

    def _prepare(self, epoch: int) -> bool:
        """Write the loop file; if that fails, stand by and let another controller lead.

        Raises:
            ConfigError: settings and topology do not fit.
        """
        try:
            write_loop_file(self.config, self._topology, epoch)
            publish_names(self.config, self._topology)
        except ControllerError as error:
            self._not_before = self._clock() + RETRY_S
            self._stand_by(str(error))
            return False
        except XcoError:
            self._lease.release()
            raise
        return True

    def _on_exit(self, ended: Exit) -> None:
        """Restart the loop in a new epoch."""
        assert self._loop is not None
        said = self._loop.said()
        lived_s = self._clock() - self._started
        self._end_loop()
        if ended is Exit.CONFIG:
            self._lease.release()
            check_listen(self.config, self._path)
            raise ControllerError(str(self.config.loop_file), said, "correct the settings")
        log.error("loop_ended", how=ended.name.lower(), said=said)
        if lived_s < HEALTHY_S and self.state.starts > 1:
            self._not_before = self._clock() + RETRY_S
        else:
            self._try_to_lead()

    def _raise_epoch(self) -> None:
        """Continue above an epoch that hosts have heard of, as long as the lease is certain.

        The backoff between two of these doubles. Otherwise two controllers with a lease each, or a
        host that invents epochs, would restart all hosts repeatedly.
        """
        now_s = self._clock()
        if now_s < self._raise_after:
            return
        heard = _epoch_heard(self.config)
        if heard < self.state.epoch:
            return
        if now_s > self._raise_after + 2 * LONGEST_PAUSE_S:
            self._pause_s = RETRY_S
        self._raise_after = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        try:
            self._go_on_above(heard)
        except ControllerError as error:
            self._say(problem=str(error))

    def _go_on_above(self, heard: int) -> None:
        epoch = self._lease.acquire(above=heard)
        if epoch is None or epoch <= heard:
            return
        write_loop_file(self.config, self._topology, epoch)
        command(self.config.command_socket, f"epoch {epoch}")
        log.warning("epoch_raised", heard=heard, epoch=epoch)
        problem = "hosts know a higher epoch: does another controller use another lease?"
        self._say(epoch=epoch, problem=problem)

    def _stand_by(self, problem: str) -> None:
        if problem and problem != self._problems.get("lead"):
            log.warning("stands_by", problem=problem)
        self._end_loop()
        self._lease.release()
        self._say(Role.STANDBY, epoch=0, problem=problem)

    def _end_loop(self) -> None:
        if self._loop is not None:
            self._loop.stop()
        self._loop = None
        self._in_force = {key: self._in_force[key] for key in SHELL_KEEPS}

    def _waiting(self) -> list[str]:
        """Return the settings that only a restart would apply."""
        return [key for key, value in self._in_force.items() if getattr(self.config, key) != value]

    def _say(self, role: Role | None = None, *, problem: str | None = None, **changes: int) -> None:
        """Update the state and its file; if the file cannot be written, try again later.

        `problem` is that of the lead; a refused change stays in the state until it is corrected.
        """
        if problem is not None:
            self._problems["lead"] = problem
        problems = list(dict.fromkeys(filter(None, self._problems.values())))
        if waiting := self._waiting():
            problems.append(f"{', '.join(waiting)}: restart the controller to change it")
        said = "; ".join(problems)
        now = msgspec.structs.replace(
            self.state, role=role or self.state.role, problem=said, **changes
        )
        if self._loop is None:
            now = msgspec.structs.replace(now, loop_pid=0)
        if now == self.state and not self._unsaid and self.config.state_file.exists():
            return
        self.state = now
        if now.role is not Role.LEADER and is_of_another(self.config.state_file):
            return
        try:
            replace_file(self.config.state_file, msgspec.json.encode(now).decode() + "\n")
        except ControllerError as error:
            if not self._unsaid:
                log.warning("state_not_written", problem=str(error))
            self._unsaid = True
        else:
            self._unsaid = False


def _epoch_heard(config: ControllerConfig) -> int:
    """Return the highest epoch above its own that the loop has heard of; 0: none."""
    try:
        return read_statistics(config.stats_file).values["epoch_heard"]
    except ControllerError:
        return 0


def _settings(config: ControllerConfig, keys: Iterable[str]) -> dict[str, object]:
    return {key: getattr(config, key) for key in keys}


def _check_reload(before: ControllerConfig, after: ControllerConfig, path: Path | None) -> None:
    """Check that a running controller can apply other settings.

    Raises:
        ConfigError: it cannot: other programs would look elsewhere for commands, statistics and
            state.
    """
    if after.run_dir != before.run_dir:
        problem = f"is {before.run_dir} as long as this controller runs"
        raise ConfigError(str(path), "controller.run_dir", problem, "restart the controller")


class _Signals:
    """Requests by signals."""

    def __init__(self) -> None:
        self.stop = self.reload = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)
        signal.signal(signal.SIGHUP, self._ask_to_reload)

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop = True

    def _ask_to_reload(self, _number: int, _frame: FrameType | None) -> None:
        self.reload = True


def run_controller(path: Path, beat: Callable[[Controller], None] = lambda _: None) -> None:
    """Run a controller until a signal stops it; call `beat` at every step.

    Raises:
        ConfigError: the settings or the topology cannot be used.
        ControllerError: the loop cannot continue, or the lease cannot be used at all.
        CoreError: the loop's program is not built.
    """
    config = load_controller_config(path)
    check_key(config, path)
    check_listen(config, path)
    signals = _Signals()
    lease = make_lease(config.lease, socket.gethostname())
    controller = Controller(config, lease, path=path)
    try:
        while not signals.stop:
            if signals.reload:
                signals.reload = False
                controller.reload()
            controller.step()
            beat(controller)
            time.sleep(LOOK_EVERY_S)
    finally:
        controller.close()


def check_files(path: Path) -> None:
    """Check that settings, key and topology can be used; start nothing, and ask no switch.

    Raises:
        ConfigError: names the file, the key, what is wrong and how to fix it.
    """
    config = load_controller_config(path)
    check_key(config, path)
    topology = load_file(config.topology).topology
    unknown = [name for name in config.weights if topology.host_index(name) is None]
    if unknown:
        fix = f"name a host of {config.topology}"
        raise ConfigError(str(path), f"weight.{unknown[0]}", "no such host", fix)
