"""Splits a router's cap over its threads by what each was seen to need; pure."""

from collections.abc import Sequence

_HUNGRY = 0.9  # a thread that used this much of its share may need more
_GROWTH = 2.0  # so much more that a wrong share is mended in two or three steps
_MARGIN = 1.25  # what one that does not use up its share gets above its use
_WORTH = 0.05  # of a hungry thread's share, or of the whole cap


def split(
    cap: float,
    usages: Sequence[float],
    previous: Sequence[float],
    floor: float,
    ceiling: float = 1.0,
) -> list[float]:
    """Return each thread's share of the cap, in fractions of one CPU.

    A thread that used less than 90 % of its previous share needs what it used and a margin; a
    hungry one may double. Needs are met from the smallest up (max-min fairness). What is left
    goes to all in proportion to that, so that the shares add up to the cap: all of it if ``cap``
    is at most ``ceiling`` times the threads. Proportion, since a busy thread whose budget comes
    in bursts may seem idle for a while: with equal parts, or all to the hungry, it would lose
    what it did not use to a thread with a packet now and then. Each gets at least the floor, or
    an equal share of a cap that is too small for that.
    """
    if not usages:
        return []
    total = min(cap, ceiling * len(usages))
    hungry = _hungry(usages, previous)
    needs = [
        min(max(share * _GROWTH if more else used * _MARGIN, floor), ceiling)
        for used, share, more in zip(usages, previous, hungry, strict=True)
    ]
    return _stretch(fill(total, needs), total, ceiling)


def is_worth(shares: Sequence[float], usages: Sequence[float], previous: Sequence[float]) -> bool:
    """Whether other shares of the same cap are worth that the kernel begins the budgets anew.

    That costs a router 2 % of its packets where it is done ten times a second. It is worth it where
    a hungry thread gets more, or where much of the cap goes to another thread.
    """
    much = _WORTH * sum(previous)
    for new, old, hungry in zip(shares, previous, _hungry(usages, previous), strict=True):
        if abs(new - old) > much or (hungry and new > (1 + _WORTH) * old):
            return True
    return False


def _hungry(usages: Sequence[float], previous: Sequence[float]) -> list[bool]:
    return [used >= _HUNGRY * share for used, share in zip(usages, previous, strict=True)]


def _stretch(shares: Sequence[float], total: float, ceiling: float) -> list[float]:
    """Multiply the shares by one factor, each up to the ceiling, so that they add up."""
    stretched = list(shares)
    left, weight = total, sum(shares)
    for index in sorted(range(len(shares)), key=shares.__getitem__, reverse=True):
        if weight > 0:
            stretched[index] = min(ceiling, left * shares[index] / weight)
        left, weight = left - stretched[index], weight - shares[index]
    return stretched


def fill(total: float, wants: Sequence[float]) -> list[float]:
    """Share out a total so that nobody gets more than wanted and the least served gets the most.

    This is water filling: those who want less than an equal part of what is left get all they
    want, the others the same level.
    """
    given = [0.0] * len(wants)
    left = max(0.0, total)
    by_want = sorted(range(len(wants)), key=wants.__getitem__)
    for served, index in enumerate(by_want):
        given[index] = min(wants[index], left / (len(wants) - served))
        left -= given[index]
    return given
