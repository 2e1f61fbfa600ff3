"""The messages between policer and manager: typed, versioned, JSON."""

from typing import Annotated

import msgspec

from common.setpoint import Setpoint, one_of
from xtc.errors import Refused
from xtc.lease import BitRate, Burst, Count, Kind, Rate, highest_possible
from xtc.modes import Finding, Mode

__all__ = [
    "MAX_BATCH",
    "MAX_MESSAGE",
    "VERSION",
    "Activate",
    "Answer",
    "Batch",
    "Change",
    "Deactivate",
    "Envelope",
    "Finding",
    "HostDrops",
    "Kind",
    "Limit",
    "Mode",
    "Observe",
    "Outcomes",
    "Pause",
    "Refusal",
    "Refused",
    "Reply",
    "Report",
    "Request",
    "Resume",
    "Retune",
    "Status",
    "Telemetry",
    "VrName",
    "decode_reply",
    "decode_request",
    "decode_telemetry",
    "encode",
    "highest_possible",
    "request_id",
]

VERSION = 1
MAX_MESSAGE = 64 * 1024
"""Bytes; the socket drops a larger message and disconnects its sender."""
MAX_BATCH = 256
"""Maximum requests; they fit into one message, unless all have maximum length and carry bursts."""

VrName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$(?!\n)")]
RequestId = Annotated[str, msgspec.Meta(max_length=64)]
Ttl = Annotated[float, msgspec.Meta(gt=0, le=366 * 86400)]
Drops = Annotated[float, msgspec.Meta(ge=0)]


class _Grant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A lease for a router, in packets/s or in bits/s.

    Unset fields are not sent, so that a daemon that supports packets only accepts those.
    """

    vr: VrName
    setpoint_pps: Rate | None = None
    epoch: Count = 0
    sequence: Count = 0
    ttl_s: Ttl | None = None
    """Seconds; None means until further notice."""
    kind: Kind = Kind.NORMAL
    setpoint_bps: BitRate | None = None
    """Replaces the setpoint in packets/s."""
    burst: Burst | None = None
    """Allowance beyond the rate, in packets or bits as the setpoint; None means 0.2 s of it."""

    def __post_init__(self) -> None:
        one_of(self.setpoint_pps, self.setpoint_bps)

    @property
    def setpoint(self) -> Setpoint:
        """The setpoint in its unit."""
        return one_of(self.setpoint_pps, self.setpoint_bps, self.burst)


class Activate(_Grant, frozen=True, tag="activate"):
    """Begin to hold a router at a setpoint; a router under control takes the new lease."""


class Retune(_Grant, frozen=True, tag="retune"):
    """Give an active router another lease."""


class Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="pause"):
    """Freeze the router's cap until it is resumed."""

    vr: VrName


class Resume(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="resume"):
    """Resume control of a paused router."""

    vr: VrName


class Deactivate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="deactivate"):
    """Restore the original settings and stop control of the router."""

    vr: VrName | None
    """None means every active router."""


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="limit"):
    """Limit the traffic from the host into a router, which would drop the excess anyway."""

    vr: VrName
    rate_pps: Rate | None
    """For each of the router's interfaces; None lifts the limit."""
    ttl_s: Ttl | None = None
    """Seconds; None means until it is lifted."""
    epoch: Count | None = None
    """A stale one (below the highest accepted) is refused; None means an operator's request."""


class Status(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="status"):
    """Ask for reports."""

    vr: VrName | None = None
    """None means every configured router."""


class Observe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="observe"):
    """Compute and show the cap of every router without writing it; or write caps again."""

    on: bool


