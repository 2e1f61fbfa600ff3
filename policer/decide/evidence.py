"""Whether a router misbehaves: k of the last n rounds that count as evidence; pure."""

from dataclasses import dataclass

import msgspec


class Observation(msgspec.Struct, frozen=True, gc=False):
    """Measurements of one router in one round."""

    offered_pps: float | None
    """None if the meter had no value."""
    due_pps: float
    """What may be sent to it: the higher of its setpoint and its fair share."""
    healthy: bool
    """Whether the meter works and the host's telemetry is believed."""
    saturated: bool = False
    """Whether the host's own CPU was used up: then the counters describe the host, not the
    router."""
    held: bool = True
    """Whether its loop is closed and settled: only then was the limit really in force."""
    limited_pps: float | None = None
    """The most that the host sends into it; the meter may not see the rest."""
    at: float = 0.0
    """Seconds of the policer's clock."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Thresholds at which misbehaviour begins and ends."""

    excess: float = 2.0
    """An offered load of more than this many times the due rate is excessive."""
    acceptable: float = 1.5
    """Below this many times the due rate it is compliant again; between the two it is neither."""
    rounds: int = 5
    """n: number of rounds in the window."""
    needed: int = 4
    """k: rounds in the window that decide."""
    gap_s: float = 10.0
    """Rounds that are further apart than this do not count together."""


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """The last rounds that count, the latest last, and the decision, valid until reversed."""

    rounds: tuple[bool | None, ...] = ()
    """True is excessive, False compliant, None neither."""
    guilty: bool = False
    at: float | None = None
    """When the last counted round was."""
    excess_at: float | None = None
    """When the last excessive round was."""


FILLS = 0.95
"""A limit that is used to this share may hide a flood."""


def admissible(seen: Observation) -> bool:
    """Whether a round may count: not without a meter, and not if the host was saturated."""
    return seen.healthy and not seen.saturated and seen.offered_pps is not None


def mark(seen: Observation, rules: Rules) -> bool | None:
    """Classify one round by itself: True excessive, False compliant, None neither."""
    if seen.offered_pps is None or not admissible(seen):
        return None
    ratio = seen.offered_pps / max(seen.due_pps, 1.0)
    if ratio > rules.excess:
        return True
    hidden = seen.limited_pps is not None and seen.offered_pps >= FILLS * seen.limited_pps
    return False if ratio < rules.acceptable and not hidden else None


def weigh(evidence: Evidence, seen: Observation, rules: Rules) -> Evidence:
    """Return the evidence with one more round; one that does not count changes nothing.

    Excess counts only for a router that is held: no limit was in force for others.
    """
    said = mark(seen, rules)
    if not admissible(seen) or (said is not False and not seen.held):
        return evidence
    together = evidence.at is not None and seen.at - evidence.at <= rules.gap_s
    rounds = (*(evidence.rounds if together else ()), said)[-rules.rounds :]
    against, for_it = rounds.count(True), rounds.count(False)
    return Evidence(
        rounds=rounds,
        guilty=against >= rules.needed or (evidence.guilty and for_it < rules.needed),
        at=seen.at,
        excess_at=seen.at if said else evidence.excess_at,
    )


def proven(evidence: Evidence, now: float, rules: Rules) -> bool:
    """Whether the last rounds, up to this one, prove by themselves that a router is guilty."""
    return evidence.excess_at == now and evidence.rounds.count(True) >= rules.needed
