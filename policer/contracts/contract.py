"""A contract: what one virtual router is promised, and what may be done when it misbehaves."""

from collections.abc import Iterator
from math import inf
from typing import Annotated, Literal

import msgspec

from common.units import MAX_BIT_RATE, MIN_BIT_RATE, format_bit_rate
from policer.contracts.ladder import Step
from policer.contracts.reach import TenantName
from policer.contracts.schedule import ClassName, Instant, Windows, Zone, problems_of_schedule
from policer.errors import Problem

MAX_PPS = 1e9
"""No port of this decade forwards more; a larger number is a typing error."""

Rate = Annotated[float, msgspec.Meta(gt=0, le=MAX_PPS, description="packets/s")]
RateOrZero = Annotated[float, msgspec.Meta(ge=0, le=MAX_PPS, description="packets/s")]
BitRate = Annotated[
    float, msgspec.Meta(ge=MIN_BIT_RATE, le=MAX_BIT_RATE, description="bits/s of Ethernet frames")
]
PACKET_BYTES = 350
"""Mean size of the simple IMIX, the usual rating mix: 7, 4 and 1 frames of 60, 566 and 1514 bytes,
as interfaces count them (without checksum)."""
PacketBytes = Annotated[int, msgspec.Meta(ge=64, le=65_535, description="bytes of a frame")]
Weight = Annotated[float, msgspec.Meta(ge=0.001, le=1000)]
Packets = Annotated[float, msgspec.Meta(ge=0, le=1e12, description="packets")]
Cost = Annotated[float, msgspec.Meta(ge=0.01, le=100)]

BURST_MOST_S = 60.0
"""A longer burst would make a promise unobservable within a minute."""
# `contradictions` checks the bounds, which depend on the rate: it can suggest a value.
Burst = Annotated[
    float,
    msgspec.Meta(
        description=f"packets: 1 or more, and at most {BURST_MOST_S:g} s of the guarantee, or of "
        "the ceiling where nothing is guaranteed",
    ),
]

Punish = Literal["never", "when_harming", "always"]
"""A router is not responsible for what is sent to it: it may be the victim of a flood. On a host
with spare CPU that does no harm."""
_TWICE = "it is given in packets/s too", "give one of the two, and leave the other out"
DEFAULT_MEASURES = (Step.WARN, Step.LOWER, Step.LIMIT)
"""Default measures of a contract: none stops a router's own traffic."""


class Contract(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"class_name": "class"}
):
    """The operator's promise to one router (SLA): terms of its own, or those of a class."""

    guarantee_pps: RateOrZero = 0.0
    """Throughput that it gets whenever it wants it."""
    ceiling_pps: Rate | None = None
    """Throughput that it never exceeds, even on an idle host; None is no ceiling."""
    weight: Weight = 1.0
    """Its share of what is left, relative to the other routers' weights."""
    burst_packets: Packets = 0.0
    """What it may forward above its ceiling in one burst, saved up while it was below."""
    measures: tuple[Step, ...] = DEFAULT_MEASURES
    """Measures allowed when it misbehaves, from the mildest to the hardest."""
    dry_run: bool = False
    """Whether misbehaviour is only reported."""
    punish: Punish = "when_harming"
    """When it may be punished: never, while its host is contended, or always."""
    cost: Cost = 1.0
    """Cost of one of its packets to the host, relative to an ordinary packet."""
    burst: Burst | None = None
    """What a setpoint allows beyond its rate over any window, up or down; at most 60 s of the
    guarantee, or of the ceiling if nothing is guaranteed. None is 0.2 s of the setpoint in
    force."""
    guarantee_bps: BitRate | None = None
    """The guarantee in bits/s, instead of the one in packets/s."""
    ceiling_bps: BitRate | None = None
    """The ceiling in bits/s, instead of the one in packets/s."""
    packet_bytes: PacketBytes = PACKET_BYTES
    """Mean size of frames for which rates in bits/s were sold. The guarantee reserves its rate in
    packets of this size; bursts are in packets of this size."""
    class_name: ClassName | None = None
    """Class that gives the terms: the contract then states none of its own."""
    valid_from: Instant | None = None
    """The promise begins at this time; None is immediately."""
    valid_until: Instant | None = None
    """The promise ends at this time; None is when the contract is removed."""
    hours: Windows = ()
    """When it holds: the first open window selects the terms. None given is always."""
    zone: Zone = "UTC"
    """The time zone of the hours."""
    tenant: TenantName | None = None
    """Tenant of the router, for tokens that are limited to tenants; None is no tenant."""

    @property
    def reserve_pps(self) -> float:
        """The guarantee's share of a host in packets/s of the size sold, before its cost."""
        return self.guarantee_pps or (self.guarantee_bps or 0.0) / (8 * self.packet_bytes)

    @property
    def ceiling(self) -> float:
        """The ceiling in packets/s of the size sold; infinite if there is none."""
        if self.ceiling_pps is not None:
            return self.ceiling_pps
        return inf if self.ceiling_bps is None else self.ceiling_bps / (8 * self.packet_bytes)

    @property
    def reference_pps(self) -> float | None:
        """The rate to which a burst belongs: the guarantee, or the ceiling; None without both."""
        return self.reserve_pps or (None if self.ceiling == inf else self.ceiling)

    def burst_at(self, setpoint_pps: float) -> float | None:
        """Return the burst for a setpoint, in packets; None is the daemon's default.

        From the reference rate on, this is the contract's burst. Below, it lasts as many seconds as
        at that rate: otherwise a paused router could forward the whole burst in one go.
        """
        if self.burst is None or self.reference_pps is None:
            return None
        return max(1.0, self.burst * min(1.0, setpoint_pps / self.reference_pps))


