"""Finds doubtful settings of a configuration on this host, from facts that were read before."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from common.errors import ConfigError
from common.units import format_cap
from xtc.config.floor_check import unbacked
from xtc.config.host_facts import HostFacts, Inside, Trouble
from xtc.config.plan import RouterPlan
from xtc.measure.claims import claim_mistakes, contested
from xtc.measure.collector import Claims, Side, is_glob
from xtc.spec import CgroupSpec, DeadlineSpec, LibvirtSpec, SimulatedSpec

ONE_INTERFACE = "name the others too, or set one_interface = true"
_LIST = "`ip -br link` shows those that are there"
_CAPS = "100% is one CPU; a cap of 5 is 500%"


def check_host(plans: Mapping[str, RouterPlan], facts: HostFacts) -> tuple[ConfigError, ...]:
    """Return doubtful settings of the routers of a configuration on a host.

    They do not prevent the daemon's start: one router's problem must not stop the others, and
    missing objects may appear later.
    """
    bindings = {name: plan.binding for name, plan in plans.items()}
    owned = owned_interfaces(plans, facts)
    each = [
        warning
        for name, plan in plans.items()
        for check in (_bounds, _place, _matches, _directions)
        for warning in check(plan, facts, owned[name])
    ]
    claims = claim_mistakes(contested(bindings, facts.present or ()), bindings)
    return (*claims, *each, *unbacked(plans, facts.cpus))


def owned_interfaces(
    plans: Mapping[str, RouterPlan], facts: HostFacts
) -> dict[str, frozenset[str]]:
    """Return the existing interfaces that each router claims."""
    claims = Claims({name: plan.binding for name, plan in plans.items()})
    owned: dict[str, set[str]] = {name: set() for name in plans}
    for interface in facts.present or ():
        for name in claims.owners(interface):
            owned[name].add(interface)
    return {name: frozenset(found) for name, found in owned.items()}


def _bounds(plan: RouterPlan, facts: HostFacts, _: frozenset[str]) -> Iterator[ConfigError]:
    """Yield implausible caps."""
    where, cpus = f"router.{plan.name}", facts.cpus
    for key, cap in (("floor", plan.floor), ("safe_cap", plan.safe_cap)):
        if cap is not None and cap > cpus:
            problem = f"{format_cap(cap)} is more than the {cpus} CPUs of this host"
            yield ConfigError(f"{where}.{key}", problem, _CAPS)
    if plan.safe_cap is None:
        return
    if plan.floor is not None and plan.safe_cap < plan.floor:
        problem = f"{format_cap(plan.safe_cap)} is below the floor, {format_cap(plan.floor)}"
        yield ConfigError(f"{where}.safe_cap", problem, "raise it, or lower the floor")
    if plan.ceiling is not None and plan.safe_cap > plan.ceiling:
        problem = f"{format_cap(plan.safe_cap)} is above the ceiling, {format_cap(plan.ceiling)}"
        yield ConfigError(f"{where}.safe_cap", problem, "lower it, or raise the ceiling")


def _place(plan: RouterPlan, facts: HostFacts, _: frozenset[str]) -> Iterator[ConfigError]:
    """Yield problems with the place of the cap."""
    where, spec = f"router.{plan.name}.actuator", plan.spec
    if isinstance(spec, CgroupSpec):
        if trouble := facts.groups.get(spec.path):
            yield _told(f"{where}.path", spec.path, trouble)
    elif isinstance(spec, DeadlineSpec):
        inside = facts.namespaces.get(spec.netns)
        if isinstance(inside, Trouble):
            yield _told(f"{where}.netns", spec.netns, inside)
        elif inside is not None:
            yield from _inner(f"{where}.interfaces", spec, inside)


def _told(where: str, target: str, trouble: Trouble) -> ConfigError:
    return ConfigError(where, f"{target}: {trouble.problem}", trouble.fix)


def _inner(where: str, spec: DeadlineSpec, inside: Inside) -> Iterator[ConfigError]:
    missing = [name for name in spec.interfaces if name not in inside.ends]
    if missing:
        there = ", ".join(sorted(inside.ends)) or "none but the loopback"
        yield ConfigError(where, f"{', '.join(missing)}: not in {spec.netns}", f"there is {there}")


def _matches(plan: RouterPlan, facts: HostFacts, _: frozenset[str]) -> Iterator[ConfigError]:
    """Yield the patterns that no interface matches."""
    if facts.present is None:
        return
    for pattern in plan.binding.patterns:
        if not any(fnmatchcase(name, pattern) for name in facts.present):
            problem = (
                f"no interface matches {pattern}" if is_glob(pattern) else f"there is no {pattern}"
            )
            yield ConfigError(f"router.{plan.name}.interfaces", problem, _LIST)


def _directions(plan: RouterPlan, facts: HostFacts, owned: frozenset[str]) -> Iterator[ConfigError]:
    """Yield directions that cannot be seen: packets leave through an uncounted interface."""
    if isinstance(plan.spec, SimulatedSpec) or plan.one_interface or not owned:
        return
    uncounted = _uncounted_ends(plan, facts, owned)
    if uncounted:
        problem = f"what leaves by {', '.join(uncounted)} is not counted"
        yield ConfigError(f"router.{plan.name}.interfaces", problem, ONE_INTERFACE)
    elif len(owned) == 1 and not _has_one(plan, facts):
        (name,) = owned
        problem = (
            f"only {name} is counted, and packets that leave by another interface are not counted"
        )
        yield ConfigError(f"router.{plan.name}.interfaces", problem, ONE_INTERFACE)


def _uncounted_ends(plan: RouterPlan, facts: HostFacts, owned: frozenset[str]) -> list[str]:
    """Return the host's ends of the router's own interfaces that it does not claim."""
    if not isinstance(plan.spec, DeadlineSpec) or plan.binding.side is not Side.HOST:
        return []
    inside = facts.namespaces.get(plan.spec.netns)
    if not isinstance(inside, Inside):
        return []
    ends = [inside.ends.get(name) for name in plan.spec.interfaces]
    return [end for end in ends if end is not None and end not in owned]


def _has_one(plan: RouterPlan, facts: HostFacts) -> bool:
    """Whether the router has only one interface, as far as is known."""
    if isinstance(plan.spec, LibvirtSpec):
        return plan.domain is not None
    if not isinstance(plan.spec, DeadlineSpec):
        return False
    inside = facts.namespaces.get(plan.spec.netns)
    return isinstance(inside, Inside) and len(inside.ends) == 1
