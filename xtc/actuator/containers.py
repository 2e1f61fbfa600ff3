"""Containers by name: podman, docker, LXC, LXD and systemd-nspawn, without calling any of them.

The control-group path of a container's processes contains its engine and its id or name
(cgroups(7)); podman and docker keep the name of an id in a file. So a name denotes the container
that has it now: a container that is created again is found again, with its new id, group and
namespace.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from common.clock import Clock, MonotonicClock
from common.units import Seconds
from xtc.errors import Gone, Permanent, Transient
from xtc.kernel.files import lines_of
from xtc.kernel.quota import controller_mount, unified_mount
from xtc.spec import CONTAINER, ActuatorSpec, CgroupSpec, DeadlineSpec

KEPT_S = Seconds(5.0)
"""How long the result of one scan of all processes is reused: the delay after which a new container
is found."""
LONGEST_S = Seconds(60.0)
"""The same where a scan takes long because there are many processes: a tenant may start them."""
_SPARING = 50
"""Scans take at most one part in this many of the time, with at most LONGEST_S between them."""
SHORT_ID = 12
"""Digits of an id that are shown, and that suffice to name it."""
_ID = r"(?P<id>[0-9a-f]{64})"
_NAME = r"(?P<id>[^/]+)"
_SLICES = r"(?:/[^/]+\.slice)"
_USERS = rf"(?P<users>/user\.slice/user-\d+\.slice/user@\d+\.service{_SLICES}*)"
"""Where a user may create groups freely: containers there are named by id alone."""
_UNITS = rf"(?:{_USERS}|{_SLICES}+)"
_LAYOUTS = tuple(
    (engine, re.compile(rf"{path}(?=/|$)"))
    for engine, path in (
        ("podman", rf"{_UNITS}/libpod-{_ID}\.scope"),
        ("podman", rf"{_UNITS}/(?!user@)[^/]+\.service/libpod-payload-{_ID}"),
        ("podman", rf"/libpod_parent(?:/[0-9a-f]{{64}})?/libpod-{_ID}"),
        ("docker", rf"{_UNITS}/docker-{_ID}\.scope"),
        ("docker", rf"/docker/{_ID}"),
        ("lxc", rf"/(?:lxc\.payload[./]|lxc/){_NAME}"),
        ("nspawn", rf"{_SLICES}+/systemd-nspawn@{_NAME}\.service"),
        ("nspawn", rf"{_SLICES}+/machine-(?!(?:qemu|lxc)\\x2d){_NAME}\.scope"),
    )
)
"""How the engines name a container's group, from the root of the hierarchy on: by cgroupfs or by
systemd, on v1 and on v2. Below its own group a tenant may give groups any name."""
_SUPERVISOR = re.compile(r"/supervisor(?=/|$)")
"""The group of systemd-nspawn itself, outside the container's namespaces."""
_PODMAN_LISTS = "*-containers/*containers.json"
"""Below a storage directory, by storage driver; those of `--rm` are called volatile-..."""
_Shape = TypeVar("_Shape")
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs."""

    engine: str
    name: str
    """The engine's name for it; the start of its id where no name is known."""
    group: str
    """The directory of its control group with the CPU controller."""
    pid: int
    """Its process with the lowest number."""

    @property
    def netns(self) -> str:
        """The path of its network namespace."""
        return f"/proc/{self.pid}/ns/net"


class _Found(NamedTuple):
    """A container as derived from the path of a process."""

    engine: str
    identity: str
    group: str
    rootless: bool

    def name(self, names: Mapping[str, str]) -> str:
        """Return the engine's name for it; the system's lists contain no containers of users."""
        known = None if self.rootless else names.get(self.identity)
        return known or _readable(self.identity)


class _Named(msgspec.Struct):
    id: str = ""
    names: list[str] | None = None
    name: str = msgspec.field(default="", name="Name")


def running(root: Path = Path("/")) -> list[Container]:
    """Return every running container, by name; tests pass another root.

    Raises:
        Transient: /proc cannot be read.
    """
    try:
        mounts, pids = lines_of(root / "proc/self/mounts"), _pids(root / "proc")
    except OSError as error:
        raise Transient(str(error.filename), f"cannot be read: {error.strerror}") from error
    first: dict[tuple[str, ...], int] = {}
    for pid, lines in _groups(root / "proc", pids):
        first.setdefault(lines, pid)  # most processes share their groups with others
    lowest: dict[_Found, int] = {}
    for lines, pid in first.items():
        found = _group_of(lines, mounts)
        if found is not None:
            lowest.setdefault(found, pid)
    names = _names(root)
    containers = [
        Container(one.engine, one.name(names), one.group, pid) for one, pid in lowest.items()
    ]
    return sorted(containers, key=lambda one: (one.name, one.engine))


