"""When a port marks: a step, a ramp as of RED, or a phantom queue; pure values."""

from dataclasses import dataclass
from typing import Final

from lab.errors import BadRequestError

PHANTOM_SHARE: Final = 0.95
"""Usual rate of a phantom queue, as a share of its port's."""


@dataclass(frozen=True, slots=True)
class Marking:
    """When a port marks ECN-capable packets.

    The queue is the momentary one, as RED's with a weight of 1 (as DCTCP configures it).

    Raises:
        BadRequestError: a share is out of its range.
    """

    threshold: float = 0.2
    """Share of the port's buffer; a packet that meets a longer queue may be marked."""
    all_above: float | None = None
    """Share of the buffer above which all are marked; between both, the probability rises linearly
    from 0 to 1. None: all above `threshold`."""
    phantom: float | None = None
    """Share of the port's rate at which a counted queue is served, which decides instead of the
    real one. None: the real one."""

    def __post_init__(self) -> None:
        """Check the shares."""
        if not 0 <= self.threshold <= 1:
            raise BadRequestError("threshold", self.threshold, "a share of the buffer, 0 to 1")
        if self.all_above is not None and not self.threshold <= self.all_above <= 1:
            raise BadRequestError("all_above", self.all_above, "a share from the threshold to 1")
        if self.phantom is not None and not 0 < self.phantom <= 1:
            raise BadRequestError("phantom", self.phantom, "a share of the rate above 0, to 1")

    def options(self, rate_bps: int, buffer_bytes: int) -> dict[str, int]:
        """Return the marker's options for a port, in bytes and bytes/s."""
        high = self.threshold if self.all_above is None else self.all_above
        given = {
            "low": int(self.threshold * buffer_bytes),
            "high": int(high * buffer_bytes),
        }
        if self.phantom is None:
            return given
        return given | {"phantom": int(self.phantom * rate_bps / 8), "most": buffer_bytes}
