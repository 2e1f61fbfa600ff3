"""Paths of a port's counters in the models of OpenConfig, and the requests for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from xco.errors import ConfigError
from xco.ports.gnmi_library import gnmi_path_generator, gnmi_pb2
from xco.ports.gnmi_values import plain

Elements = tuple[tuple[str, frozenset[tuple[str, str]]], ...]
"""A path as a key of a dictionary: names without their modules, with their keys."""
_Steps = Sequence[tuple[str, dict[str, str]]]
_STATE: Final = gnmi_pb2.GetRequest.STATE


@dataclass(frozen=True, slots=True)
class GnmiPort:
    """An interface, or one of its output queues."""

    interface: str
    queue: str = ""
    marks: str = ""
    """Path of the vendor's counter of marked packets: OpenConfig has none."""
    origin: str = ""
    """Origin of OpenConfig's paths, for switches that have other models as default."""

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"{self.interface}, queue {self.queue}" if self.queue else self.interface


def get_request(port: GnmiPort) -> Any:
    """Return the request for a port's counters.

    Raises:
        ConfigError: the path of its marks is malformed.
    """
    return gnmi_pb2.GetRequest(path=paths(port), type=_STATE, encoding=gnmi_pb2.JSON_IETF)


def subscribe_request(ports: Iterable[GnmiPort], sample_ns: int) -> Any:
    """Return the request for one stream of the samples of all ports.

    Raises:
        ConfigError: the path of a port's marks is malformed.
    """
    wanted = [
        gnmi_pb2.Subscription(path=path, mode=gnmi_pb2.SAMPLE, sample_interval=sample_ns)
        for port in ports
        for path in paths(port)
    ]
    streamed = gnmi_pb2.SubscriptionList(
        subscription=wanted, mode=gnmi_pb2.SubscriptionList.STREAM, encoding=gnmi_pb2.JSON_IETF
    )
    return gnmi_pb2.SubscribeRequest(subscribe=streamed)


def paths(port: GnmiPort) -> list[Any]:
    """Return the path of a port's counters, and that of its marks if it has one."""
    found = [_queue(port) if port.queue else _interface(port)]
    return [*found, _given(port.marks)] if port.marks else found


def elements(*parts: Any) -> Elements:
    """Return one path, from its prefix and the path below it."""
    return tuple(
        (plain(each.name), frozenset(each.key.items())) for part in parts for each in part.elem
    )


def written(path: Elements) -> str:
    """Return a path as messages name it."""
    steps = (
        f"/{name}" + "".join(f"[{key}={value}]" for key, value in sorted(keys))
        for name, keys in path
    )
    return "".join(steps)


def _interface(port: GnmiPort) -> Any:
    steps: _Steps = (("interface", {"name": port.interface}), ("state", {}), ("counters", {}))
    return _path((("interfaces", {}), *steps), port.origin)


def _queue(port: GnmiPort) -> Any:
    above: _Steps = (
        ("qos", {}),
        ("interfaces", {}),
        ("interface", {"interface-id": port.interface}),
    )
    below: _Steps = (("output", {}), ("queues", {}), ("queue", {"name": port.queue}), ("state", {}))
    return _path((*above, *below), port.origin)


def _path(steps: _Steps, origin: str) -> Any:
    elem = [gnmi_pb2.PathElem(name=name, key=key) for name, key in steps]
    return gnmi_pb2.Path(elem=elem, origin=origin)


def _given(path: str) -> Any:
    try:
        made = gnmi_path_generator(path)
    except (ValueError, IndexError) as error:
        raise ConfigError("gnmi", "marks", f"{path!r} is no path", str(error)) from error
    if not made.elem:
        raise ConfigError("gnmi", "marks", f"{path!r} is no path", "write that of a leaf")
    return made
