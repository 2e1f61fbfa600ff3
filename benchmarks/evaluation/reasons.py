"""Why a value of ours is worse than the paper's, as far as it was measured."""

from typing import Final

SHIELD_AND_TCP: Final = (
    "With TCP: the shield drops what exceeds the setpoint, so a single CUBIC flow backs off "
    "below it; a cap makes it wait instead. Our law by cap alone, measured next to it, holds it."
)

UNKNOWN: Final = "The reason is not known yet."
REASONS: Final[dict[tuple[str, str], str]] = {
    ("xtc-hold", "error of the mean, %"): SHIELD_AND_TCP,
    ("xtc-hold", "smallest setpoint held, kp/s"): SHIELD_AND_TCP,
    ("xco-mix", "goodput, % of the link"): (
        "The paper says about 1 Gb/s. Goodput is payload here: the headers of full TCP frames take "
        "4.4 % of the link (1448 of 1514 bytes are payload)."
    ),
}
"""By experiment and metric."""


def reason(experiment: str, metric: str) -> str:
    """Return the reason for a metric of an experiment (its name without the point)."""
    return REASONS.get((experiment, metric), UNKNOWN)
