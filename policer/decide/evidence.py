"""Whether a router misbehaves: k of the last n rounds that may count as evidence; pure."""

from dataclasses import dataclass

import msgspec


class Observation(msgspec.Struct, frozen=True, gc=False):
    """What one round saw of one router."""

    offered_pps: float | None
    """None where the meter could not say."""
    due_pps: float
    """What it may be sent: the higher of its setpoint and its fair share."""
    healthy: bool
    """Whether the meter is in order, and the host believed."""
    saturated: bool = False
    """Whether the host's own CPU was used up, so that its counters tell of the host."""
    held: bool = True
    """Whether its loop is closed and settled: only then has it been told what is due."""
    limited_pps: float | None = None
    """What the host sends into it at most; the rest may be out of the meter's sight."""
    at: float = 0.0
    """Seconds of the policer's clock."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as misbehaviour, and what as its end."""

    excess: float = 2.0
    """Offered load of so many times what is due is excessive."""
    decent: float = 1.5
    """Below this many times it is decent again; what lies between says neither."""
    rounds: int = 5
    """n: how many rounds of evidence are looked at."""
    needed: int = 4
    """k: so many of them decide."""
    gap_s: float = 10.0
    """Rounds that lie further apart than this do not count together."""


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """The last rounds that count, the latest last; and the verdict, which stands till reversed."""

    rounds: tuple[bool | None, ...] = ()
    """True is excessive, False decent, None neither."""
    guilty: bool = False
    at: float | None = None
    """When the last round was that counts."""
    excess_at: float | None = None
    """When the last excessive one was."""


FILLS = 0.95
"""A limit that is used to this share may hide a flood."""


def admissible(seen: Observation) -> bool:
    """Whether a round may count: never on blind intervals, nor where the host was saturated."""
    return seen.healthy and not seen.saturated and seen.offered_pps is not None


def mark(seen: Observation, rules: Rules) -> bool | None:
    """Return what one round says by itself: True excessive, False decent, None neither."""
    if seen.offered_pps is None or not admissible(seen):
        return None
    ratio = seen.offered_pps / max(seen.due_pps, 1.0)
    if ratio > rules.excess:
        return True
    hidden = seen.limited_pps is not None and seen.offered_pps >= FILLS * seen.limited_pps
    return False if ratio < rules.decent and not hidden else None


def weigh(evidence: Evidence, seen: Observation, rules: Rules) -> Evidence:
    """Return the evidence with one more round; one that does not count changes nothing.

    Excess counts only of a router that is held: one that is not was never told what it is due.
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
    """Whether the last rounds, up to this one, prove a router guilty by themselves."""
    return evidence.excess_at == now and evidence.rounds.count(True) >= rules.needed
