"""What only a port to other hosts has: its keys, the rules between them, and its words."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address
from typing import Annotated, Final

import msgspec

from common.errors import ConfigError, UnitError
from common.units import parse_bit_rate

_ALL: Final = (0, 1, 2, 3, 4, 5, 6, 7)
_LEAST_RATE: Final = 1_000_000
_MOST_NS: Final = 10**9
_DURATION: Final = re.compile(r"^([0-9]{1,9}(?:\.[0-9]{1,9})?)(ns|us|ms|s)\Z")
_UNITS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}

MapPath = Annotated[str, msgspec.Meta(pattern=r"^/[^\s]*\Z", max_length=107)]


class WireTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[switch.port.wire]``."""

    local: str
    """IPv4 address of this host on the interface."""
    vni: Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFF)]
    """Number of the virtual network."""
    locations: MapPath
    """The map that says at which host each station is."""
    line_rate: str
    """Rate of the line: frames leave at it, and pauses are counted in it."""
    delay: str = "1us"
    """Delay of the cable, one way."""
    response: str = "100us"
    """Time until a pause is sent and obeyed, of both hosts together."""
    ring: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 0
    """Bytes that may wait in queues and rings below a wire, at either end: no pause stops them.

    With 0 the wire sets no bound, and no buffer has room for them.
    """
    buffer: Annotated[int, msgspec.Meta(ge=16_384, le=344_064)] = 344_064
    """Bytes of each class, as they take time on the line."""
    pfc: tuple[Annotated[int, msgspec.Meta(ge=0, le=7)], ...] = _ALL
    """Classes that are paused, at the peer and by it."""


WIRE_FORMS: Final[Mapping[str, str]] = {
    "wire": "a table: [switch.port.wire]",
    "local": 'an IPv4 address of this host, such as "10.0.0.1"',
    "vni": "a number from 0 to 16777215",
    "locations": "a path from / on without spaces, of at most 107 characters",
    "line_rate": 'a rate from 1Mbit/s to 1000Gbit/s, such as "10Gbit/s"',
    "delay": 'a duration of at most 1s, such as "1us"',
    "response": 'a duration of at most 1s, such as "100us"',
    "ring": "a number of bytes",
    "buffer": "a number of bytes from 16384 to 344064",
    "pfc": "a list of classes from 0 to 7, such as [3, 4]",
}
"""How to write a key that is wrong."""


def wire_given(pairs: Iterable[str]) -> dict[str, object]:
    """Return the table that pairs KEY=VALUE describe; its values are not checked.

    Raises:
        ConfigError: one is no pair.
    """
    table: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError("--wire", f"{pair!r} is no KEY=VALUE", "write e.g. vni=42")
        table[key] = _given(key, value)
    return table


def _given(key: str, value: str) -> object:
    if key == "pfc":
        return [int(one) if one.isdecimal() else one for one in value.split(",") if one]
    return int(value) if key in {"vni", "ring", "buffer"} and value.isdecimal() else value


def check_wire(wire: WireTable, where: str, file: str) -> None:
    """Check what the types of its keys do not say.

    Raises:
        ConfigError: names the key, what is wrong and what to do.
    """
    checks: dict[str, Callable[[], object]] = {
        "local": lambda: IPv4Address(wire.local),
        "line_rate": lambda: _rate(wire.line_rate),
        "delay": lambda: _nanoseconds(wire.delay),
        "response": lambda: _nanoseconds(wire.response),
    }
    for key, check in checks.items():
        try:
            check()
        except (AddressValueError, UnitError, ValueError) as error:
            problem = f"{getattr(wire, key)!r} cannot be used"
            fix = f"write {WIRE_FORMS[key]}"
            raise ConfigError(f"{where}.{key}", problem, fix, at=file) from error


def wire_words(wire: WireTable) -> Iterator[str]:
    """Yield the words of a wire, as the compiled program reads them."""
    yield f"local={IPv4Address(wire.local)}"
    yield f"vni={wire.vni}"
    yield f"locations={wire.locations}"
    yield f"line_rate={_rate(wire.line_rate)}"
    yield f"delay={_nanoseconds(wire.delay)}"
    yield f"response={_nanoseconds(wire.response)}"
    yield f"ring={wire.ring}"
    yield f"buffer={wire.buffer}"
    yield f"pfc={sum(1 << one for one in set(wire.pfc))}"


def _rate(text: str) -> int:
    rate = round(parse_bit_rate(text))
    if rate < _LEAST_RATE:
        raise ValueError(text)
    return rate


def _nanoseconds(text: str) -> int:
    """Delays of cables are shorter than what common.units reads."""
    match = _DURATION.match(text)
    nanoseconds = round(float(match[1]) * _UNITS[match[2]]) if match else _MOST_NS + 1
    if nanoseconds > _MOST_NS:
        raise ValueError(text)
    return nanoseconds
