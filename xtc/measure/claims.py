"""Finds interfaces that several routers claim, since traffic must count for one router only."""

from collections.abc import Iterable, Mapping

from common.errors import ConfigError
from xtc.measure.collector import Binding, Claims

SHOWN = 3
"""Maximum interfaces named in one message."""
_FIX = "name each interface for one router: one that two routers claim counts for neither"

Contested = Mapping[str, tuple[str, ...]]
"""Interface or pattern, and the routers that claim it."""


def contested(bindings: Mapping[str, Binding], present: Iterable[str]) -> Contested:
    """Return the claims of several routers to one interface.

    Args:
        bindings: how to recognise the interfaces of each router.
        present: the existing interfaces. Names and globs are judged without them: a name that
            matches another router's glob conflicts as soon as its interface exists.
    """
    claims = Claims(bindings)
    names = set(present)
    for binding in bindings.values():
        names.update(binding.patterns)  # a glob matches an equal glob as if it were a name
        if binding.domid is not None:
            names.add(f"vif{binding.domid}.0")
    owners = {name: set(claims.owners(name)) for name in sorted(names)}
    return {
        name: tuple(router for router in bindings if router in routers)
        for name, routers in owners.items()
        if len(routers) > 1
    }


def added(before: Contested, after: Contested) -> Contested:
    """Return the claims that conflict after a change but did not before."""
    return {
        name: routers
        for name, routers in after.items()
        if not set(routers) <= set(before.get(name, ()))
    }


def claim_mistakes(found: Contested, bindings: Mapping[str, Binding]) -> list[ConfigError]:
    """Return a mistake for each group of routers that claim the same interfaces."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, routers in found.items():
        groups.setdefault(routers, []).append(name)
    return [_mistake(routers, names, bindings) for routers, names in groups.items()]


def _mistake(
    routers: tuple[str, ...], names: list[str], bindings: Mapping[str, Binding]
) -> ConfigError:
    *others, router = routers
    key = "interfaces" if bindings[router].patterns else "domid"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    claimants = " and ".join(f"router.{other}" for other in others)
    verb = "claims" if len(others) == 1 else "claim"
    problem = f"{claimants} {verb} {', '.join(names[:SHOWN])}{more} too"
    return ConfigError(f"router.{router}.{key}", problem, _FIX)
