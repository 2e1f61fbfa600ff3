"""Traffic through a switch by vhost-user, from DPDK's virtio-user, and what came of it.

The generator (zovn/core/tools/generator.c) numbers all frames, so that loss, repeats and order are
proven. A process of DPDK has 32 devices: more stations are divided among several, which take turns
on one CPU by a token that they pass on.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from xco.arrays import jain
from zovn.core_files import program

DEVICES: Final = 32
"""Of a process, at most."""
RING: Final = 1024
MEGABYTES: Final = 8
"""Memory for a station: two rings of frames with room to spare."""
PATIENCE_S: Final = 60.0
WARM_S: Final = 0.2

Pair = tuple[int, int]
Turns = tuple[int, ...]
"""Files by which processes take turns: from the one before, and to the next; or none."""


@dataclass(frozen=True)
class Device:
    """A station's device, in the words of DPDK."""

    driver: str
    arguments: str


def guest(socket: str) -> Device:
    """Return a guest that connects to a port by vhost-user."""
    return Device("net_virtio_user", f"path={socket},queue_size={RING}")


@dataclass(frozen=True)
class Traffic:
    """What stations send and take; they are numbered from 0."""

    bytes: int
    sends: Mapping[int, Sequence[int]]
    """Receivers of each sender, which take turns."""
    takes: Mapping[int, float] = field(default_factory=dict)
    """Frames a second of stations that are limited."""
    seconds: float = 1.0
    window: int = 0
    """Frames of a pair under way, at most; 0: no limit."""
    fifo: bool = False
    """Whether each sender has one queue for all its receivers."""


@dataclass(frozen=True)
class Tally:
    """What a pair sent and received in all, and while it was measured."""

    sent: int
    received: int
    repeated: int
    overtaken: int
    in_time: int

    @property
    def lost(self) -> int:
        """Frames that the sender's ring took, and that never came."""
        return self.sent - (self.received - self.repeated)


@dataclass(frozen=True)
class Counted:
    """Result of one measurement."""

    seconds: float
    hz: float
    """Cycles a second of the time stamp counter."""
    pairs: Mapping[Pair, Tally]
    granted: Mapping[int, float]
    """Frames that limited stations could take while it was measured."""

    def total(self, name: str) -> int:
        """Return the sum of a count over all pairs."""
        return sum(int(getattr(pair, name)) for pair in self.pairs.values())

    def to(self, station: int) -> list[Tally]:
        """Return the pairs to a station."""
        return [tally for (_, to), tally in self.pairs.items() if to == station]

    def rate(self, station: int | None = None) -> float:
        """Return frames a second that all stations, or one, received."""
        tallies = self.pairs.values() if station is None else self.to(station)
        return sum(each.in_time for each in tallies) / self.seconds

    def lost_share(self) -> float:
        """Return the share of frames that were lost."""
        return self.total("lost") / max(1, self.total("sent"))

    def used(self, station: int) -> float:
        """Return how much of what a limited station could take it got."""
        return sum(each.in_time for each in self.to(station)) / max(1.0, self.granted[station])

    def fairness(self, station: int) -> float:
        """Return Jain's index of what senders got through to a station."""
        return jain(np.array([each.in_time for each in self.to(station)], dtype=float))


def counted(reports: Sequence[Mapping[str, Any]]) -> Counted:
    """Return what all processes of one measurement say together."""
    stations = [station for report in reports for station in report["stations"]]
    came = {
        (int(source), station["number"]): tally
        for station in stations
        for source, tally in station["received"].items()
    }
    pairs = {
        (station["number"], int(to)): _tally(sent, came.get((station["number"], int(to)), {}))
        for station in stations
        for to, sent in station["sent"].items()
    }
    granted = {station["number"]: float(station["granted"]) for station in stations}
    return Counted(reports[-1]["seconds"], float(reports[-1]["hz"]), pairs, granted)


def _tally(sent: int, came: Mapping[str, int]) -> Tally:
    repeated, overtaken = came.get("repeated", 0), came.get("overtaken", 0)
    return Tally(sent, came.get("frames", 0), repeated, overtaken, came.get("in_time", 0))


class Generators:
    """The processes of one measurement, connected; they send when told to."""

    def __init__(
        self, traffic: Traffic, devices: Sequence[Device], inside: Sequence[str] = ()
    ) -> None:
        """Prepare them; `inside` is a command that starts others where the devices are."""
        self._traffic, self._inside = traffic, inside
        self._groups = [devices[at : at + DEVICES] for at in range(0, len(devices), DEVICES)]
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for number, turns in enumerate(_turns(stack, len(self._groups))):
                self._start(number, turns)
        for process in self._processes:
            self._await_ready(process)
        return self

    def _start(self, number: int, turns: Turns) -> None:
        own = command(self._traffic, self._groups[number], number * DEVICES, turns)
        process = subprocess.Popen(
            [*self._inside, *own],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=turns,
        )
        self._processes.append(process)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    @staticmethod
    def _await_ready(process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            _, said = process.communicate(timeout=PATIENCE_S)
            raise RuntimeError(f"the generator did not start: {said.strip()[-500:]}")

    def run(self) -> Counted:
        """Send, measure and drain."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate(timeout=PATIENCE_S) for process in self._processes]
        for process, (_, errors) in zip(self._processes, said, strict=True):
            if process.returncode:
                raise RuntimeError(f"the generator failed: {errors.strip()[-500:]}")
        return counted([json.loads(output) for output, _ in said])


def _turns(stack: ExitStack, count: int) -> list[Turns]:
    """Return pipes from each process to the next, one with a token; the stack closes them."""
    if count == 1:
        return [()]
    pipes = [os.pipe() for _ in range(count)]
    for file in chain.from_iterable(pipes):
        stack.callback(os.close, file)
    os.write(pipes[0][1], b"\0")
    return [(pipes[at][0], pipes[(at + 1) % count][1]) for at in range(count)]


def command(
    traffic: Traffic, devices: Sequence[Device], first: int, turns: Turns = ()
) -> list[str]:
    """Return the command of a process whose stations are numbered from `first` on."""
    added = [
        f"--vdev={device.driver}{number},{device.arguments}"
        for number, device in enumerate(devices)
    ]
    eal = ["--no-huge", "-m", str(64 + MEGABYTES * len(devices)), "--no-pci", "--no-telemetry"]
    eal += ["--no-shconf", "-l", str(last_cpu()), "--log-level=error", *added, "--"]
    own = range(first, first + len(devices))
    words = ["-b", str(traffic.bytes), "-s", str(traffic.seconds), "-u", str(WARM_S)]
    words += ["-d", str(RING), "-n", str(first), "-w", str(traffic.window)]
    words += ["-f"] if traffic.fifo else []
    words += ["-y", "{}:{}".format(*turns)] if turns else []
    for source, targets in traffic.sends.items():
        words += ["-x", f"{source}:{','.join(map(str, targets))}"] if source in own else []
    for station, rate in traffic.takes.items():
        words += ["-r", f"{station}:{rate:g}"] if station in own else []
    return [str(program("zovn-generator")), *eal, *words]


def first_cpu() -> int:
    """Return the CPU of switches."""
    return min(os.sched_getaffinity(0))


def last_cpu() -> int:
    """Return the CPU of generators."""
    return max(os.sched_getaffinity(0))
