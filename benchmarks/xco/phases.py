"""Three phases of the paper's dumbbell in the lab: the others, all, the tagged TCP flow alone.

All send to one host through a shallow port (SDN-GCC, section VIII: 4 elephants, 3 of them others).
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

from lab.fabric.fabric import Fabric
from lab.fabric.plan import FabricHost
from lab.traffic import roles
from lab.traffic.counts import BySource, FlowsSent
from lab.traffic.program import Traffic

PHASES: Final = ("the others send", "the tagged flow joins", "the others stop")
SAMPLE_S: Final = 0.25
FULL_FRAME: Final = 1514
"""Bytes, as the port's shaper counts them."""
MOUSE_BYTES: Final = 11_500
"""A short flow of the paper's testbed."""
Others = Literal["udp", "tcp"]


@dataclass(frozen=True)
class Load:
    """What is sent; the first hosts of the fabric are the tagged one and the others."""

    senders: int
    """The tagged one and the others; more hosts of the fabric send what is below."""
    others: Others = "udp"
    congestion: str | None = None
    """Congestion control of all elephants; None is CUBIC."""
    foreign: FabricHost | None = None
    """A sender of UDP packets in the second phase."""
    foreign_bps: int = 0
    """Its rate on the wire, in bits/s."""
    mice: FabricHost | None = None
    """A sender of short flows in the second phase."""
    sequences: int = 6
    """Of short flows at one time."""


@dataclass(frozen=True)
class Sample:
    """Counts since the start."""

    at_s: float
    bytes: tuple[int, ...]
    """Received by applications from the tagged sender and each of the others."""
    wire_bytes: int
    drops: int
    marks: int


@dataclass
class Recording:
    """All samples of a run; phases begin and end at some of them."""

    samples: list[Sample] = field(default_factory=list)
    edges: list[int] = field(default_factory=list)
    """Indices of samples: the beginning, and the end of each phase."""
    mice: FlowsSent | None = None

    def spans(self) -> list[tuple[Sample, Sample]]:
        """Return the first and the last sample of each phase."""
        at = [self.samples[edge] for edge in self.edges]
        return list(pairwise(at))


class Meter:
    """Samples what arrives at the receiver."""

    def __init__(self, fabric: Fabric, senders: Sequence[FabricHost], stack: ExitStack) -> None:
        self._fabric, self._senders, self.recording = fabric, senders, Recording()
        to = fabric.place(fabric.receivers[0])
        self._sinks: tuple[Traffic[Any], ...] = (
            stack.enter_context(roles.sink_streams(to)),
            stack.enter_context(roles.sink_messages(to)),
        )

    def begin(self) -> None:
        """Take the first sample."""
        self._take()
        self.recording.edges.append(0)

    def phase(self, seconds: float) -> None:
        """Take samples for a phase, the last at its end."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(SAMPLE_S, left))
            self._take()
        self.recording.edges.append(len(self.recording.samples) - 1)

    def _take(self) -> None:
        fabric, found = self._fabric, [sink.counts() for sink in self._sinks]
        self.recording.samples.append(
            Sample(
                at_s=time.monotonic(),
                bytes=tuple(received(found, host) for host in self._senders),
                wire_bytes=fabric.wire_bytes(),
                drops=fabric.drops(),
                marks=fabric.marks(),
            )
        )


def received(reports: Sequence[BySource], host: FabricHost) -> int:
    """Return the bytes that sinks have received from a host."""
    return sum(
        source.bytes for report in reports for address, source in report.sources.items()
        if address == host.address
    )  # fmt: skip


def run(
    fabric: Fabric, load: Load, phase_s: float, note: Callable[[str], object] = lambda _words: None
) -> Recording:
    """Run the three phases; `note` gets the words of each phase as it begins.

    Raises:
        ProgramError: a traffic program ends, or does not answer.
    """
    with ExitStack() as stack:
        meter = Meter(fabric, fabric.senders[: load.senders], stack)
        joined = stack.enter_context(ExitStack())
        for host in fabric.senders[1 : load.senders]:
            joined.enter_context(_other(fabric, load, host))
        note(PHASES[0])
        meter.begin()
        meter.phase(phase_s)
        note(PHASES[1])
        stack.enter_context(_tagged(fabric, load))
        mice = _extras(fabric, load, joined)
        meter.phase(phase_s)
        meter.recording.mice = mice.finish() if mice else None
        joined.close()
        note(PHASES[2])
        meter.phase(phase_s)
    return meter.recording


def _other(fabric: Fabric, load: Load, host: FabricHost) -> Traffic[Any]:
    place, to = fabric.place(host), fabric.receivers[0].address
    if load.others == "udp":
        return roles.send_messages(place, to, size=roles.DATAGRAM_BYTES)
    return roles.send_stream(place, to, congestion=load.congestion)


def _extras(fabric: Fabric, load: Load, stack: ExitStack) -> Traffic[FlowsSent] | None:
    """Start what sends in the second phase only."""
    to, size = fabric.receivers[0].address, roles.DATAGRAM_BYTES
    if load.foreign is not None:
        rate = load.foreign_bps * size // FULL_FRAME
        place = fabric.place(load.foreign)
        stack.enter_context(roles.send_messages(place, to, size=size, rate_bps=rate))
    if load.mice is None:
        return None
    flows = roles.send_short_flows(
        fabric.place(load.mice), to, sequences=load.sequences, flow_bytes=MOUSE_BYTES
    )
    return stack.enter_context(flows)


@contextmanager
def _tagged(fabric: Fabric, load: Load) -> Iterator[None]:
    """Run the tagged flow in a thread: behind a full port, connecting may take seconds."""
    over, problems = threading.Event(), list[Exception]()
    place, to = fabric.place(fabric.senders[0]), fabric.receivers[0].address

    def send() -> None:
        try:
            with roles.send_stream(place, to, congestion=load.congestion):
                over.wait()
        except Exception as problem:  # noqa: BLE001  raised again below
            problems.append(problem)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if problems:
        raise problems[0]
