"""Drive a router through the planner's caps, and store every sample immediately."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from common.units import CapFraction
from training.errors import RecordingError
from training.recording.metadata import check_same
from training.recording.recording import (
    Metadata,
    Recording,
    Sample,
    append_csv,
    is_sized,
    read_csv,
    write_csv,
)
from training.recording.sweep_model import Known, Span, SweepPlan, Traffic
from training.sweep.bench import Measured
from training.sweep.load import Load, arrives, check_alive, short_of
from training.sweep.planner import Request, enough, most_left, next_request
from training.sweep.settling import Settling
from training.sweep.watch import PATIENCE, MeasureError
from xtc.errors import Admission

READ_BACK = 5e-3
"""Relative difference up to which a cap that is read back equals the requested one."""
LOWER = 0.8
"""Factor on the ceiling when the kernel has no CPU time for it."""


class Capped(Protocol):
    """A router that can be capped and sampled (`training.sweep.bench.Bench`)."""

    @property
    def span(self) -> Span:
        """The allowed caps."""
        ...

    def cap(self, cap: CapFraction) -> None:
        """Put a cap in force."""
        ...

    def sample(self) -> Measured:
        """Return the sample of the next period."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a sweep."""

    phase: str
    cap: float | None
    throughput_pps: float | None
    caps: int
    """Number of caps of the curve."""
    done_s: float
    left_s: float
    """At most."""


Watcher = Callable[[Progress], None]


def resumed(metadata: Metadata, path: Path) -> Recording:
    """Return the recording of an interrupted sweep, or begin the file.

    Raises:
        RecordingError: the file is another sweep's, is not a recording, or cannot be begun.
        MeasureError: it can no longer be written.
    """
    if not path.exists():
        fresh = Recording(metadata, ())
        write_csv(fresh, path)
        return fresh
    recording = read_csv(path)
    check_same(recording.metadata, metadata, path)
    try:
        write_csv(recording, path)  # without a last line that a crash cut off
    except RecordingError as error:
        raise _unwritable(path, error) from error
    return recording


def _unwritable(path: Path, error: RecordingError) -> MeasureError:
    fix = "fix that, then run the sweep again: it goes on where it stopped"
    return MeasureError(str(path), error.problem, fix)