Change = Activate | Retune | Pause | Resume | Deactivate | Limit
"""A request that changes a router's state."""
Request = Change | Observe | Status


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="batch"):
    """Changes that are carried out one by one; a refused one does not stop the others."""

    requests: Annotated[tuple[Change, ...], msgspec.Meta(max_length=MAX_BATCH)]


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request with version and id."""

    request: Request | Batch
    version: int = VERSION
    id: RequestId = ""
    """Chosen by the sender, returned with the answer."""


class Report(msgspec.Struct, frozen=True, gc=False):
    """State of one router at one instant; suffixes give units, caps are in CPUs."""

    vr: VrName
    active: bool
    mode: Mode
    finding: Finding
    setpoint_pps: float | None
    """None where the router is not active, or is held in bits/s."""
    throughput_pps: float | None
    offered_pps: float | None
    cap: float | None
    """None where the router is uncapped."""
    used: float | None
    binding: bool | None
    lease_remaining_s: float | None
    """None where the lease has no end."""
    sample_age_s: float | None
    interfaces: tuple[str, ...]
    problem: str = ""
    """What prevents the loop from working, and the fix."""
    law: str = ""
    limit_pps: float | None = None
    shield_pps: float | None = None
    """Rate of its shield, over all its interfaces; None where it has none."""
    shield_bps: float | None = None
    """The same for a router that is held in bits/s."""
    shield_problem: str = ""
    """Why some interfaces lack the shield."""
    cap_known: bool = True
    """Whether the cap could be read; if not, `cap` is meaningless."""
    observing: bool = False
    """Whether the loop only shows what it would do."""
    proposed_cap: float | None = None
    """The cap that a router under observation would get."""
    epoch: int | None = None
    """Of the lease in force; None where the router is not active, or from an older daemon."""
    sequence: int | None = None
    setpoint_bps: float | None = None
    """None where the router is not held in bits/s."""
    throughput_bps: float | None = None
    """None where unknown, or from an older daemon."""
    offered_bps: float | None = None
    burst: float | None = None
    """What the setpoint allows beyond its rate, in the same unit; None where the router is not
    active, or from an older daemon."""
    over_promise_packets: float | None = None
    """Delivered beyond setpoint and burst since the daemon started; None where it never was held in
    packets/s, or from an older daemon."""
    under_promise_packets: float | None = None
    """Wanted, but missing by more than the burst; None likewise."""
    over_promise_bits: float | None = None
    """The same two while it was held in bits/s."""
    under_promise_bits: float | None = None
    breach_seconds: float | None = None
    """The time in which any of the four grew."""
    weight: int | None = None
    """Its CPU weight among its competitors, in its platform's unit; None where unknown, or from an
    older daemon."""
    floor_problem: str = ""
    """Why it has no floor, or none that covers its setpoint."""
    uuid: str = ""
    """UUID of its domain; empty where it is none, or does not run, or from an older daemon."""


class HostDrops(msgspec.Struct, frozen=True):
    """What a host dropped before any router in the last period, in packets/s.

    Do not add the two: the interface also counts a backlog's drops.
    """

    cards: dict[str, Drops]
    """By network card without a router; cards without a rate in this period are missing."""
    backlog: Drops | None
    """In the backlogs of all CPUs together; None where unknown."""


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """The request was carried out; contains the reports of the routers concerned."""

    routers: tuple[Report, ...]
    drops: HostDrops | None = None
    """None where unknown, or from an older daemon."""


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """The request was not carried out."""

    code: str
    field: str
    problem: str
    fix: str = ""


class Outcomes(msgspec.Struct, frozen=True, tag="outcomes"):
    """The results of a batch, in its order; telemetry reports the state of the routers."""

    refusals: tuple[Refusal | None, ...]
    """None where the request was carried out."""


class Reply(msgspec.Struct, frozen=True):
    """An answer with version and id."""

    result: Answer | Outcomes | Refusal
    version: int = VERSION
    id: str = ""


class Telemetry(msgspec.Struct, frozen=True):
    """All routers after a tick, as streamed to subscribers."""

    at: float
    """Monotonic seconds of the host."""
    tick: int
    routers: tuple[Report, ...]
    version: int = VERSION
    drops: HostDrops | None = None
    """None where unknown, or from an older daemon."""
    highest_epoch: int | None = None
    """The highest epoch accepted: lower ones are refused; None from an older daemon."""
    busiest_cpu: float | None = None
    """Load of the host's busiest CPU in the last second, 0 to 1; None where unknown, or from an
    older daemon."""
    simulated: bool = False
    """Whether its routers are simulated, so that none of their packets are real."""


class _Versioned(msgspec.Struct):
    version: int


class _Identified(msgspec.Struct):
    id: RequestId = ""


_decode_id = msgspec.json.Decoder(_Identified)
_decode_version = msgspec.json.Decoder(_Versioned)
_decode_envelope = msgspec.json.Decoder(Envelope)
_decode_reply = msgspec.json.Decoder(Reply)
_decode_telemetry = msgspec.json.Decoder(Telemetry)
_BAD_BYTES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors that msgspec raises for invalid bytes."""
encode = msgspec.json.Encoder().encode


def decode_request(raw: bytes) -> Envelope:
    """Decode a request.

    Raises:
        Refused: the message is invalid or of another version, or a field is wrong; nothing else is
            raised for any bytes.
    """
    if len(raw) > MAX_MESSAGE:
        raise Refused("too_large", "message", f"{len(raw)} bytes exceed {MAX_MESSAGE}")
    try:
        _check_version(_decode_version.decode(raw).version)
        return _decode_envelope.decode(raw)
    except _BAD_BYTES as error:
        problem, _, where = str(error).partition(" - at ")
        raise Refused("bad_message", where.strip("`") or "message", problem) from None


def request_id(raw: bytes) -> str:
    """Return the id of a refused request, for its sender; "" if it has none."""
    try:
        return _decode_id.decode(raw[:MAX_MESSAGE]).id
    except _BAD_BYTES:
        return ""


def decode_reply(raw: bytes) -> Reply:
    """Decode the manager's answer.

    Raises:
        Refused: the answer is invalid, or of another version; nothing else is raised.
    """
    try:
        reply = _decode_reply.decode(raw)
    except _BAD_BYTES as error:
        raise Refused("bad_message", "reply", str(error)) from None
    _check_version(reply.version)
    return reply


def decode_telemetry(raw: bytes) -> Telemetry:
    """Decode one tick of the stream.

    Raises:
        Refused: the message is invalid, or of another version; nothing else is raised.
    """
    try:
        telemetry = _decode_telemetry.decode(raw)
    except _BAD_BYTES as error:
        raise Refused("bad_message", "telemetry", str(error)) from None
    _check_version(telemetry.version)
    return telemetry


def _check_version(version: int) -> None:
    if version != VERSION:
        raise Refused(
            "version", "version", f"{version} is not supported; this daemon speaks {VERSION}"
        )
