"""Throughput of a host under mixed packet sizes; pure.

Sizes are bytes of the Ethernet frame without preamble and checksum.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from models import HostModel
from models.cost import limited_by_load, mean_bytes
from models.errors import InvalidModelError
from training.errors import OptionError

CHECKSUM: Final = 4
"""Bytes of a frame that the kernel does not count."""
IMIX: Final = tuple(
    (float(wire - CHECKSUM), share / 12) for wire, share in ((64, 7), (594, 4), (1518, 1))
)
"""The usual Internet mix (IMIX), 7:4:1 of IP packets of 40, 576 and 1500 bytes. With 18 bytes of
Ethernet these are frames of 64 (the minimum), 594 and 1518 bytes; the 4 of the checksum do not
count here."""

Mix = tuple[tuple[float, float], ...]


class Held(msgspec.Struct, frozen=True):
    """A setpoint under the mix."""

    setpoint_pps: float
    cap: float | None
    """CPUs; None if no cap forwards that much."""


class Predicted(msgspec.Struct, frozen=True):
    """Throughput of the host under a mix."""

    mean_bytes: float
    ratio: float
    """Throughput over that of the model's own packets, when the CPU limits it."""
    top_pps: float
    top_bps: float
    """Bits of frames per second."""
    limited_by: str
    """``load`` or ``host``."""
    cap_threshold: float
    points: tuple[tuple[float, float, float], ...]
    """(cap in CPUs, packets/s, bits/s)."""
    setpoints: tuple[Held, ...]


def parse_mix(text: str) -> Mix:
    """Return (bytes, share of the packets) of each size in ``64:0.5,1400:0.5``, or of ``imix``.

    The shares are scaled to a sum of 1.

    Raises:
        OptionError: a size or share cannot be read, or the shares do not sum to 1 within 1 %.
    """
    mix = IMIX if text.strip().lower() == "imix" else tuple(map(_part, text.split(",")))
    try:
        mean_bytes(mix)
    except InvalidModelError as error:
        raise OptionError("--mix", error.problem, error.fix) from error
    whole = sum(share for _, share in mix)
    return tuple((size, share / whole) for size, share in mix)


def _part(text: str) -> tuple[float, float]:
    size, colon, share = text.partition(":")
    try:
        if colon:
            return float(size), float(share)
    except ValueError:
        pass
    fix = "write SIZE:SHARE,SIZE:SHARE, such as 64:0.5,1400:0.5, or imix"
    raise OptionError("--mix", f"{text[:40]!r} is no size with its share", fix)


def predicted(host: HostModel, mix: Mix, setpoints: Sequence[float]) -> tuple[HostModel, Predicted]:
    """Return the model of a mix, and its predictions.

    Raises:
        InvalidModelError: the model has no cost.
    """
    mean = mean_bytes(mix)
    model = host.for_packet_size(mean)
    curve, bits = model.curve, 8 * mean
    assert host.cost is not None  # there is a model for a size
    return model, Predicted(
        mean_bytes=mean,
        ratio=host.cost.ratio(mean),
        top_pps=curve.top,
        top_bps=curve.top * bits,
        limited_by="load" if limited_by_load(curve) else "host",
        cap_threshold=curve.cap_threshold,
        points=tuple((cap, rate, rate * bits) for cap, rate in curve.points),
        setpoints=tuple(
            Held(goal, curve.cap_for(goal) if goal <= curve.top else None) for goal in setpoints
        ),
    )
