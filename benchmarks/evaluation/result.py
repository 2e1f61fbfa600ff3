"""Results of the evaluation: one metric of one way in one experiment, next to the paper's value."""

from dataclasses import asdict, dataclass
from typing import Literal

Direction = Literal["higher", "lower"]
"""Which values of a metric are better."""


@dataclass(frozen=True, slots=True)
class Value:
    """One metric of one run."""

    way: str
    point: str
    """Conditions of the run, such as the setpoint."""
    metric: str
    """With its unit."""
    value: float


@dataclass(frozen=True, slots=True)
class Result:
    """One metric over all repetitions; the fields are those of results.json."""

    paper: str
    experiment: str
    """The experiment's name and the point."""
    way: str
    metric: str
    value: float
    """The mean of the repetitions."""
    low: float | None
    """The bounds of its 95 % interval; None: one repetition has no interval."""
    high: float | None
    paper_value: float | None
    """None: the paper has no number for it."""

    def to_json(self) -> dict[str, str | float | None]:
        """Return the fields by name."""
        return asdict(self)


Judgement = Literal["better", "worse", "equal"]


def judged(result: Result, direction: Direction) -> Judgement | None:
    """Compare a result with the paper's value; None if there is nothing to compare.

    It is better or worse only if its whole interval is.
    """
    paper = result.paper_value
    if paper is None:
        return None
    low = result.value if result.low is None else result.low
    high = result.value if result.high is None else result.high
    if direction == "lower":
        low, high, paper = -high, -low, -paper
    if low > paper:
        return "better"
    return "worse" if high < paper else "equal"
