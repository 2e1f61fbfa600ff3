"""A simulated router whose packets cost CPU time by their size, and its sweep at several sizes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from training_rig import METADATA, Router, Sender

from models import HostModel, ThroughputCurve
from training.recording.recording import Recording
from training.recording.sweep_model import Traffic, aims_for
from training.sweep.sweep import Sweep, resumed

OFFERED = 1e6
"""Packets/s; more than the router forwards of any size."""

Cost = Callable[[float], float]
"""CPU seconds of a packet of so many bytes."""
Shape = Callable[[Cost, float], ThroughputCurve]
"""The curve of packets of a size."""


def straight(per_packet: float, per_byte: float) -> Cost:
    return lambda size: per_packet + per_byte * size


def hinge(cost: Cost, size: float) -> ThroughputCurve:
    """Half a CPU is all that the router can use."""
    top = 0.5 / cost(size)
    return ThroughputCurve(((0.5, top), (2.0, top)), OFFERED)


class SizedSender(Sender):
    """Sends packets of a size; the router's curve follows from their cost."""

    def __init__(self, simulated: Router, cost: Cost, shape: Shape) -> None:
        super().__init__(simulated)
        self.sizes: list[int] = []
        self._simulated, self._cost, self._shape = simulated, cost, shape

    def set_rate(self, rate_pps: float, packet_bytes: int | None = None) -> None:
        super().set_rate(rate_pps)
        if packet_bytes is not None:
            self.sizes.append(packet_bytes)
            curve = self._shape(self._cost, packet_bytes)
            self._simulated.plant = replace(self._simulated.plant, curve=curve)


def sized(
    cost: Cost,
    sizes: Sequence[int],
    path: Path,
    *,
    noise: float = 0.0,
    seed: int = 0,
    rates: Sequence[float] = (),
    samples: int = 300,
    shape: Shape = hinge,
    drift: Callable[[int], float] = lambda _sample: 1.0,
    breaks_after: int | None = None,
) -> Recording:
    """Sweep a simulated router at the first size, and at a few caps with the others."""
    curve = shape(cost, sizes[0])
    host = HostModel(name="h", measured_curve=curve, cap_floor=0.001, cap_ceiling=2.0)
    simulated = Router(host, noise=noise, seed=seed)
    simulated.drift, simulated.breaks_after = drift, breaks_after
    sender = SizedSender(simulated, cost, shape)
    sender.set_rate(OFFERED, sizes[0])
    metadata = msgspec.structs.replace(METADATA, offered_pps=OFFERED, packet_bytes=sizes[0])
    loads = [*(Traffic(r, sizes[0]) for r in rates), *(Traffic(OFFERED, s) for s in sizes[1:])]
    aims = aims_for(samples, loads)
    recording = resumed(metadata, path)
    return Sweep(simulated, recording, path, aims, lambda _: None, load=sender).run()
