"""What a daemon of an older version does not take is left out, and shown as refused; pure.

A daemon refuses a whole message for one field that it does not know. Without that field its routers
are held all the same. Daemons have known setpoints in bits/s for longer than bursts.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from policer.errors import LinkRefused
from xtc.wire import Activate, Limit, Refusal

Message = Activate | Limit


class LeftOut(Refusal, frozen=True, tag="left_out"):
    """What went without something that its daemon does not take: the router is held."""


TOO_OLD = LeftOut(
    "too_old",
    "burst",
    "the daemon of this host does not take one; the router is held with a burst of 0.2 s of its"
    " setpoint (update xtc on this host)",
)
"""What is shown of a router whose burst its daemon does not take."""
IN_PACKETS = "the router is held in packets/s, by the mean size of its packets"
NO_BITS = LeftOut(
    "too_old",
    "setpoint_bps",
    f"the daemon of this host takes none; {IN_PACKETS} (update xtc on this host)",
)
"""What is shown of a router whose ceiling in bits/s its daemon does not take."""


def for_its_burst(error: LinkRefused, messages: Sequence[Message]) -> bool:
    """Whether a message may have been refused since a burst is in it."""
    return error.code == "bad_message" and any(map(_has_burst, messages))


def for_its_bits(error: LinkRefused, messages: Sequence[Message]) -> bool:
    """Whether a message may have been refused since a setpoint in bits/s is in it."""
    return error.code == "bad_message" and any(map(is_in_bits, messages))


def without_bursts(
    messages: Sequence[Message], next_sequence: Callable[[], int]
) -> Iterator[Message]:
    """Yield messages without bursts; numbered anew, since some may have been carried out."""
    for message in messages:
        if isinstance(message, Limit):
            yield message
        else:
            yield replace(message, burst=None, sequence=next_sequence())


def without_bits(
    messages: Sequence[Message], next_sequence: Callable[[], int]
) -> Iterator[Message]:
    """Yield those messages that have no setpoint in bits/s, numbered anew."""
    for message in messages:
        if isinstance(message, Limit):
            yield message
        elif not is_in_bits(message):
            yield replace(message, sequence=next_sequence())


def with_lost_bursts(
    messages: Sequence[Message], refused: Sequence[Refusal | None]
) -> Iterator[Refusal | None]:
    """Yield for each message why it was refused, or that it went without its burst, or None."""
    for message, refusal in zip(messages, refused, strict=True):
        yield TOO_OLD if refusal is None and _has_burst(message) else refusal


def with_lost_bits(
    messages: Sequence[Message], refused: Sequence[Refusal | None]
) -> Iterator[Refusal | None]:
    """Yield for each message why it was refused, or that it was left out for its bits, or None.

    Args:
        messages: all of them.
        refused: what became of those that are not in bits/s.
    """
    answers = iter(refused)
    for message in messages:
        yield NO_BITS if is_in_bits(message) else next(answers)


def is_in_bits(message: Message) -> bool:
    """Whether a message has a setpoint in bits/s."""
    return isinstance(message, Activate) and message.setpoint_bps is not None


def _has_burst(message: Message) -> bool:
    return isinstance(message, Activate) and message.burst is not None
