"""The place of a cap on this host, independent of its notation in the configuration.

Two actuators conflict where their places share a spot: the second would capture the first's cap as
the original. Paths are compared by device and inode, so that `/a`, `/a/`, a symbolic link, another
mount and `/proc/<pid>/ns/net` are the same place. A path that does not exist yet has no inode; the
path is compared, with the symbolic links of its existing part resolved.

A configuration is therefore checked when it is read. Places can coincide later: one control group
or namespace gets two names that did not exist before. Calling `place_of` again after the actuator
has opened detects this: the path exists by then, and another router's open actuator holds a place
with the same spot.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import assert_never

from xtc.actuator.containers import Finder, finder
from xtc.errors import ActuatorError
from xtc.spec import (
    CONTAINER,
    ActuatorSpec,
    CgroupSpec,
    DeadlineSpec,
    LibvirtOriginal,
    LibvirtSpec,
    Original,
    SimulatedSpec,
)

Spot = tuple[str, ...]
"""One object that carries one cap: a control group, an interface of a namespace, a domain."""
Place = frozenset[Spot]
"""All spots that one actuator caps."""

_UUID = re.compile(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
DEFAULT_URI = "LIBVIRT_DEFAULT_URI"
"""The variable with which libvirt selects the default hypervisor."""

PlaceOf = Callable[[ActuatorSpec], "Place"]
UuidOf = Callable[[LibvirtSpec], str | None]
"""Finds the UUID of a domain; None where no hypervisor has reported it."""


def place_of(spec: ActuatorSpec, find: Finder = finder, uuid_of: UuidOf = lambda _: None) -> Place:
    """Return the place that a specification names on this host, now.

    A stopped container is compared by its name.

    A domain is compared by its configured name or UUID, and by the UUID that its hypervisor
    reports: only libvirt knows that a name and a UUID belong to one domain. An interface of a
    namespace is a separate spot: two routers may share a namespace, but no interface in it.
    """
    match _resolved(spec, find):
        case CgroupSpec() as spec:
            return frozenset({("cgroup", *_object(spec.path))})
        case DeadlineSpec() as spec:
            netns = _object(spec.netns)
            return frozenset(("interface", *netns, name) for name in spec.interfaces)
        case LibvirtSpec() as spec:
            return frozenset(_domain(spec, uuid_of(spec)))
        case SimulatedSpec() as spec:
            return frozenset({("plant", spec.plant)})
        case never:
            assert_never(never)


def takes_over(
    spec: ActuatorSpec, left: ActuatorSpec, original: Original, place: PlaceOf = place_of
) -> bool:
    """Whether an original covers all that a router's cap will change, in any notation of its place.

    Args:
        spec: of the router's actuator.
        left: where the original was captured.
        original: what was captured, with the UUID of a domain.
        place: returns the place that the router's specification names now.
    """
    if spec == left:
        return True
    if _scope(spec) != _scope(left):
        return False  # other parameters of the domain are capped, which the original lacks
    here, there = place(spec), captured_at(left, original)
    return there == here if isinstance(left, DeadlineSpec) else bool(there & here)


def captured_at(spec: ActuatorSpec, original: Original) -> Place:
    """Return the place of an original, with the UUID that it contains for a domain."""
    uuid = original.uuid if isinstance(original, LibvirtOriginal) else None
    return place_of(spec, uuid_of=lambda _: uuid)


def _scope(spec: ActuatorSpec) -> str:
    return spec.scope if isinstance(spec, LibvirtSpec) else ""


def _resolved(spec: ActuatorSpec, find: Finder) -> ActuatorSpec:
    try:
        return find.resolve(spec)
    except ActuatorError:
        return spec  # it is stopped


def _object(path: str) -> Spot:
    """Return device and inode of a path's target; the resolved path where that fails."""
    if path.startswith(CONTAINER):
        return (path,)
    try:
        found = Path(path).stat()
    except (OSError, ValueError):  # ValueError: a null byte
        return ("path", os.path.realpath(path) if "\0" not in path else path)
    return ("inode", str(found.st_dev), str(found.st_ino))


def _domain(spec: LibvirtSpec, uuid: str | None) -> Iterator[Spot]:
    """Yield a domain by its UUID, which is unique, and by its name at its hypervisor."""
    if uuid is not None:
        yield ("domain", uuid.lower())
    if _UUID.match(spec.domain):
        yield ("domain", spec.domain.lower())
    else:
        yield ("domain", spec.uri or os.environ.get(DEFAULT_URI, ""), spec.domain)
