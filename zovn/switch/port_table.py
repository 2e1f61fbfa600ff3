"""One port of the switch: its keys, the rules between them, and its words for the program."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from common.errors import ConfigError, UnitError
from common.units import parse_bit_rate
from zovn.switch.wire_table import WIRE_FORMS, WireTable, check_wire, wire_words

MOST_PATH: Final = 107
"""Bytes of the address of a Unix socket."""
BY_INTERFACE: Final = frozenset({"veth", "tap", "wire"})
"""Kinds of which the peer is behind an interface; that of others is behind a socket."""
_OF_GUESTS: Final = ("socket", "group", "offloads", "queues")
_LEAST_RATE: Final = 1_000_000
_STATION: Final = r"^[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}\Z"
_INTERFACE: Final = r"^(?!\.\.?\Z)[^\s/:]{1,15}\Z"

SocketPath = Annotated[str, msgspec.Meta(pattern=r"^/[^\s]*\Z", max_length=MOST_PATH)]
Class = Annotated[int, msgspec.Meta(ge=0, le=7)]


class PortTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[[switch.port]]``."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,32}\Z")]
    kind: Literal["vhost", "veth", "tap", "wire"] = "vhost"
    socket: SocketPath | None = None
    """Where the guest's front end connects; default: /run/zovn/NAME.sock."""
    interface: Annotated[str, msgspec.Meta(pattern=_INTERFACE)] | None = None
    """The host's end of a container's veth, a TAP interface or a wire's; no socket then."""
    wire: WireTable | None = None
    """What only a wire has."""
    group: str | None = None
    """Group that may connect, besides the user that runs the switch."""
    vlan: Annotated[int, msgspec.Meta(ge=0, le=4094)] = 1
    """VLAN of frames without a tag; 0: a trunk that has none."""
    tagged: tuple[Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?\Z")], ...] = ()
    """VLANs of frames with a tag; with any, the port is a trunk."""
    addresses: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=_STATION)], ...], msgspec.Meta(max_length=16)
    ] = ()
    """Static addresses in the VLAN of frames without a tag; no other port can take them."""
    class_: Class = msgspec.field(default=0, name="class")
    """Class of frames that no mark classifies."""
    trust: Literal["nothing", "priority", "dscp"] = "nothing"
    """Which mark of a frame gives its class: none, the VLAN priority, or the DSCP."""
    offloads: bool = False
    """Offer checksum and TCP segmentation offloads. The switch finishes frames for receivers that
    do not take them."""
    queues: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    """Pairs of rings that the guest may use."""
    rate: str | None = None
    """Bits of frames to the port per second, at most; default: as fast as it takes them."""


_DEFAULTS: Final = {one.name: one.default for one in msgspec.structs.fields(PortTable)}

PORT_FORMS: Final[Mapping[str, str]] = {
    "name": "1 to 32 letters, digits, dots, dashes and underscores",
    "socket": f"a path from / on without spaces, of at most {MOST_PATH} characters",
    "interface": 'the name of an interface, such as interface = "p1"',
    "vlan": "a VLAN from 1 to 4094, or 0 for a trunk without one",
    "tagged": 'a list of VLANs, such as ["10", "20-29"]',
    "class": "a class from 0 to 7",
    "queues": "1 to 8 pairs of rings",
    **WIRE_FORMS,
    "rate": 'a rate from 1Mbit/s to 1000Gbit/s, such as "1Gbit/s"',
}
"""How to write a key that is wrong."""


def socket_of(port: PortTable) -> str:
    """Return the path of a port's socket."""
    return port.socket or f"/run/zovn/{port.name}.sock"


def place_of(port: PortTable) -> tuple[str, str]:
    """Return where the peer of a port is: the key, and its value."""
    if port.interface:
        return "interface", port.interface
    return "socket", socket_of(port)


