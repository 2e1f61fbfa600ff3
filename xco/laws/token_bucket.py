"""The rate limiter of a VM on a NIC: a token bucket that counts bytes. Pure.

SDN-GCC, Algorithms 1 and 3, lines 2 to 8. Symbols: R is the rate, B the depth, T the tokens.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Bucket:
    """The limiter of one virtual port on one NIC; it begins full."""

    R: float
    """Bytes/s."""
    B: float
    """Bytes."""
    T: float
    """Bytes that may leave now."""
    senttime: float
    """Seconds; when tokens were last counted."""


def full(R: float, B: float, now: float) -> Bucket:  # noqa: N803  the paper's symbols
    """Return a full bucket."""
    return Bucket(R, B, B, now)


def departure(bucket: Bucket, size: float, now: float) -> tuple[Bucket, bool]:
    """Return the bucket after a packet of this size in bytes, and whether the packet may leave.

    The paper counts tokens since the last packet that was *sent*, and adds them for each packet
    that was not: a sender above its rate would gain tokens by being refused. Tokens are counted
    since the last packet here (decision 0073).
    """
    tokens = min(bucket.B, bucket.T + bucket.R * (now - bucket.senttime))
    leaves = tokens >= size
    return replace(bucket, T=tokens - size * leaves, senttime=now), leaves
