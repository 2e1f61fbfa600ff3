"""Splits a router's cap over its threads by measured need; pure."""

from collections.abc import Sequence

_HUNGRY = 0.9  # a thread that used this much of its share may need more
_GROWTH = 2.0  # corrects a wrong share in two or three steps
_MARGIN = 1.25  # applied to the usage of a thread that does not use up its share
_WORTH = 0.05  # minimum gain, as a fraction of a hungry thread's share or of the whole cap


def split(
    cap: float,
    usages: Sequence[float],
    previous: Sequence[float],
    floor: float,
    ceiling: float = 1.0,
) -> list[float]:
    """Return each thread's share of the cap, in fractions of one CPU.

    A thread that used less than 90 % of its previous share needs its usage plus a margin; a hungry
    one may double. Needs are met from the smallest up (max-min fairness). The rest goes to all
    threads in proportion, so that the shares add up to the cap (if ``cap`` is at most ``ceiling``
    times the threads). It is not split equally, or among hungry threads only: a busy thread with a
    bursty budget may seem idle for a while, and would lose its unused share to a thread with an
    occasional packet. Each gets at least the floor, or an equal share of a cap that is too small
    for the floor.
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
    """Whether new shares of the same cap are worth it that the kernel restarts the budgets.

    Ten restarts a second cost a router 2 % of its packets. They are worth it where a hungry thread
    gets more, or where much of the cap goes to another thread.
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
    """Divide a total by max-min fairness: no share exceeds what is wanted.

    This is water filling: shares that want less than an equal part of the rest get all they want,
    the others get the same level.
    """
    given = [0.0] * len(wants)
    left = max(0.0, total)
    by_want = sorted(range(len(wants)), key=wants.__getitem__)
    for served, index in enumerate(by_want):
        given[index] = min(wants[index], left / (len(wants) - served))
        left -= given[index]
    return given
