"""Omits fields that a daemon of an older version refuses, and shows them as refused; pure.

A daemon refuses a whole message for one unknown field. Without that field it still holds its
routers. Daemons have supported setpoints in bits/s for longer than bursts.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from policer.errors import LinkRefused
from xtc.wire import Activate, Limit, Refusal

Message = Activate | Limit


class LeftOut(Refusal, frozen=True, tag="left_out"):
    """A message sent without something that its daemon does not support: the router is held."""


TOO_OLD = LeftOut(
    "too_old",
    "burst",
    "the daemon of this host does not take one; the router is held with a burst of 0.2 s of its"
    " setpoint (update xtc on this host)",
)
"""Shown for a router if its daemon does not support its burst."""
IN_PACKETS = "the router is held in packets/s, by the mean size of its packets"
NO_BITS = LeftOut(
    "too_old",
    "setpoint_bps",
    f"the daemon of this host takes none; {IN_PACKETS} (update xtc on this host)",
)
"""Shown for a router if its daemon does not support its ceiling in bits/s."""


def for_its_burst(error: LinkRefused, messages: Sequence[Message]) -> bool:
    """Whether a message may have been refused because of its burst."""
    return error.code == "bad_message" and any(map(_has_burst, messages))


def for_its_bits(error: LinkRefused, messages: Sequence[Message]) -> bool:
    """Whether a message may have been refused because of its setpoint in bits/s."""
    return error.code == "bad_message" and any(map(is_in_bits, messages))


def without_bursts(
    messages: Sequence[Message], next_sequence: Callable[[], int]
) -> Iterator[Message]:
    """Yield messages without bursts; renumbered, since some may have been carried out."""
    for message in messages:
        if isinstance(message, Limit):
            yield message
        else:
            yield replace(message, burst=None, sequence=next_sequence())


def without_bits(
    messages: Sequence[Message], next_sequence: Callable[[], int]
) -> Iterator[Message]:
    """Yield the messages that have no setpoint in bits/s, renumbered."""
    for message in messages:
        if isinstance(message, Limit):
            yield message
        elif not is_in_bits(message):
            yield replace(message, sequence=next_sequence())


def with_lost_bursts(
    messages: Sequence[Message], refused: Sequence[Refusal | None]
) -> Iterator[Refusal | None]:
    """Yield for each message its refusal, or the omission of its burst, or None."""
    for message, refusal in zip(messages, refused, strict=True):
        yield TOO_OLD if refusal is None and _has_burst(message) else refusal


def with_lost_bits(
    messages: Sequence[Message], refused: Sequence[Refusal | None]
) -> Iterator[Refusal | None]:
    """Yield for each message its refusal, or its omission because of bits/s, or None.

    Args:
        messages: all of them.
        refused: results of those that are not in bits/s.
    """
    answers = iter(refused)
    for message in messages:
        yield NO_BITS if is_in_bits(message) else next(answers)


def is_in_bits(message: Message) -> bool:
    """Whether a message has a setpoint in bits/s."""
    return isinstance(message, Activate) and message.setpoint_bps is not None


def _has_burst(message: Message) -> bool:
    return isinstance(message, Activate) and message.burst is not None
