"""What a run of the dumbbell is given, and its law."""

from typing import Literal

import msgspec
import numpy as np

from xco.arrays import Floats
from xco.errors import ConfigError
from xco.simulate.dumbbell.control import Control, Fixed
from xco.simulate.dumbbell.laws import (
    FairShares,
    FollowedMarks,
    PublishedGcc,
    PublishedHygenicc,
    Shares,
)
from xco.simulate.dumbbell.senders import Kind

Strategy = Literal["uncoordinated", "static", "rate", "gcc", "hygenicc"]
Law = Literal["published", "by-bytes", "fair"]
Bottleneck = Literal["last", "core"]

GCC_PERIOD_S = 5e-3
"""Of the paper's simulations: 50 round trips."""
HYGENICC_PERIOD_S = 5e-4
"""The same: 5 round trips."""


class Dumbbell(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run; the defaults are those of the paper's simulations (section VIII)."""

    strategy: Strategy = "uncoordinated"
    law: Law = "fair"
    competitors: Kind = Kind.UDP
    tagged: Kind = Kind.TCP
    """The transport of the tagged sender."""
    senders: int = 4
    """Among them the tagged one."""
    bottleneck: Bottleneck = "last"
    """The receiver's own link, which it knows; or one that only marks tell of."""
    capacity_bps: float = 1e9
    believed: float = 1.0
    """What controllers take for the capacity, as a multiple of it."""
    phase_s: float = 10.0
    """Each of three: competitors; all; the tagged sender alone."""
    rtt_s: float = 1e-4
    """One step."""
    buffer_packets: int = 100
    mark_at: float = 0.2
    """Share of the buffer above which packets are marked; 1 marks none."""
    udp_marks: bool = True
    """Whether UDP's packets are marked, else dropped; with a shim, all are marked."""
    delay_s: float = 0.0
    """Of the control loop."""
    period_s: float | None = None
    """Of reports; the paper's own where it is not given."""
    foreign: float = 0.0
    """Load from senders without a shim in the second phase, as a share of the capacity."""
    first_share: float | None = None
    """Where given, the tagged limiter begins at this share of the link, and the others share the
    rest: for runs from unequal starts."""
    rto_s: float = 0.2
    unit_bps: float = 0.8e6
    """scale(): one packet in the longest round trip that the paper names."""

    @property
    def steps(self) -> int:
        """Steps of the three phases."""
        return round(3 * self.phase_s / self.rtt_s)

    def check(self) -> None:
        """Find the first invalid value.

        Raises:
            ConfigError: names it and the fix.
        """
        for name, value, least, most in (
            ("senders", self.senders, 2, 1_000),
            ("capacity", self.capacity_bps, 1e6, 1e12),
            ("phase", self.phase_s, 0.01, 3_600),
            ("rtt", self.rtt_s, 1e-6, 1e-2),
            ("delay", self.delay_s, 0, 1),
            ("foreign", self.foreign, 0, 10),
            ("mark_at", self.mark_at, 0, 1),
            ("buffer", self.buffer_packets, 1, 1_000_000),
            ("believed", self.believed, 0.01, 100),
        ):
            if not least <= value <= most:
                raise ConfigError("", name, f"{value:g}", f"from {least:g} to {most:g}")
        if self.steps > 10_000_000:
            raise ConfigError(
                "", "phase", f"{self.steps} steps", "at most 10 million: a shorter one"
            )


def control_of(given: Dumbbell) -> Control:
    """Return the law of a run, in its initial state."""
    everything: Floats = np.full(given.senders, given.capacity_bps)
    if given.strategy == "uncoordinated":
        return Fixed(everything)
    if given.strategy == "static":
        return Fixed(everything / given.senders)
    if given.strategy == "rate":
        return Shares(*_shared(given), given.period_s or GCC_PERIOD_S, aim=0.99)
    return _gcc(given) if given.strategy == "gcc" else _hygenicc(given)


def _gcc(given: Dumbbell) -> Control:
    period_s = given.period_s or GCC_PERIOD_S
    if given.law == "fair":
        return FairShares(*_shared(given), period_s)
    by_bytes, unit_bps = given.law == "by-bytes", given.unit_bps
    return PublishedGcc(given.capacity_bps, given.senders, period_s, unit_bps, by_bytes=by_bytes)


def _hygenicc(given: Dumbbell) -> Control:
    period_s = given.period_s or HYGENICC_PERIOD_S
    if given.law != "fair":
        return PublishedHygenicc(given.capacity_bps, given.senders, period_s, given.unit_bps)
    if given.bottleneck == "last":
        return FairShares(*_shared(given), period_s)
    # one decision a loop time: what was decided before must have come back as marks
    return FollowedMarks(given.capacity_bps, given.senders, period_s + given.delay_s)


def _shared(given: Dumbbell) -> tuple[float, Floats]:
    """Return the capacity that controllers believe, and the senders' weights."""
    return given.capacity_bps * given.believed, np.ones(given.senders)
