"""Ladder of measures against misbehaving routers: step by step, within the contract; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Step(StrEnum):
    """The steps of the ladder, from the mildest to the hardest."""

    WARN = "warn"
    LOWER = "lower"
    """Lower its setpoint to its guarantee."""
    LIMIT = "limit"
    """Let the host drop what is sent into it beyond its setpoint."""
    PAUSE = "pause"
    """Hold it at the smallest cap."""
    STOP = "stop"
    """Disconnect it from the network."""


_HARSHNESS = {step: index for index, step in enumerate(Step)}


@dataclass(frozen=True, slots=True)
class Escalation:
    """Time that each step gets to work, in seconds."""

    climb_s: float = 10.0
    """Guilty for this time on a step leads to the next step."""
    descend_s: float = 60.0
    """Innocent for this time leads one step down."""
    unproven_s: float = 300.0
    """Guilty without new proof for this time also leads one step down: the meter may be blind."""


@dataclass(frozen=True, slots=True)
class Punishment:
    """A router's position on its ladder."""

    height: int = 0
    """Number of its contract's steps in force; 0 is none."""
    since: float = 0.0
    """When the last step was taken or `guilty` last changed; seconds of the policer's clock."""
    guilty: bool = False
    """Whether the router was guilty at that time."""
    step: Step | None = None
    """The hardest step in force; it locates the router on another contract's ladder."""
    dry: bool = False
    """Whether its steps are only reported."""


def next_punishment(
    now: float,
    standing: Punishment,
    guilty: bool,
    allowed: Sequence[Step],
    escalation: Escalation,
    *,
    proven: bool = True,
    refused: bool = False,
    proven_at: float | None = None,
) -> Punishment:
    """Return a router's position on its ladder at an instant; at most one step up or down.

    The first step is taken as soon as the router is guilty. If another contract shortens the
    ladder, the position drops immediately to what it still allows.

    Args:
        now: seconds of the policer's clock.
        standing: previous position.
        guilty: whether the router is guilty by this round.
        allowed: its contract's steps, from the mildest to the hardest.
        escalation: time of each step.
        proven: whether this round's evidence proves the guilt; without proof there is no step up.
        refused: whether the step in force was refused by the daemon: it is ordered repeatedly, and
            its time begins when the daemon accepts it.
        proven_at: when evidence last proved the guilt.
    """
    height = kept_height(standing, allowed)
    if guilty and proven and height == 0 and allowed:
        return _at(1, now, guilty, allowed)
    if guilty is not standing.guilty or height != standing.height:
        return _at(height, now, guilty, allowed)
    if guilty and refused and height > 0:
        return replace(standing, since=now, step=_step(height, allowed))
    waited = now - standing.since
    if guilty and proven and waited >= escalation.climb_s and height < len(allowed):
        return _at(height + 1, now, guilty, allowed)
    pardoned = waited >= (escalation.unproven_s if guilty else escalation.descend_s)
    unproven = proven_at is None or now - proven_at >= escalation.unproven_s
    if height > 0 and pardoned and (unproven or not guilty):
        return _at(height - 1, now, guilty, allowed)
    step = _step(height, allowed)
    return standing if standing.step is step else replace(standing, step=step)


def _at(height: int, now: float, guilty: bool, allowed: Sequence[Step]) -> Punishment:
    return Punishment(height, now, guilty, _step(height, allowed))


def _step(height: int, allowed: Sequence[Step]) -> Step | None:
    return allowed[height - 1] if height else None


def kept_height(standing: Punishment, allowed: Sequence[Step]) -> int:
    """Return how many steps of a ladder, its own or another, are no harder than its step."""
    if standing.step is None:
        return min(standing.height, len(allowed))
    hardest = _HARSHNESS[standing.step]
    return min(standing.height, sum(_HARSHNESS[step] <= hardest for step in allowed))
