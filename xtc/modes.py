"""Modes and findings that a loop reports."""

from enum import Enum


class Mode(Enum):
    """The loop's position on the ladder; `manual` is an operator's pause."""

    CLOSED_LOOP = "closed_loop"
    HOLD = "hold"
    DEGRADED = "degraded"
    RELEASED = "released"
    MANUAL = "manual"


class Finding(Enum):
    """An observation of a loop, for people and metrics."""

    NONE = "none"
    SETTLING = "settling"
    NOT_BINDING = "not_binding"
    STARVED = "starved"
    """It forwards less than wanted, but not because of its cap: its CPU is contended."""
    MODEL_STALE = "model_stale"
    """It is held with a CPU share that differs from its model (`xtc.control.stale_model`)."""
    AT_FLOOR = "at_floor"
    AT_CEILING = "at_ceiling"
    UNRESPONSIVE = "unresponsive"
    BLIND = "blind"
    LEASE_ENDED = "lease_ended"
    FOREIGN = "foreign"
    """Another process keeps changing the cap; xtc leaves it alone."""
    GONE = "gone"
    """The router's cgroup, threads or domain no longer exist."""
