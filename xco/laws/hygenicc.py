"""HyGenICC: each hypervisor sets the rates of its VMs by the marks that receivers reflect. Pure.

SDN-GCC, section V, Algorithms 1 and 2, with the errata that decision 0073 settles. Time is a
parameter, in seconds; rates are in bits/s.
"""

from dataclasses import dataclass, replace

INACTIVITY_S = 1.0
"""A flow that sent nothing for this time gives its share back (the paper's simulations)."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a sender knows of one source-destination pair (Table I)."""

    R: float
    """The rate of its VM on the NIC, bits/s."""
    senttime: float
    feedback: int = 0
    """Marks reflected since the last timer."""
    feedbacktime: float = float("-inf")
    isdetected: bool = False
    """Whether congestion was reported within the congestion timeout."""


@dataclass(frozen=True, slots=True)
class Received:
    """What a receiver knows of one source-destination pair (Table I)."""

    ecnmarks: int = 0
    """Marks that were not reflected yet."""
    feedbacksenttime: float = float("-inf")


def scale(capacity_bps: float, packet_bytes: float, rtt_s: float) -> float:
    """Return one packet a round trip, in bits/s: the unit of increase and decrease.

    The paper's example: 1000 bytes and 100 us are 80 Mb/s, 10 ms are 0.8 Mb/s (printed: 8).

    Args:
        capacity_bps: of the NIC; the unit is at most this.
        packet_bytes: of an ordinary packet.
        rtt_s: the round-trip time.
    """
    return min(capacity_bps, packet_bytes * 8 / rtt_s)


def feedback_arrived(sent: Sent, marks: int, now: float) -> Sent:
    """Take in reflected marks: of a feedback message, or one of a packet with the IPR bit.

    Algorithm 1, lines 6 to 11.
    """
    return replace(sent, feedback=sent.feedback + marks, isdetected=True, feedbacktime=now)


def timer(
    sent: Sent, now: float, share_bps: float, unit_bps: float, congestion_timeout_s: float
) -> Sent | None:
    """Return the pair after the sender's timer; None where it is inactive, and its share is free.

    Algorithm 1, lines 12 to 26. With marks, the rate falls by a unit each; without, it rises by one
    unit up to the share of the NIC's capacity.

    Args:
        sent: the pair.
        now: seconds.
        share_bps: the NIC's capacity by the number of active VMs.
        unit_bps: see `scale`.
        congestion_timeout_s: congestion that was not reported for this time is over.
    """
    if now - sent.senttime >= INACTIVITY_S:
        return None
    detected = sent.isdetected and now - sent.feedbacktime < congestion_timeout_s
    fall = sent.feedback * unit_bps if detected and sent.feedback > 0 else -unit_bps
    rate = max(0.0, min(share_bps, sent.R - fall))
    return replace(sent, R=rate, feedback=0, isdetected=detected)


def packet_arrived(
    received: Received, now: float, feedback_timeout_s: float, *, marked: bool
) -> tuple[Received, int]:
    """Return the receiver's pair after a packet, and the marks to send in a message; 0 sends none.

    Algorithm 2, lines 1 to 5: marks that found no packet on the way back for the feedback timeout
    are sent in a message of their own.
    """
    marks = received.ecnmarks + marked
    if marks == 0 or now - received.feedbacksenttime < feedback_timeout_s:
        return replace(received, ecnmarks=marks), 0
    return Received(0, now), marks


def packet_departs(received: Received, now: float) -> tuple[Received, bool]:
    """Return the pair after a packet on the way back, and whether its IPR bit reflects a mark.

    Algorithm 2, lines 6 to 8.
    """
    if received.ecnmarks < 1:
        return received, False
    return Received(received.ecnmarks - 1, now), True
