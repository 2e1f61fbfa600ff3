"""Why a value of ours is worse than the paper's, as far as it was measured."""

from typing import Final

UNKNOWN: Final = "The reason is not known yet."
REASONS: Final[dict[tuple[str, str], str]] = {}
"""By experiment and metric."""


def reason(experiment: str, metric: str) -> str:
    """Return the reason for a metric of an experiment (its name without the point)."""
    return REASONS.get((experiment, metric), UNKNOWN)
