"""SDN-GCC: a controller reads the marks of switch ports, and tells the sources to slow down. Pure.

SDN-GCC, section VII, Algorithms 3 and 4, with the errata that decision 0073 settles. Time is a
parameter, in seconds; rates are in bits/s.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

INACTIVITY_S = 1.0
"""To: a VM that sent nothing for this time gives its share back."""


@dataclass(frozen=True, slots=True)
class Source:
    """A virtual port of the shim (Table II)."""

    R: float
    """Its rate, bits/s."""
    sent_time: float
    cong_time: float = float("-inf")
    """When congestion was reported last."""


def notified(source: Source, m: float, now: float, unit_bps: float, t_i_s: float) -> Source:
    """Return the source after a report of its marks in a monitoring period.

    Algorithm 3, lines 11 to 19. The paper multiplies marks per second by a rate; the unit is one
    period here, so that m marks in every period take m units a period. As published, the first
    report after a long calm takes almost nothing: its marks are spread over that time.

    Args:
        source: the virtual port.
        m: its marks, by the controller.
        now: seconds.
        unit_bps: one packet a round trip (`xco.laws.hygenicc.scale`).
        t_i_s: Ti, the monitoring period.
    """
    if m <= 0:
        return source
    elapsed = max(t_i_s, now - source.cong_time)
    return replace(source, R=source.R - m * t_i_s / elapsed * unit_bps, cong_time=now)


def updated(
    source: Source, now: float, share_bps: float, unit_bps: float, t_c_s: float
) -> Source | None:
    """Return the source after the shim's timer; None where it is inactive, and its share is free.

    Algorithm 3, lines 23 to 33: without congestion for Tc, the rate rises by one unit up to the
    share of the NIC. The paper has it rise while congestion *is* detected.
    """
    if now - source.sent_time >= INACTIVITY_S:
        return None
    calm = now - source.cong_time >= t_c_s
    return replace(source, R=min(share_bps, source.R + unit_bps)) if calm else source


def bounded(source: Source, r_min_bps: float) -> Source:
    """Return the source with at least the rate that the operator guarantees (Rmin)."""
    return replace(source, R=max(r_min_bps, source.R))


def new_marks(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Return the marks of each port in a period (alpha), from its counter before and now.

    Algorithm 4, line 10. The paper subtracts the other way round. A counter that fell was
    restarted: what it has counted since is new.
    """
    return {
        port: count - before.get(port, 0) if count >= before.get(port, 0) else count
        for port, count in now.items()
    }


def shares(alpha: int, sources: Collection[str]) -> dict[str, float]:
    """Return each source's marks (m) of a port: as published, all contribute equally.

    Algorithm 4, lines 12 to 22; beta is the number of sources, counted afresh for each port.
    """
    return {source: alpha / len(sources) for source in sources} if alpha > 0 else {}


def shares_by_bytes(alpha: int, sent: Mapping[str, float]) -> dict[str, float]:
    """Return each source's marks (m) of a port in proportion to what it sent.

    Not published: with equal marks all rates fall and rise by the same, so that a newcomer keeps
    its lead. In proportion, they fall as in AIMD, which converges to equal rates (Chiu and Jain,
    1989).
    """
    total = sum(sent.values())
    if alpha <= 0 or total <= 0:
        return {}
    return {source: alpha * count / total for source, count in sent.items() if count > 0}


def sources_through(
    port: str, route: Mapping[str, str], pairs: Sequence[tuple[str, str]]
) -> set[str]:
    """Return the sources of the pairs (source, destination) whose destination is behind a port.

    Algorithm 4, lines 2 to 5 and 12 to 14: the paper stores the destination of a source where it
    reads the sources of a destination.

    Args:
        port: the congested port.
        route: the port towards each destination.
        pairs: seen by packets of new pairs.
    """
    return {source for source, destination in pairs if route.get(destination) == port}