def check_port(port: PortTable, where: str, file: str) -> None:
    """Check what the types of its keys do not say.

    Raises:
        ConfigError: names the key, what is wrong and what to do.
    """
    _check_place(port, where, file)
    _check_wire(port, where, file)
    _check_vlans(port, where, file)
    rate_of(port, where, file)


def _check_place(port: PortTable, where: str, file: str) -> None:
    """A port has an interface or a socket, by its kind."""
    if port.kind in BY_INTERFACE and not port.interface:
        problem = f"a port of kind {port.kind} needs one"
        fix = f"write {PORT_FORMS['interface']}"
        raise ConfigError(f"{where}.interface", problem, fix, at=file)
    useless = _OF_GUESTS if port.kind in BY_INTERFACE else ("interface",)
    for key in useless:
        if getattr(port, key) != _DEFAULTS[key]:
            problem = f"a port of kind {port.kind} has none"
            raise ConfigError(f"{where}.{key}", problem, _fix_of_kind(port), at=file)


def _fix_of_kind(port: PortTable) -> str:
    """Return what to do about a key that ports of this kind do not have."""
    if port.kind in BY_INTERFACE:
        return "remove it, or the kind"
    return f'remove it, or write kind = "{"wire" if port.wire else "veth"}"'


def _check_wire(port: PortTable, where: str, file: str) -> None:
    if port.wire:
        check_wire(port.wire, f"{where}.wire", file)
    if (port.kind == "wire") != (port.wire is not None):
        problem = f"a port of kind {port.kind} {'needs one' if port.kind == 'wire' else 'has none'}"
        fix = f"write {WIRE_FORMS['wire']}"
        if port.kind != "wire":
            fix = 'remove it, or write kind = "wire"'
        raise ConfigError(f"{where}.wire", problem, fix, at=file)


def rate_of(port: PortTable, where: str = "port", file: str = "configuration") -> int:
    """Return the rate of a port in bits per second; 0: no limit.

    Raises:
        ConfigError: it is no rate, or out of range.
    """
    if port.rate is None:
        return 0
    try:
        rate = round(parse_bit_rate(port.rate))
    except UnitError:
        rate = 0
    if rate < _LEAST_RATE:
        fix = f"write {PORT_FORMS['rate']}"
        raise ConfigError(f"{where}.rate", f"{port.rate!r} is no such rate", fix, at=file)
    return rate


def _check_vlans(port: PortTable, where: str, file: str) -> None:
    if not port.vlan and not port.tagged:
        fix = "write a VLAN from 1 to 4094, or the VLANs of a trunk as `tagged`"
        raise ConfigError(f"{where}.vlan", "a port that is no trunk needs one", fix, at=file)
    if port.addresses and not port.vlan:
        fix = "write the `vlan` of frames without a tag, or remove the addresses"
        raise ConfigError(f"{where}.addresses", "the trunk has no such VLAN", fix, at=file)
    for text in port.tagged:
        first, last = _range(text)
        if not 1 <= first <= last <= 4094:
            fix = f"write {PORT_FORMS['tagged']}"
            raise ConfigError(f"{where}.tagged", f"{text!r} are no VLANs", fix, at=file)


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def port_words(port: PortTable, groups: Mapping[str, int]) -> str:
    """Return a port as the compiled program reads it (zovn/core/program/port_words.h)."""
    words = [
        f"name={port.name}",
        f"kind={port.kind}",
        f"interface={port.interface}" if port.interface else f"path={socket_of(port)}",
        f"vlan={port.vlan}",
        f"class={port.class_}",
        f"trust={port.trust}",
        f"offloads={int(port.offloads)}",
        *(f"address={one}" for one in port.addresses),
    ]
    if port.queues > 1:
        words.append(f"queues={port.queues}")
    if rate := rate_of(port):
        words.append(f"rate={rate}")
    if port.wire:
        words += wire_words(port.wire)
    if port.tagged:
        words.append(f"tagged={','.join(port.tagged)}")
    if port.group:
        words.append(f"group={groups[port.group]}")
    return " ".join(words)
