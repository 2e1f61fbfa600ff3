"""How many examples an expensive property draws: a part of what the profile draws of others."""

from hypothesis import settings


def part(percent: int) -> int:
    """Return so many percent of the profile's examples, at least one."""
    return max(1, settings().max_examples * percent // 100)
