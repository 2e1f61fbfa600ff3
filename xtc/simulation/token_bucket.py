"""A token bucket as a pure function: what a shield lets by, in a model of one."""


def passed(
    level: float, rate: float, depth: float, arrived: float, dt: float
) -> tuple[float, float]:
    """Return the level after a step, and how much of what arrived in it the bucket let by.

    Args:
        level: what the bucket held before, at most its depth; full, it lets that by at once.
        rate: what it gains a second.
        depth: what it holds at most.
        arrived: what arrived, evenly over the step.
        dt: the step's length in seconds.
    """
    there = min(level, depth) + rate * dt
    let_by = min(arrived, there)
    return min(depth, there - let_by), let_by
