"""Modes and findings: what a loop reports of itself."""

from enum import Enum


class Mode(Enum):
    """Where on the ladder a loop stands; `manual` is an operator's pause."""

    CLOSED_LOOP = "closed_loop"
    HOLD = "hold"
    DEGRADED = "degraded"
    RELEASED = "released"
    MANUAL = "manual"


class Finding(Enum):
    """What a loop noticed, for people and for metrics."""

    NONE = "none"
    SETTLING = "settling"
    NOT_BINDING = "not_binding"
    STARVED = "starved"
    """It forwards less than is wanted, and not because of its cap: its CPU is contended."""
    MODEL_STALE = "model_stale"
    """It is held with another share of CPU than its model says (`xtc.control.stale_model`)."""
    AT_FLOOR = "at_floor"
    AT_CEILING = "at_ceiling"
    UNRESPONSIVE = "unresponsive"
    BLIND = "blind"
    LEASE_ENDED = "lease_ended"
    FOREIGN = "foreign"
    """Somebody else keeps changing the cap; it is left to them."""
    GONE = "gone"
    """The router's cgroup, threads or domain no longer exist."""
