"""Finds namespaces and containers of this host that xtc could control, with their configuration."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from xtc.actuator.containers import Container, running
from xtc.config.host_facts import Inside, Trouble, look_inside
from xtc.kernel.namespaces import in_namespace
from xtc.spec import CONTAINER

NAMED = Path("/run/netns")
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward"), Path("/proc/sys/net/ipv6/conf/all/forwarding")
_HOST = "it shares the host's network namespace: name its interfaces"
_IDLE = (
    "the kernel does not forward in it (ip_forward = 0): for a router in user space give its "
    "processes a control group of their own"
)


class LocalRouter(msgspec.Struct, frozen=True):
    """A namespace or container, and whether xtc could control it."""

    kind: str
    """netns, podman, docker, lxc or nspawn."""
    name: str
    interfaces: tuple[str, ...]
    """Its own interfaces."""
    ends: tuple[str, ...]
    """Their other ends on this host, where packets are counted."""
    forwards: bool
    """Whether the host's kernel forwards in it, if packets arrive."""
    actuator: str
    """The suitable kind of actuator; empty where none is suitable."""
    reasons: tuple[str, ...] = ()
    """Why none is suitable."""
    configuration: str = ""
    """The lines for xtc.toml."""


class Local(msgspec.Struct, frozen=True):
    """Routers found on this host without a hypervisor; like `xtc.libvirt.discover.Host`."""

    routers: tuple[LocalRouter, ...]
    uri: str = "local"
    problem: str = ""
    domains: tuple[str, ...] = ()


def look_around() -> Local:
    """Inspect every named namespace and every container of this host."""
    containers = running()
    taken = {inode for one in containers if (inode := _inode(Path(one.netns))) is not None}
    names = sorted(NAMED.glob("*"))
    spaces = [path for path in names if _inode(path) not in taken]  # podman's own namespaces
    found = [
        _of_container(one, place)
        for one, place in zip(containers, _places(containers), strict=True)
    ]
    return Local((*map(_of_namespace, spaces), *found))


def _places(containers: list[Container]) -> list[str]:
    """Return the name of each container, with its engine where two have the same name."""
    counts = Counter(one.name for one in containers)
    return [
        f"{CONTAINER}{one.engine}/{one.name}" if counts[one.name] > 1 else f"{CONTAINER}{one.name}"
        for one in containers
    ]


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _of_namespace(path: Path) -> LocalRouter:
    netns = str(path)
    inside = look_inside(netns)
    if isinstance(inside, Trouble):
        return _closed("netns", path.name, inside.problem)
    return propose("netns", path.name, inside, forwards=_forwards(netns), netns=netns, group="")


def _of_container(one: Container, place: str) -> LocalRouter:
    if _inode(Path(one.netns)) == _inode(Path("/proc/self/ns/net")):
        return _closed(one.engine, one.name, _HOST)
    inside = look_inside(one.netns)
    if isinstance(inside, Trouble):
        return _closed(one.engine, one.name, inside.problem)
    forwards = _forwards(one.netns)
    return propose(one.engine, one.name, inside, forwards=forwards, netns=place, group=place)


def _closed(kind: str, name: str, reason: str) -> LocalRouter:
    return LocalRouter(kind, name, (), (), forwards=False, actuator="", reasons=(reason,))


def _forwards(netns: str) -> bool:
    def read() -> bool:
        return any(path.read_text().strip() == "1" for path in _FORWARDING if path.exists())

    try:
        return in_namespace(netns, read)
    except OSError:
        return False  # no privilege to read it: already reported for its interfaces


def propose(
    kind: str, name: str, inside: Inside, *, forwards: bool, netns: str, group: str
) -> LocalRouter:
    """Return the result for a namespace or container that could be inspected.

    Where the kernel forwards, the cap must apply to its NAPI threads (`deadline`): quotas do not
    affect them. A router in user space needs a control group, which a bare namespace lacks.
    """
    ends = {own: end for own, end in inside.ends.items() if end is not None}
    actuator = "deadline" if forwards else "cgroup" if group else ""
    reasons = tuple(_reasons(actuator, ends))
    controllable = actuator if ends else ""
    return LocalRouter(
        kind=kind,
        name=name,
        interfaces=tuple(sorted(inside.ends)),
        ends=tuple(sorted(ends.values())),
        forwards=forwards,
        actuator=controllable,
        reasons=reasons,
        configuration=_configuration(name, controllable, ends, netns, group),
    )


def _reasons(actuator: str, ends: dict[str, str]) -> Iterator[str]:
    if not ends:
        yield "no veth of it ends on this host, where packets are counted"
    elif not actuator:
        yield _IDLE


def _configuration(name: str, actuator: str, ends: dict[str, str], netns: str, group: str) -> str:
    if not actuator:
        return ""
    own = sorted(ends)
    lines = [f"[router.{_text(_router_name(name))}]"]
    user_space = f'actuator = {{ kind = "cgroup", path = {_text(group)} }}'
    if actuator == "deadline":
        place = f'kind = "deadline", netns = {_text(netns)}, interfaces = {_list(own)}'
        lines.append(f"actuator = {{ {place} }}")
        if group:
            lines += ["# if it forwards in user space instead (VPP, DPDK):", f"# {user_space}"]
    else:
        lines.append(user_space)
    lines.append(f"interfaces = {_list(ends[one] for one in own)}")
    if len(own) == 1:
        lines.append("one_interface = true")
    return "\n".join([*lines, '# setpoint = "20kpps"', ""])


def _router_name(name: str) -> str:
    """Return the name, reduced to the characters allowed for a router."""
    allowed = re.sub(r"[^A-Za-z0-9._:-]", "-", name).lstrip("._:-")[:64]
    return allowed or "router"


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    return msgspec.json.encode(text).decode()
