"""Where a cap goes on this host, however the configuration writes it.

Two actuators conflict where their places share a spot: the second would take the first's cap for
what stood there before xtc. Paths are compared by device and inode, so that `/a`, `/a/`, a symbolic
link, another mount and `/proc/<pid>/ns/net` are the same place. What does not exist yet has no
inode; its path is compared, with the symbolic links of the part that exists resolved.

A configuration is therefore checked when it is read. Places can come to coincide later: two names
under which nothing existed are given to one control group or namespace. `place_of` tells so when
asked again, once the actuator has opened: the path exists by then, and another router's actuator
that is open holds a place with the same spot.
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
"""One thing that bears one cap: a control group, an interface of a namespace, a domain."""
Place = frozenset[Spot]
"""All the spots that the caps of one actuator go to."""

_UUID = re.compile(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
DEFAULT_URI = "LIBVIRT_DEFAULT_URI"
"""The variable by which libvirt knows the hypervisor that is not named."""

PlaceOf = Callable[[ActuatorSpec], "Place"]
UuidOf = Callable[[LibvirtSpec], str | None]
"""Finds the UUID of a domain; None where no hypervisor has told."""


def place_of(spec: ActuatorSpec, find: Finder = finder, uuid_of: UuidOf = lambda _: None) -> Place:
    """Return the place that a specification names on this host, now.

    A container that does not run is compared by its name.

    A domain is compared by what is written, its name or its UUID, and by the UUID that its
    hypervisor tells: only libvirt knows that a name and a UUID are one domain's. An interface of a
    namespace is a spot of its own: two routers may share a namespace, but no interface in it.
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
    """Whether an original is all that a router's cap will change, however its place is written.

    Args:
        spec: where the router's cap goes.
        left: where the original was captured.
        original: what stood there; it tells the UUID of a domain.
        place: returns the place that the router's specification names now.
    """
    if spec == left:
        return True
    if _scope(spec) != _scope(left):
        return False  # other parameters of the domain are capped, which were not captured
    here, there = place(spec), captured_at(left, original)
    return there == here if isinstance(left, DeadlineSpec) else bool(there & here)


def captured_at(spec: ActuatorSpec, original: Original) -> Place:
    """Return the place of an original, with the UUID that it tells of a domain."""
    uuid = original.uuid if isinstance(original, LibvirtOriginal) else None
    return place_of(spec, uuid_of=lambda _: uuid)


def _scope(spec: ActuatorSpec) -> str:
    return spec.scope if isinstance(spec, LibvirtSpec) else ""


def _resolved(spec: ActuatorSpec, find: Finder) -> ActuatorSpec:
    try:
        return find.resolve(spec)
    except ActuatorError:
        return spec  # it does not run


def _object(path: str) -> Spot:
    """Return device and inode of what a path leads to; the resolved path where that fails."""
    if path.startswith(CONTAINER):
        return (path,)
    try:
        found = Path(path).stat()
    except (OSError, ValueError):  # ValueError: a null byte
        return ("path", os.path.realpath(path) if "\0" not in path else path)
    return ("inode", str(found.st_dev), str(found.st_ino))


def _domain(spec: LibvirtSpec, uuid: str | None) -> Iterator[Spot]:
    """Yield a domain by its UUID, which no other has, and by its name at its hypervisor."""
    if uuid is not None:
        yield ("domain", uuid.lower())
    if _UUID.match(spec.domain):
        yield ("domain", spec.domain.lower())
    else:
        yield ("domain", spec.uri or os.environ.get(DEFAULT_URI, ""), spec.domain)
