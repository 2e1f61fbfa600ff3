"""The port agent's published state: a JSON file, replaced twice a second."""

import time
from collections.abc import Sequence
from typing import Final

import msgspec

from common.durable import replace_file
from xco.errors import ControllerError
from xco.ports.agent import Agent, PortState
from xco.ports.config import AgentConfig, AgentPort
from xco.ports.reader import Counters

STALE_NS: Final = 3_000_000_000
"""An older state belongs to an agent that no longer runs, or hangs."""


class PortStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A port; counters are cumulative, rates those of half a second or more."""

    source: str
    target: str
    reader: str
    capacity_bps: int
    problem: str
    """Why it cannot be read now; "" if it can."""
    kind: str = ""
    """Kind of the problem, such as "untrusted"."""
    read_ns: int
    """Instant of the last reading on the monotonic clock; 0: none."""
    counts_marks: bool = False
    packets: int = 0
    bytes: int = 0
    marks: int = 0
    drops: int = 0
    backlog_bytes: int = 0
    rate_bps: float = 0.0
    marks_per_s: float = 0.0
    drops_per_s: float = 0.0


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The agent."""

    pid: int
    updated_ns: int
    heard: bool
    """Whether a controller uses what the agent sends."""
    epoch: int
    problem: str
    """Why no controller hears it; "" if one does."""
    ports: tuple[PortStatus, ...]


def status(
    agent: Agent, ports: Sequence[AgentPort], before: Sequence[PortState], pid: int, now_ns: int
) -> AgentStatus:
    """Return the state to publish; rates are those since the states `before`."""
    rows = zip(ports, agent.states, before, strict=True)
    return AgentStatus(
        pid=pid,
        updated_ns=now_ns,
        heard=agent.heard(now_ns),
        epoch=agent.epoch,
        problem=agent.unheard_because(now_ns),
        ports=tuple(_port(port, now, earlier) for port, now, earlier in rows),
    )


class Rates:
    """Keeps the state of each port before its latest one: a sample may be older than a status."""

    def __init__(self, states: Sequence[PortState]) -> None:
        self.before, self._latest = list(states), list(states)

    def published(self, states: Sequence[PortState]) -> None:
        """Take the states that were published last."""
        for index, state in enumerate(states):
            if state.read_ns > self._latest[index].read_ns:
                self.before[index], self._latest[index] = self._latest[index], state


def _port(port: AgentPort, now: PortState, before: PortState) -> PortStatus:
    counted = now.counters or Counters(0, 0)
    return PortStatus(
        source=port.link[0],
        target=port.link[1],
        reader=port.table.reader,
        capacity_bps=port.capacity_bps,
        problem=now.problem,
        kind=now.kind,
        read_ns=now.read_ns,
        counts_marks=counted.counts_marks,
        packets=counted.packets,
        bytes=counted.bytes,
        marks=counted.marks,
        drops=counted.drops,
        backlog_bytes=counted.backlog_bytes,
        rate_bps=8 * _per_second("bytes", now, before),
        marks_per_s=_per_second("marks", now, before),
        drops_per_s=_per_second("drops", now, before),
    )


def _per_second(counter: str, now: PortState, before: PortState) -> float:
    """Return the rate of a counter; 0 if it was not read twice, restarted, or is lost."""
    if now.problem or now.counters is None or before.counters is None:
        return 0.0
    if now.read_ns <= before.read_ns:
        return 0.0
    more: int = getattr(now.counters, counter) - getattr(before.counters, counter)
    return max(0, more) * 1e9 / (now.read_ns - before.read_ns)


def publish(config: AgentConfig, found: AgentStatus) -> None:
    """Replace the state file. Raises OSError."""
    replace_file(config.state_file, msgspec.json.encode(found))


def read_status(config: AgentConfig) -> AgentStatus:
    """Return what a running agent has published.

    Raises:
        ControllerError: none runs.
    """
    fix = "start it: xco port-agent run"
    try:
        found = msgspec.json.decode(config.state_file.read_bytes(), type=AgentStatus)
    except (OSError, msgspec.DecodeError) as error:
        raise ControllerError(str(config.state_file), "no port agent runs here", fix) from error
    if time.monotonic_ns() - found.updated_ns > STALE_NS:
        raise ControllerError(str(config.state_file), "the port agent has ended, or hangs", fix)
    return found
