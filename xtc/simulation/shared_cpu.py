"""Division of a simulated host's CPU among routers, as by a fair scheduler; pure."""

from collections.abc import Mapping


def fair_shares(needs: Mapping[str, float], cpus: float) -> dict[str, float]:
    """Return the share of each router: its need, or an equal part of the rest.

    This is max-min fairness (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2), which
    the kernel's fair scheduler gives tasks of the same weight.

    Args:
        needs: CPUs that each router could use.
        cpus: CPUs for all of them together.
    """
    given = dict.fromkeys(needs, 0.0)
    left = max(0.0, cpus)
    for turn, name in enumerate(sorted(needs, key=needs.__getitem__)):
        given[name] = min(needs[name], left / (len(needs) - turn))
        left -= given[name]
    return given
