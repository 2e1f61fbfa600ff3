"""Why a value of ours is worse than the paper's, as far as it was measured."""

from typing import Final

SHIELD_AND_TCP: Final = (
    "With TCP: the flow sends until the burst is used up, loses much of a window, and waits for "
    "its retransmission timer of at least 0.2 s, which is as long as the default burst. With a "
    "burst of 0.4 s, measured next to it, the setpoint is held."
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
