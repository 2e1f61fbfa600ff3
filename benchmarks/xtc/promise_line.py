"""Real packets for the promise benchmark: senders of loads, and counters of what passed.

The lab's machines are connected to Dom0, so that Dom0's `eth0` and `eth1` count the offered load
and the routers' `vif`s the throughput, in both directions. Both are read every 20 ms, and the
promise's own accounting (`xtc.control.promise`) evaluates each step.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, Self

from common.setpoint import Setpoint
from common.units import Seconds
from lab.plan import uplinks
from lab.programs.processes import Source
from lab.routers.router import Router
from xtc.control.promise import Account, judged
from xtc.measure.meter import parse
from xtc.simulation.loads import Load

PLAY_S: Final = 0.01
"""Interval at which a sender gets its rate."""
COUNT_S: Final = 0.02
"""Interval of readings of the counters."""


class Counted(NamedTuple):
    """The counters at one instant, in packets since they were made."""

    at: float
    offered: int
    """To all routers together."""
    forwarded: tuple[int, ...]
    """By each router."""


class Player:
    """A context manager that sends each router its load, from an instant on."""

    def __init__(self, loads: Sequence[tuple[Source, Load]]) -> None:
        """Take the source and the load of each router."""
        self._loads = loads
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self.began = 0.0

    def __enter__(self) -> Self:
        self.began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for source, _load in self._loads:
            source.set_rate(0.0)

    def shares(self, begin: float, end: float) -> list[float]:
        """Return each router's share of all that is sent between two instants.

        Traffic sent elsewhere (TCP) is the first router's.
        """
        spans = (max(0.0, begin - self.began), max(0.0, end - self.began))
        each = [load.sent(spans[1]) - load.sent(spans[0]) for _, load in self._loads]
        total = sum(each)
        return [one / total for one in each] if total > 0 else [1.0, *[0.0] * (len(each) - 1)]

    def _play(self) -> None:
        rates = [0.0] * len(self._loads)
        until = 0.0
        while not self._ended.wait(max(0.0, self.began + until - time.monotonic())):
            at, until = until, max(until + PLAY_S, time.monotonic() - self.began)
            for number, (source, load) in enumerate(self._loads):
                rate = max(0.0, (load.sent(until) - load.sent(at)) / (until - at))
                if abs(rate - rates[number]) > 1e-3 * load.peak:
                    source.set_rate(rate)
                    rates[number] = rate


class Counters:
    """A context manager that reads Dom0's counters every 20 ms."""

    def __init__(self, pid: int, routers: Sequence[Router]) -> None:
        """Count in the network namespace of a process."""
        self._path = Path(f"/proc/{pid}/net/dev")
        self._uplinks = [uplink.host_interface for uplink in uplinks()]
        self._vifs = [router.host_interfaces for router in routers]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)
        self.counted: list[Counted] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _count(self) -> None:
        while not self._ended.wait(COUNT_S):
            found = parse(self._path.read_bytes())
            self.counted.append(
                Counted(
                    time.monotonic(),
                    sum(found[name].rx_packets for name in self._uplinks),
                    tuple(sum(found[name].rx_packets for name in vifs) for vifs in self._vifs),
                )
            )


@dataclass
class Kept:
    """Account of one router's promise, from the counters."""

    setpoint: Setpoint
    account: Account = Account()
    wanted: float = 0.0
    delivered: float = 0.0
    longest_step_s: float = 0.0
    """The longest time between two readings: a blind spot of the account."""
    seconds: list[float] = field(default_factory=list)
    """Packets that were forwarded in each second."""

    def add(self, at: float, dt: float, offered: float, delivered: float) -> None:
        """Evaluate one step; `at` is its end, in seconds since the first."""
        self.account = judged(
            self.account, self.setpoint, Seconds(dt), delivered=delivered, offered=offered
        )
        self.wanted += min(offered, self.setpoint.rate * dt)
        self.delivered += delivered
        self.longest_step_s = max(self.longest_step_s, dt)
        self.seconds += [0.0] * (int(at) + 1 - len(self.seconds))
        self.seconds[-1] += delivered


def kept(
    counted: Sequence[Counted],
    setpoints: Sequence[Setpoint],
    shares: Callable[[float, float], Sequence[float]],
    since: float,
    until: float,
) -> list[Kept]:
    """Return the account of each router's promise from one instant to another.

    Args:
        counted: the readings.
        setpoints: of the routers, in the order of their counters.
        shares: returns each router's part of the offered packets between two instants.
        since: when the promise began.
        until: when it ended.
    """
    found = [Kept(setpoint) for setpoint in setpoints]
    for before, after in pairwise(counted):
        if before.at < since or after.at > until:
            continue
        dt, offered = after.at - before.at, after.offered - before.offered
        parts = shares(before.at, after.at)
        for number, (one, part) in enumerate(zip(found, parts, strict=True)):
            delivered = after.forwarded[number] - before.forwarded[number]
            one.add(after.at - since, dt, part * offered, delivered)
    return found
