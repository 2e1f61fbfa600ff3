"""Finds domains of a host that xtc would control, with their configuration, and the obstacles."""

import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from common.clock import Clock
from common.units import CapFraction, Seconds
from xtc.errors import ActuatorError
from xtc.kernel.namespaces import in_namespace
from xtc.libvirt.api import Api
from xtc.libvirt.domains import DomainView, HostView
from xtc.libvirt.drivers import way_of
from xtc.libvirt.session import Session

PATIENCE_S: Final = Seconds(10.0)
_FORWARDING: Final = Path("/proc/sys/net/ipv4/ip_forward")
_PLAIN_NAME: Final = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$")


class Candidate(msgspec.Struct, frozen=True):
    """A domain, and whether xtc would control it."""

    domain: str
    uuid: str
    uri: str
    driver: str
    running: bool
    vcpus: int
    interfaces: tuple[str, ...]
    cap: float | None
    """In CPUs; None if it is uncapped, or unknown."""
    marked: bool
    """Whether an xtc has capped it, here or on a previous host."""
    controllable: bool
    reasons: tuple[str, ...] = ()
    """Why not; or notes on a controllable domain."""
    configuration: str = ""
    """The lines for xtc.toml."""


class Host(msgspec.Struct, frozen=True):
    """The result for one connection."""

    uri: str
    problem: str
    """Why the host could not be inspected; empty if it could."""
    domains: tuple[Candidate, ...] = ()


def look(load: Callable[[], Api], uri: str | None, clock: Clock) -> Host:
    """Connect, inspect every domain, and disconnect."""
    session = Session(load, uri, clock)
    session.want(lambda _view: True)
    session.start()
    try:
        answered = session.settle(PATIENCE_S)
        view = session.view
    finally:
        session.close()
    name = uri or "default"
    if view.problem is not None:
        return Host(name, str(view.problem))
    if not answered:
        return Host(name, f"libvirt did not answer within {PATIENCE_S:g} s")
    domains = sorted(view.domains.values(), key=lambda domain: domain.name)
    return Host(name, "", tuple(candidate(view, domain, uri) for domain in domains))


def candidate(host: HostView, view: DomainView, uri: str | None) -> Candidate:
    """Return the result for one domain."""
    obstacles = _obstacles(view)
    controllable = not obstacles
    return Candidate(
        domain=view.name,
        uuid=view.uuid,
        uri=uri or "default",
        driver=host.driver,
        running=view.active,
        vcpus=view.vcpus,
        interfaces=view.interfaces,
        cap=_cap(host, view),
        marked=view.mark is not None,
        controllable=controllable,
        reasons=tuple(obstacles or _remarks(host, view)),
        configuration=_configuration(view, uri) if controllable else "",
    )


def _obstacles(view: DomainView) -> list[str]:
    if not view.active:
        return ["it does not run: start it, and xtc follows by itself once it is configured"]
    obstacles = []
    if view.problem is not None:
        obstacles.append(str(view.problem))
    if not view.interfaces:
        kinds = f" ({', '.join(view.uncounted)})" if view.uncounted else ""
        obstacles.append(f"no interface of it is counted in /proc/net/dev{kinds}")
    return obstacles


def _remarks(host: HostView, view: DomainView) -> list[str]:
    remarks = [f"its {kind} interface is not counted" for kind in view.uncounted]
    netns = _namespace_of(view.domid) if host.driver == "LXC" else None
    if netns is not None and _may_forward(netns):
        remarks.append(
            "ip_forward is on in it; what the host's kernel forwards no quota caps: for that use "
            f'actuator = {{ kind = "deadline", netns = "{netns}", interfaces = [...] }}'
        )
    return remarks


def _namespace_of(domid: int) -> str | None:
    """Return a container's network namespace: that of its controller's only child."""
    try:
        children = Path(f"/proc/{domid}/task/{domid}/children").read_text().split()
    except OSError:
        return None  # a container of another host
    return f"/proc/{children[0]}/ns/net" if children else None


def _may_forward(netns: str) -> bool:
    """Whether the host's kernel forwards in a container, if packets arrive."""
    try:
        return in_namespace(netns, _FORWARDING.read_text).strip() == "1"
    except OSError:
        return False  # a container of another host, or no privilege: unknown


def _cap(host: HostView, view: DomainView) -> CapFraction | None:
    try:
        return way_of(view.name, host.driver, "vcpu").cap(view.parameters, view.vcpus)
    except (ActuatorError, KeyError):
        return None  # a driver that cannot cap, or a domain without data


def _configuration(view: DomainView, uri: str | None) -> str:
    where = "" if uri is None else f", uri = {_quoted(uri)}"
    name = view.name if _PLAIN_NAME.match(view.name) else str(uuid.UUID(view.uuid))
    return (
        f"[router.{_quoted(name)}]\n"
        f'actuator = {{ kind = "libvirt", domain = {_quoted(view.name)}{where} }}\n'
        '# setpoint = "20kpps"\n'
    )


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
