"""Bounds of the messages' fields, and the checks that several messages share."""

from enum import Enum
from typing import Final, TypeVar

from xco.errors import Malformed

CONTROLLER: Final = 0xFFFF
"""The host field of the controller's messages."""
AGENT: Final = 0xFFFE
"""The host field of port agents' messages."""
HOSTS_MAX: Final = 0xFFFE
"""Hosts are 0 to 0xfffd."""
NODES_MAX: Final = 0x1FFFC
"""Hosts and switches."""
DIGEST_BYTES: Final = 32
ENTRIES_MAX: Final = 64
"""Most destinations in one report or directive."""
LOCATED_MAX: Final = 34
"""Most addresses in one PLACES or MAP."""
PORTS_MAX: Final = 16
"""Most ports in one PORT."""
NOWHERE: Final = 0xFFFF
"""The host of an address that is at no host."""
ANY_VLAN: Final = 0xFFFF
VLAN_MOST: Final = 4094
ADDRESS_BYTES: Final = 16
MAC_BYTES: Final = 6
TIME_MAX: Final = 1 << 61
"""Times and durations are below this: sums of four cannot overflow in C."""
AUTH_BYTES: Final = 16

_E = TypeVar("_E", bound=Enum)


def check_destination(field: str, host: int) -> None:
    """Raise Malformed unless a number is a host's."""
    if not 0 <= host < HOSTS_MAX:
        raise Malformed(field, f"{host} is no host")


def check_instants(**instants: int) -> None:
    """Raise Malformed where an instant or a duration is too large."""
    for field, value in instants.items():
        if value >= TIME_MAX:
            raise Malformed(field, f"{value} ns is too far away")


def check_zero(*reserved: int) -> None:
    """Raise Malformed unless reserved fields are zero."""
    if any(reserved):
        raise Malformed("reserved", "not zero")


def check_length(body: bytes, expected: int) -> None:
    """Raise Malformed unless a body has so many bytes."""
    if len(body) != expected:
        raise Malformed("length", f"a body of {len(body)} bytes, not {expected}")


def enum_of(kind: type[_E], value: int) -> _E:
    """Return the member of a number; raise Malformed where there is none."""
    try:
        return kind(value)
    except ValueError as error:
        raise Malformed(kind.__name__.lower(), str(value)) from error
