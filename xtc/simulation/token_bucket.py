"""A token bucket as a pure function, for a model of a shield."""


def passed(
    level: float, rate: float, depth: float, arrived: float, dt: float
) -> tuple[float, float]:
    """Return the level after a step, and how much of its arrivals passed.

    Args:
        level: the tokens before, at most its depth; a full bucket passes that many immediately.
        rate: tokens gained per second.
        depth: the maximum level.
        arrived: the arrivals, evenly spread over the step.
        dt: the step's length in seconds.
    """
    there = min(level, depth) + rate * dt
    let_by = min(arrived, there)
    return min(depth, there - let_by), let_by
