"""What a daemon of an older version does not take is left out, and shown as refused; pure.

A daemon refuses a whole message for one field that it does not know. Without that field its routers
are held all the same.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from policer.errors import LinkRefused
from xtc.wire import Activate, Limit, Refusal

Message = Activate | Limit
TOO_OLD = Refusal(
    "too_old",
    "burst",
    "the daemon of this host does not take one; the router is held with a burst of 0.2 s of its"
    " setpoint (update xtc on this host)",
)
"""What is shown of a router whose burst its daemon does not take."""


def for_its_burst(error: LinkRefused, messages: Sequence[Message]) -> bool:
    """Whether a message may have been refused since a burst is in it."""
    return error.code == "bad_message" and any(map(_has_burst, messages))


def without_bursts(
    messages: Sequence[Message], next_sequence: Callable[[], int]
) -> Iterator[Message]:
    """Yield messages without bursts; numbered anew, since some may have been carried out."""
    for message in messages:
        if isinstance(message, Limit):
            yield message
        else:
            yield replace(message, burst=None, sequence=next_sequence())


def with_lost_bursts(
    messages: Sequence[Message], refused: Sequence[Refusal | None]
) -> Iterator[Refusal | None]:
    """Yield for each message why it was refused, or that it went without its burst, or None."""
    for message, refusal in zip(messages, refused, strict=True):
        yield TOO_OLD if refusal is None and _has_burst(message) else refusal


def _has_burst(message: Message) -> bool:
    return isinstance(message, Activate) and message.burst is not None