class Sweep:
    """One sweep of one router into one file."""

    def __init__(
        self,
        bench: Capped,
        recording: Recording,
        path: Path,
        aims: SweepPlan,
        watcher: Watcher,
        *,
        load: Load | None = None,
    ) -> None:
        """Take the earlier run's recording, and a load that sends at its rate."""
        self._bench, self._path, self._aims, self._watcher = bench, path, aims, watcher
        self._metadata, self._samples = recording.metadata, list(recording.samples)
        self._span = bench.span
        self._fresh = True
        self._spent = self._samples[-1].at if self._samples else 0.0
        """Seconds spent measuring, discarded samples included."""
        self._began: float | None = None
        self._load, self._own = load, _traffic_of(recording.metadata)
        self._sent_now = self._own
        self._sized = is_sized(recording)
        self._settling = Settling(aims.probe, recording.metadata.period_s, aims.samples)

    def run(self) -> Recording:
        """Measure until the planner has no further request.

        Raises:
            Stopped: a stop was requested; running again resumes from there.
            MeasureError: the router cannot be measured, the source has ended or does not reach a
                rate, or the file can no longer be written.
            ActuatorError: it cannot be capped.
        """
        while True:
            known = self._known()
            if (request := next_request(known, self._left())) is None:
                break
            self._visit(request, known)
        return Recording(self._metadata, tuple(self._samples))

    def _known(self) -> Known:
        settling = self._settling
        waits, visits = settling.needed(self._samples), settling.visits(self._samples)
        waits = max(waits, settling.whole) if self._fresh and self._samples else waits
        return Known(visits, self._span, self._aims, self._fresh, waits, settling.expected)

    def _left(self) -> int:
        return int(self._aims.samples - self._spent / self._metadata.period_s + 1e-6)

    def _visit(self, request: Request, known: Known) -> None:
        """Apply a cap and keep it until the request is met."""
        visit = known.visits[-1].number + 1 if known.visits else 0
        if request.cap is not None and not self._capped(request.cap):
            return
        self._send(request.traffic or self._own)
        measured = self._settled(known, request, visit) if request.settles else self._take()
        if request.traffic is not None:
            measured = self._sent(measured, request.traffic.offered)
        until = self._spent + most_left(known, self._left()) * self._metadata.period_s
        while True:
            self._keep(measured, request, visit)
            self._tell(known, measured, request, until)
            values = self._settling.latest(self._samples).values
            if enough(values, request, known.noise) or self._left() < 1:
                break
            measured = self._take()
        self._fresh = False

    def _capped(self, cap: float) -> bool:
        """Put a cap in force; if the kernel has no CPU time for it, lower the ceiling."""
        try:
            self._bench.cap(CapFraction(cap))
        except Admission:
            lower = LOWER * cap
            if lower <= self._span.floor:
                raise
            self._span = replace(self._span, ceiling=lower)
            return False
        return True

    def _send(self, wanted: Traffic | None) -> None:
        """Send other traffic; None is uncontrolled traffic."""
        if self._load is None or wanted is None or wanted == self._sent_now:
            return
        if self._sent_now is None or wanted.packet_bytes == self._sent_now.packet_bytes:
            self._load.set_rate(wanted.offered)
        else:
            self._load.set_rate(wanted.offered, wanted.packet_bytes)
        self._sent_now = wanted

    def _sent(self, measured: Measured, rate: float) -> Measured:
        """Return the first sample in which a rate arrives.

        Raises:
            MeasureError: it does not.
        """
        for _ in range(PATIENCE):
            if arrives(measured.offered, rate):
                return measured
            measured = self._take()
        raise short_of(measured.offered, rate)

    def _settled(self, known: Known, request: Request, visit: int) -> Measured:
        """Wait until the cap shows; keep the samples meanwhile, since they show the dynamics.

        Except if it follows a cap outside this recording, or comes with another load.
        """
        follows = bool(known.visits) and not self._fresh and request.phase != "load"
        for _ in range(known.waits if known.visits else 1):
            measured = self._take()
            if follows:
                self._keep(measured, replace(request, phase="settling"), visit)
        return self._take()

    def _take(self) -> Measured:
        measured = self._bench.sample()
        check_alive(self._load)  # check again: it may have ended after the period
        if self._began is None:
            self._began = measured.at - self._metadata.period_s - self._spent
        self._spent = measured.at - self._began
        return measured

    def _keep(self, measured: Measured, request: Request, visit: int) -> None:
        sample = Sample(
            at=round(self._spent, 6),
            cap=_in_force(measured.cap, request.cap),
            throughput_pps=measured.throughput,
            offered_pps=measured.offered if request.traffic is None else request.traffic.offered,
            used=measured.used,
            binding=measured.binding,
            phase=request.phase,
            visit=visit,
            packet_bytes=self._packet_bytes(request),
        )
        try:
            append_csv(sample, self._path, sized=self._sized)
        except RecordingError as error:
            raise _unwritable(self._path, error) from error
        self._samples.append(sample)

    def _packet_bytes(self, request: Request) -> int | None:
        if request.traffic is not None:
            return request.traffic.packet_bytes
        return self._metadata.packet_bytes

    def _tell(self, known: Known, measured: Measured, request: Request, until: float) -> None:
        self._watcher(
            Progress(
                request.phase,
                measured.cap,
                measured.throughput,
                len(known.points),
                self._spent,
                max(0.0, until - self._spent),
            )
        )


def _traffic_of(metadata: Metadata) -> Traffic | None:
    """Return the load of the whole curve; None if it is not controlled."""
    if metadata.offered_pps is None:
        return None
    return Traffic(metadata.offered_pps, metadata.packet_bytes)


def _in_force(got: float | None, wanted: float | None) -> float | None:
    """Return the cap as requested, unless another one was read back.

    A cap that is split over threads reads back a little differently each time; to the curve it is
    one cap.
    """
    if got is None or wanted is None or abs(got - wanted) > READ_BACK * wanted:
        return got
    return wanted
