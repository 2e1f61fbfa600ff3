"""What may come of an attempt to deliver a message."""

from typing import Final, Literal, NamedTuple

GONE: Final = 410
Outcomes = Literal["delivered", "refused", "timeout", "unreachable", "forbidden"]
OUTCOMES: Final[tuple[Outcomes, ...]] = (
    "delivered",
    "refused",
    "timeout",
    "unreachable",
    "forbidden",
)


class Outcome(NamedTuple):
    """What came of an attempt."""

    kind: Outcomes
    words: str = ""
    """What went wrong."""
    status: int | None = None
    """Of the answer, if there was one."""
    retry_after_s: float = 0.0
    """How long the receiver asks to be left alone."""

    @property
    def delivered(self) -> bool:
        """Whether the message was taken."""
        return self.kind == "delivered"

    @property
    def final(self) -> bool:
        """Whether the receiver wants it no more (RFC 9110, section 15.5.11)."""
        return self.status == GONE
