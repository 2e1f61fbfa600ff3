"""The operating range of each law: the smallest setpoint that it holds, with all larger ones."""

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.evaluation.result import Result

SMALLEST = "smallest setpoint held, kp/s"
WITHIN = 10.0
"""Percent of the setpoint: the dead zone of the paper's laws."""


def smallest_held(errors: Iterable[tuple[float, float]]) -> float | None:
    """Return the smallest setpoint that is held, from setpoints and errors in percent.

    None: the largest one is not held, or there is none.
    """
    found = None
    for setpoint, error in sorted(errors, reverse=True):
        if error > WITHIN:
            break
        found = setpoint
    return found


def ranges(
    errors: Sequence[tuple[str, float, Result]], published: dict[tuple[str, str], float]
) -> Iterator[Result]:
    """Yield the range of each way for each traffic.

    Args:
        errors: traffic, setpoint in the paper's kp/s, and the result that has the error.
        published: the paper's ranges, by way and traffic.
    """
    for way, traffic in dict.fromkeys((one.way, traffic) for traffic, _, one in errors):
        mine = [(s, one) for t, s, one in errors if (one.way, t) == (way, traffic)]
        smallest = smallest_held((setpoint, one.value) for setpoint, one in mine)
        if smallest is not None and len(mine) > 1:
            yield Result(
                paper=mine[0][1].paper,
                experiment=f"{mine[0][1].experiment.partition(':')[0]}: {traffic}",
                way=way,
                metric=SMALLEST,
                value=smallest,
                low=None,
                high=None,
                paper_value=published.get((way, traffic)),
            )
