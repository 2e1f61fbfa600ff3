"""Why a value of ours is worse than the paper's, as far as it was measured."""

from typing import Final

UNKNOWN: Final = "The reason is not known yet."
REASONS: Final[dict[tuple[str, str], str]] = {
    ("xco-mix", "goodput, % of the link"): (
        "The paper says about 1 Gb/s. Goodput is payload here: the headers of full TCP frames take "
        "4.4 % of the link (1448 of 1514 bytes are payload)."
    ),
}
"""By experiment and metric."""


def reason(experiment: str, metric: str) -> str:
    """Return the reason for a metric of an experiment (its name without the point)."""
    return REASONS.get((experiment, metric), UNKNOWN)
