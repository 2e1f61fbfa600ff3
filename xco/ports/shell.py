"""Runs the port agent: looks at the ports, sends their counters, publishes its state."""

import os
import signal
import time
from types import FrameType
from typing import Final

import structlog

from xco.errors import ConfigError
from xco.ports.agent import Agent, Change
from xco.ports.config import AgentConfig
from xco.ports.factory import sources
from xco.ports.link import Controllers
from xco.ports.metrics import served
from xco.ports.poll import Poller
from xco.ports.status import AgentStatus, Rates, publish, status
from xco.protocol.checks import AGENT
from xco.protocol.keys import HostKeys, read_host_keys

PUBLISH_EVERY_NS: Final = 500_000_000
LOOK_EVERY_NS: Final = 200_000_000
"""How often to look whether to stop, however long the interval."""
_log = structlog.get_logger("xco.ports")


def run(config: AgentConfig) -> None:
    """Send counters until SIGTERM or SIGINT.

    Raises:
        ConfigError: there is no key, or a reader cannot be made.
        ControllerError: the address of the metrics cannot be listened on now.
    """
    keys = agent_keys(config)
    shell = Shell(config, keys)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, shell.stop)
    with served(config, shell.now):
        shell.run()


def agent_keys(config: AgentConfig) -> HostKeys:
    """Read the agent's key file.

    Raises:
        ConfigError: the file cannot be read, or belongs to a host.
    """
    try:
        return read_host_keys(config.key_file, AGENT, "the port agent")
    except ConfigError as error:
        problem = f"{error.file}: {error.problem}"
        fix = f"make it on a controller: xco key agent MASTER --out {config.key_file.name}"
        raise ConfigError(config.file, "port-agent.key_file", problem, fix) from error


class Shell:
    """The loop around the agent."""

    def __init__(self, config: AgentConfig, keys: HostKeys) -> None:
        """Make readers and sockets.

        Raises:
            ConfigError: a reader cannot be made, or the runtime directory.
        """
        self._config = config
        self._agent = Agent(config, time.time_ns())
        interval_s = config.interval_ns / 1e9
        self._pollers = [Poller(source, interval_s) for source in sources(config.ports)]
        self._controllers = Controllers(config.controllers, keys)
        self._round_ns = min(config.interval_ns, LOOK_EVERY_NS)
        self._stopping = False
        self._rates = Rates(self._agent.states)
        self._published_ns = time.monotonic_ns()
        self._unheard = self._unpublished = ""
        self._status = self._now_status()
        _make(config)

    def stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """End the loop after its present round."""
        self._stopping = True

    def now(self) -> AgentStatus:
        """Return the state as published last."""
        return self._status

    def run(self) -> None:
        """Run until `stop`."""
        for poller in self._pollers:
            poller.start()
        try:
            due_ns = time.monotonic_ns()
            while not self._stopping:
                self._step(due_ns)
                due_ns = max(due_ns + self._round_ns, time.monotonic_ns())
        finally:
            for poller in self._pollers:
                poller.stop()
            self._controllers.close()
            self._config.state_file.unlink(missing_ok=True)

    def _step(self, until_ns: int) -> None:
        """Read answers until an instant, then send what was read meanwhile."""
        for welcome in self._controllers.answers(until_ns):
            self._agent.answered(welcome, time.monotonic_ns())
        for look in filter(None, (poller.latest() for poller in self._pollers)):
            for change in self._agent.seen(look):
                self._log_change(change)
        for message in self._agent.messages(time.monotonic_ns()):
            self._controllers.send(message)
        if time.monotonic_ns() - self._published_ns >= PUBLISH_EVERY_NS:
            self._publish()

    def _log_change(self, change: Change) -> None:
        port = str(self._config.ports[change.port])
        if change.problem:
            _log.warning("port_unreadable", port=port, problem=change.problem)
        else:
            _log.info("port_readable", port=port)

    def _publish(self) -> None:
        self._published_ns = time.monotonic_ns()
        self._rates.published(self._agent.states)
        self._status = self._now_status()
        if self._status.problem != self._unheard:
            _log.warning("heard" if self._status.heard else "unheard", problem=self._status.problem)
        self._unheard = self._status.problem
        try:
            publish(self._config, self._status)
            self._unpublished = ""
        except OSError as error:  # a full disk must not end the messages
            if str(error) != self._unpublished:
                _log.warning("state_not_written", problem=str(error))
            self._unpublished = str(error)

    def _now_status(self) -> AgentStatus:
        now_ns = time.monotonic_ns()
        return status(self._agent, self._config.ports, self._rates.before, os.getpid(), now_ns)


def _make(config: AgentConfig) -> None:
    try:
        config.runtime_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"{error.filename}: {error.strerror or 'cannot be made'}"
        fix = "name a directory that this program may write"
        raise ConfigError(config.file, "port-agent.runtime_dir", problem, fix) from error
