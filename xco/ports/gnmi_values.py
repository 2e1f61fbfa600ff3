"""Counters in the answers of a gNMI target, by the names of OpenConfig's published schema.

openconfig-interfaces: /interfaces/interface/state/counters; openconfig-qos:
/qos/interfaces/interface/output/queues/queue/state. Neither counts congestion marks.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from xco.errors import PortUncounted, SwitchGarbled
from xco.ports.reader import UNCOUNTED, Counters

Values = Mapping[str, int]
"""Numbers by the last part of their path, such as "out-octets"."""
_CASTS: Final = ("out-unicast-pkts", "out-multicast-pkts", "out-broadcast-pkts")
_NUMBERS: Final = ("uint_val", "int_val")
_JSON: Final = ("json_ietf_val", "json_val")


def values(updates: Iterable[Any]) -> dict[str, int]:
    """Return the numbers of updates (gnmi.Update), each a leaf or a container in JSON.

    Raises:
        SwitchGarbled: a value is no JSON.
    """
    found: dict[str, int] = {}
    for update in updates:
        name = plain(update.path.elem[-1].name) if update.path.elem else ""
        found.update(_numbers(name, _value(update.val)))
    return found


def _value(typed: Any) -> Any:
    """Return a TypedValue as a Python value; None for kinds that hold no counter."""
    kind = typed.WhichOneof("value")
    if kind in _NUMBERS:
        return getattr(typed, kind)
    if kind not in _JSON:
        return None
    try:
        return json.loads(getattr(typed, kind))
    except (ValueError, RecursionError) as error:
        raise SwitchGarbled("gNMI", f"a value that is no JSON: {error}") from error


def _numbers(name: str, value: Any) -> Iterator[tuple[str, int]]:
    """Yield the counters of a value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(inner, dict):
                yield from _numbers(plain(key), inner)
    elif (number := _number(value)) is not None:
        yield name, number


def numbers(name: str, typed: Any) -> dict[str, int | None]:
    """Return what a TypedValue has for a leaf, or below a container; None: no number.

    A container that cannot be read has None for `name`.
    """
    try:
        value = _value(typed)
    except SwitchGarbled:
        return {name: None}
    if not isinstance(value, dict):
        return {name: _number(value)}
    leaves = ((plain(key), inner) for key, inner in value.items())
    return {key: _number(inner) for key, inner in leaves if not isinstance(inner, dict)}


def one_number(typed: Any) -> int | None:
    """Return the only number in a TypedValue; None if there are none, or several."""
    found = set(numbers("", typed).values())
    return found.pop() if len(found) == 1 else None


def _number(value: Any) -> int | None:
    """Return a counter: JSON writes those of 64 bits as text (RFC 7951)."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def plain(name: str) -> str:
    """Return a node's name without its module."""
    return name.rpartition(":")[2]


def of_interface(port: str, found: Values) -> Counters:
    """Return the counters of an interface.

    Raises:
        PortUncounted: octets or packets are missing.
    """
    packets = found.get("out-pkts")
    if packets is None and _CASTS[0] in found:
        packets = sum(found.get(name, 0) for name in _CASTS)
    return _counters(port, packets, found.get("out-octets"), found.get("out-discards"))


def of_queue(port: str, found: Values) -> Counters:
    """Return the counters of an output queue.

    Raises:
        PortUncounted: octets or packets are missing.
    """
    names = "transmit-pkts", "transmit-octets", "dropped-pkts"
    return _counters(port, *(found.get(name) for name in names))


def _counters(port: str, packets: int | None, octets: int | None, drops: int | None) -> Counters:
    if packets is None or octets is None:
        problem = "the switch reports neither octets nor packets that leave it"
        raise PortUncounted(port, problem, "correct `interface` or `queue`")
    if max(packets, octets, drops or 0) > UNCOUNTED:
        raise SwitchGarbled(port, "a counter of more than 64 bits")
    return Counters(packets, octets, drops=drops or 0)
