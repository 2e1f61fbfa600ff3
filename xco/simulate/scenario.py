"""Input of a simulated run."""

from dataclasses import dataclass
from typing import Literal

from xco.errors import ConfigError
from xco.simulate.traffic import Traffic
from xco.topology.graph import Topology

Strategy = Literal["uncoordinated", "rate", "timeslice", "hybrid"]
Policy = Literal["published", "fair"]
Engine = Literal["native", "python"]

MAX_SLOTS = 10_000_000
MAX_SLOT_NS = 10_000_000
"""A longer slot would hide the effect of buffers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A topology, its traffic, and its coordination; times in ns, sizes in bytes."""

    topology: Topology
    traffic: Traffic
    strategy: Strategy = "timeslice"
    policy: Policy = "fair"
    """The scheduler's policy: Algorithm 1 as published, or weighted max-min."""
    engine: Engine = "native"
    """The compiled scheduler, or Algorithm 1 in Python (with policy `published` only)."""
    duration_ns: int = 1_000_000_000
    slot_ns: int = 200_000
    slice_ns: int = 2_000_000
    threshold_ns: int = 1_000_000
    """A slice younger than this is not preempted."""
    hysteresis_ns: int = 50_000
    """How long a host waits before it returns an unused slice; at least one slot."""
    buffer_bytes: int = 128_000
    """Buffer of each port without one in its link."""
    frame_bytes: int = 1_500
    message_bytes: int = 65_536
    burst: float = 1.0
    """Factor by which runs of lost frames are longer than with independent losses."""
    timeout_ns: int = 200_000_000
    """TCP's least retransmission timeout."""
    window_bytes: int = 1_000_000
    """TCP's largest window."""
    seed: int = 0

    @property
    def slots(self) -> int:
        """The number of slots."""
        return -(-self.duration_ns // self.slot_ns)

    @property
    def idle_slots(self) -> int:
        """The slots after which an unused slice is returned."""
        return max(1, -(-self.hysteresis_ns // self.slot_ns))

    def check(self) -> None:
        """Find the first invalid value.

        Raises:
            ConfigError: names it and the fix; or the topology's or traffic's first mistake.
        """
        self.topology.check()
        self.traffic.check(len(self.topology.hosts))
        if not 0 < self.slot_ns <= MAX_SLOT_NS:
            _wrong("slot", f"{self.slot_ns} ns", "above 0 and at most 10ms")
        if self.slice_ns < self.slot_ns or self.slice_ns % self.slot_ns:
            _wrong("slice", f"{self.slice_ns} ns", f"a multiple of the slot, {self.slot_ns} ns")
        if not 0 < self.slots <= MAX_SLOTS:
            _wrong("seconds", f"{self.slots} slots", f"from 1 to {MAX_SLOTS} slots")
        if not 0 < self.frame_bytes <= self.message_bytes:
            _wrong("frame", f"{self.frame_bytes} bytes", "above 0, and at most a message")
        if not self.burst >= 1.0:
            _wrong("burst", f"{self.burst:g}", "1 for independent losses, or more")
        if self.engine != "native" and self.policy != "published":
            fix = "policy published, or engine native"
            _wrong("policy", f"{self.policy} is not there with engine {self.engine}", fix)
        for key in ("buffer_bytes", "threshold_ns", "hysteresis_ns", "timeout_ns", "seed"):
            if getattr(self, key) < 0:
                _wrong(key.partition("_")[0], str(getattr(self, key)), "0 or more")


def _wrong(key: str, problem: str, fix: str) -> None:
    raise ConfigError("", key, problem, fix)