TERMS = Contract.__struct_fields__[: Contract.__struct_fields__.index("class_name")]
"""The fields that a class defines."""


def contradictions(contract: Contract) -> Iterator[Problem]:
    """Return the contradictions in a contract, by field."""
    if contract.class_name is not None:
        yield from _own_terms(contract)
    yield from problems_of_schedule(
        contract.valid_from, contract.valid_until, contract.hours, contract.zone
    )
    yield from _problems_of_units(contract)
    if contract.reserve_pps > contract.ceiling:
        yield Problem(
            "ceiling_pps" if contract.ceiling_bps is None else "ceiling_bps",
            _below_the_guarantee(contract),
            "raise the ceiling, lower the guarantee, or leave the ceiling out",
        )
    if contract.burst_packets > 0 and contract.ceiling == inf:
        yield Problem(
            "burst_packets",
            "there is no ceiling that a burst could exceed",
            "give a ceiling, or leave the burst out",
        )
    yield from _problems_of_burst(contract)
    if list(contract.measures) != sorted(set(contract.measures), key=list(Step).index):
        yield Problem(
            "measures",
            f"{', '.join(contract.measures)}: each once, from the mildest to the hardest",
            f"keep this order: {', '.join(Step)}",
        )


def _own_terms(contract: Contract) -> Iterator[Problem]:
    plain = Contract()
    own = [name for name in TERMS if getattr(contract, name) != getattr(plain, name)]
    if own:
        yield Problem(
            "class",
            f"a contract of a class states no terms of its own, and this one has {', '.join(own)}",
            "leave these out, or leave the class out",
        )


def _problems_of_units(contract: Contract) -> Iterator[Problem]:
    """Return the rates that are given in both units."""
    if contract.guarantee_pps and contract.guarantee_bps is not None:
        yield Problem("guarantee_bps", *_TWICE)
    if contract.ceiling_pps is not None and contract.ceiling_bps is not None:
        yield Problem("ceiling_bps", *_TWICE)


def _below_the_guarantee(contract: Contract) -> str:
    """Describe a ceiling below the guarantee, in packets/s unless both are in bits/s."""
    ceiling, guarantee = contract.ceiling_bps, contract.guarantee_bps
    if ceiling is not None and guarantee is not None:
        return f"{format_bit_rate(ceiling)} is below the guarantee of {format_bit_rate(guarantee)}"
    mixed = (ceiling, guarantee) != (None, None)
    of_size = f" packets/s, at {contract.packet_bytes} bytes each" if mixed else ""
    words = f"{contract.ceiling:g} is below the guarantee of {contract.reserve_pps:g}"
    return words + of_size


def _problems_of_burst(contract: Contract) -> Iterator[Problem]:
    burst, rate = contract.burst, contract.reference_pps
    if burst is None:
        return
    if not burst >= 1:
        problem = f"{burst:g} packets; a burst is at least 1 packet"
        yield Problem("burst", problem, "give 1 or more, or leave it out for 0.2 s of the setpoint")
    elif rate is None:
        problem = "there is neither a guarantee nor a ceiling that a burst could go with"
        yield Problem("burst", problem, "give one of them, or leave the burst out")
    elif burst > (most := max(1.0, BURST_MOST_S * rate)) * (1 + 1e-9):
        name = "guarantee" if contract.reserve_pps else "ceiling"
        problem = f"{burst:.10g} packets are more than {BURST_MOST_S:g} s of the {name}"
        yield Problem("burst", problem, f"give at most {most:.10g}")
