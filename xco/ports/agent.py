"""What the port agent knows and says: readings and answers in, messages out. No I/O.

Instants are the agent's monotonic clock, in nanoseconds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from xco.errors import PortError, Stale
from xco.ports.config import AgentConfig
from xco.ports.reader import Counters, Reading
from xco.protocol.checks import AGENT, PORTS_MAX
from xco.protocol.messages import Header, Port, PortCounts, Status, Welcome
from xco.protocol.wire import Origin

HEARD_FOR_NS: Final = 1_000_000_000
"""Without an answer for this long, and three intervals, no controller hears the agent."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at ports that are read together: what is new of each, and when it was read."""

    read_ns: int
    readings: Mapping[int, Reading]
    """By the port's place in the configuration."""


@dataclass(frozen=True, slots=True)
class PortState:
    """What is known of a port; `problem` and its `kind` say why it cannot be read now, if so."""

    counters: Counters | None = None
    read_ns: int = 0
    problem: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A port that can no longer be read, or can be again (`problem` is "")."""

    port: int
    problem: str


class Agent:
    """Keeps the latest counters of each port, and whether a controller hears them."""

    def __init__(self, config: AgentConfig, sequence: int) -> None:
        """Take the settings, and what is above all sequences that were sent before."""
        self._ports, self._digest, self._sequence = config.ports, config.digest, sequence
        self._heard_for_ns = max(HEARD_FOR_NS, 3 * config.interval_ns)
        self.states = [PortState() for _ in config.ports]
        self._fresh: set[int] = set()
        self._origin = Origin()
        self._answer: Status | None = None
        self._answered_ns = 0

    @property
    def epoch(self) -> int:
        """The highest epoch that a controller named; 0: none yet."""
        return self._origin.epoch

    def seen(self, look: Look) -> Iterator[Change]:
        """Take a look; yield the ports whose state it changes."""
        for index, reading in look.readings.items():
            before = self.states[index]
            if isinstance(reading, PortError):
                self.states[index] = replace(before, problem=str(reading), kind=_kind(reading))
            else:
                self.states[index] = PortState(reading, reading.read_ns or look.read_ns)
                self._fresh.add(index)
            if bool(before.problem) != bool(self.states[index].problem):
                yield Change(index, self.states[index].problem)

    def messages(self, now_ns: int) -> list[Port]:
        """Return the messages with all ports that were read since the last call."""
        fresh = [self._counts(index) for index in sorted(self._fresh)]
        self._fresh.clear()
        return [
            Port(self._header(now_ns), self._digest, tuple(fresh[at : at + PORTS_MAX]))
            for at in range(0, len(fresh), PORTS_MAX)
        ]

    def _header(self, now_ns: int) -> Header:
        self._sequence += 1
        return Header(AGENT, self.epoch, self._sequence, now_ns)

    def _counts(self, index: int) -> PortCounts:
        port, state = self._ports[index], self.states[index]
        assert state.counters is not None
        return PortCounts(
            source=port.source,
            target=port.target,
            read_ns=state.read_ns,
            packets=state.counters.packets,
            bytes=state.counters.bytes,
            marks=state.counters.marks,
            drops=state.counters.drops,
            backlog_bytes=state.counters.backlog_bytes,
        )

    def answered(self, welcome: Welcome, now_ns: int) -> None:
        """Take a controller's answer, unless it is for a host, or of an overtaken controller."""
        if welcome.to != AGENT:
            return
        try:
            self._origin.accept(welcome.header)
        except Stale:
            return
        self._answer, self._answered_ns = welcome.status, now_ns

    def heard(self, now_ns: int) -> bool:
        """Whether a controller uses what the agent sends."""
        return self._answered_lately(now_ns) is Status.JOINED

    def unheard_because(self, now_ns: int) -> str:
        """Return why no controller hears the agent; "" if one does."""
        match self._answered_lately(now_ns):
            case Status.JOINED:
                return ""
            case None:
                return "no controller answers (check `controllers`, `key_file`, that one leads)"
            case Status.TOPOLOGY_DIFFERS:
                return "the controller's topology has other hosts or switches (use the same file)"
            case _:
                return "the controller begins a new epoch"

    def _answered_lately(self, now_ns: int) -> Status | None:
        recent = now_ns - self._answered_ns < self._heard_for_ns
        return self._answer if recent else None


def _kind(error: PortError) -> str:
    """Return the kind of an error as metrics name it, such as "untrusted"."""
    return type(error).__name__.removeprefix("Port").removeprefix("Switch").lower()