def _pids(proc: Path) -> list[int]:
    return sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal())


def _groups(proc: Path, pids: Iterable[int]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield each process and the lines of its /proc/<pid>/cgroup."""
    for pid in pids:
        try:
            yield pid, tuple(lines_of(proc / str(pid) / "cgroup"))
        except OSError:
            continue  # it ended, or may not be read


def _group_of(lines: Iterable[str], mounts: list[str]) -> _Found | None:
    """Return the outermost container, by the group that has the CPU controller."""
    paths = dict[str, str]()
    for line in lines:
        match line.split(":", 2):
            case [_, controllers, path]:
                paths |= dict.fromkeys(controllers.split(","), path)
    path = paths.get("cpu") or paths.get("", "")
    mount = controller_mount(mounts, "cpu") if "cpu" in paths else unified_mount(mounts)
    matches = [(engine, match) for engine, layout in _LAYOUTS if (match := layout.match(path))]
    if mount is None or not matches:
        return None
    engine, match = min(matches, key=lambda one: one[1].end())
    outside = engine == "nspawn" and _SUPERVISOR.match(path, match.end())
    if outside or not match[0].isprintable():
        return None
    return _Found(engine, match["id"], mount + match[0], bool(match.groupdict().get("users")))


def _names(root: Path) -> dict[str, str]:
    """Return the names that podman and docker store, by id."""
    storages = ("var/lib/containers/storage", "run/containers/storage")
    lists = [path for one in storages for path in (root / one).glob(_PODMAN_LISTS)]
    podman = {
        item.id: item.names[0]
        for path in lists
        for item in _read(path, list[_Named]) or ()
        if item.names
    }
    configurations = (root / "var/lib/docker/containers").glob("*/config.v2.json")
    docker = {path.parent.name: _read(path, _Named) for path in configurations}
    return podman | {key: item.name.lstrip("/") for key, item in docker.items() if item}


def _read(path: Path, shape: type[_Shape]) -> _Shape | None:
    """Return a file of JSON, None where it cannot be read: its container is then named by id."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=shape)
    except (OSError, msgspec.DecodeError):
        return None


def _readable(identity: str) -> str:
    if re.fullmatch(r"[0-9a-f]{64}", identity):
        return identity[:SHORT_ID]
    raw = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), identity.encode())
    name = os.fsdecode(raw)
    return name if name.isprintable() else identity


class Finder:
    """Finds the container that has a name now; the result of one scan is reused for a while."""

    def __init__(self, clock: Clock | None = None, root: Path = Path("/")) -> None:
        self._clock, self._root = clock or MonotonicClock(), root
        self._next = Seconds(float("-inf"))
        self._seen: Mapping[str, list[Container]] = {}

    def resolve(self, spec: ActuatorSpec) -> ActuatorSpec:
        """Return the specification with the paths of the container that it names, if it names one.

        Raises:
            Gone: no such container is running.
            Permanent: several have this name.
            Transient: /proc cannot be read.
        """
        if isinstance(spec, CgroupSpec) and spec.path.startswith(CONTAINER):
            return replace(spec, path=self._find(spec.path).group)
        if isinstance(spec, DeadlineSpec) and spec.netns.startswith(CONTAINER):
            return replace(spec, netns=self._find(spec.netns).netns)
        return spec

    def _find(self, target: str) -> Container:
        self._look()
        engine, _, name = target.removeprefix(CONTAINER).rpartition("/")
        found = [one for one in self._seen.get(name, ()) if engine in {"", one.engine}]
        if not found:
            raise Gone(target, "no container of this name runs", "`xtc discover` lists them")
        if len(found) > 1:
            groups = ", ".join(one.group for one in found)
            raise Permanent(target, f"several containers have this name: {groups}", _apart(found))
        return found[0]

    def _look(self) -> None:
        begun = self._clock.now()
        if begun < self._next:
            return
        seen: dict[str, list[Container]] = {}
        for container in running(self._root):
            seen.setdefault(container.name, []).append(container)
        took = self._clock.now() - begun
        self._seen, self._next = seen, Seconds(begun + min(LONGEST_S, max(KEPT_S, _SPARING * took)))


def _apart(containers: list[Container]) -> str:
    """Return what to write to select one of several containers of one name."""
    engines = {one.engine for one in containers}
    if len(engines) < len(containers):
        return "write the path of the group or namespace"
    return f"write {' or '.join(f'{CONTAINER}{one.engine}/{one.name}' for one in containers)}"


finder = Finder()
"""The finder of this process, shared by all actuators."""
