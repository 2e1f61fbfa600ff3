"""Parses the output of bridge, tc, lldpctl and sysfs about a switch's ports."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from xco.errors import ConfigError

FORWARDING: Final = "forwarding"
CHANGING: Final = ("listening", "learning")
"""States of a port with an unsettled role in the spanning tree (802.1D-2004, 17.5)."""

_SPEED: Final = re.compile(r"^/sys/class/net/(?P<port>[^/]+)/speed:(?P<mbps>-?[0-9]+)$")


class _BridgePort(msgspec.Struct):
    """One entry of `bridge -j link`; a VXLAN device may lack a master."""

    ifname: str
    state: str = ""
    master: str = ""


class _QdiscOptions(msgspec.Struct):
    rate: int = 0


class _Qdisc(msgspec.Struct):
    """One entry of `tc -j qdisc`; tc gives rates in bytes/s."""

    kind: str
    dev: str
    root: bool = False
    options: _QdiscOptions = msgspec.field(default_factory=_QdiscOptions)


def parse_ports(text: str, bridge: str) -> dict[str, str]:
    """Return the state of each port of a bridge, from the output of ``bridge -j link``.

    Raises:
        ConfigError: the output is malformed.
    """
    ports = _decoded(text, list[_BridgePort], "bridge -j link")
    return {port.ifname: port.state for port in ports if port.master == bridge}


def parse_shapers(text: str) -> dict[str, int]:
    """Return the rate in bits/s of each port that a TBF limits, from ``tc -j qdisc``.

    Raises:
        ConfigError: the output is malformed.
    """
    qdiscs = _decoded(text, list[_Qdisc], "tc -j qdisc")
    return {
        one.dev: one.options.rate * 8
        for one in qdiscs
        if one.kind == "tbf" and one.root and one.options.rate
    }


def parse_speeds(text: str) -> dict[str, int]:
    """Return the speed in bits/s of each port, from ``grep -H . /sys/class/net/*/speed``.

    The kernel gives Mbit/s, and -1 if the speed is unknown (sysfs-class-net, speed).
    """
    found = (_SPEED.match(line) for line in text.splitlines())
    speeds = {match["port"]: int(match["mbps"]) * 10**6 for match in found if match}
    return {port: speed for port, speed in speeds.items() if speed > 0}


def parse_lldp(text: str) -> dict[str, tuple[str, str]]:
    """Return by port the system and port at its other end, from ``lldpctl -f json``.

    A neighbour that does not give its name is omitted. A port with several neighbours has none:
    they are behind a switch that does not speak LLDP.

    Raises:
        ConfigError: the output is malformed.
    """
    told = _decoded(text, dict[str, Any], "lldpctl -f json")
    heard: dict[str, list[tuple[str, str]]] = {}
    for port, entry in _interfaces(told.get("lldp")):
        for system in _names(entry.get("chassis")):
            heard.setdefault(port, []).append((system, _port_id(entry.get("port"))))
    return {port: systems[0] for port, systems in heard.items() if len(systems) == 1}


def _decoded(text: str, form: Any, command: str) -> Any:
    try:
        return msgspec.json.decode(text, type=form)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        fix = "see whether the command answers in JSON: iproute2 4.20, lldpd 0.9"
        raise ConfigError(command, "", f"cannot be understood: {error}", fix) from None


def _interfaces(lldp: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the interfaces: lldpctl writes several as a list, but a single one without."""
    for listed in _several(lldp.get("interface") if isinstance(lldp, dict) else None):
        for port, entry in listed.items():
            if isinstance(entry, dict):
                yield port, entry


def _names(chassis: Any) -> list[str]:
    """Return the system's name: lldpctl uses it as the key of the system's other data."""
    if not isinstance(chassis, dict):
        return []
    return [name for name, known in chassis.items() if isinstance(known, dict) and "id" in known]


def _port_id(port: Any) -> str:
    """Return the neighbour's port if given as an interface name."""
    ids = _several(port.get("id") if isinstance(port, dict) else None)
    return next((str(one.get("value", "")) for one in ids if one.get("type") == "ifname"), "")


def _several(value: Any) -> list[dict[str, Any]]:
    listed = value if isinstance(value, list) else [value]
    return [one for one in listed if isinstance(one, dict)]
