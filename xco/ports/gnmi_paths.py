"""Paths of a port's counters in the models of OpenConfig, and the requests for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from xco.errors import ConfigError

try:
    from pygnmi.create_gnmi_path import gnmi_path_generator
    from pygnmi.spec.v080 import gnmi_pb2
except ModuleNotFoundError as missing:
    raise ConfigError(
        "gnmi", "", f"{missing.name} is not installed", "pip install 'xtc[gnmi]'"
    ) from missing

_Steps = Sequence[tuple[str, dict[str, str]]]
_STATE: Final = gnmi_pb2.GetRequest.STATE


@dataclass(frozen=True, slots=True)
class GnmiPort:
    """An interface, or one of its output queues."""

    interface: str
    queue: str = ""
    marks: str = ""
    """Path of the vendor's counter of marked packets: OpenConfig has none."""

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"{self.interface}, queue {self.queue}" if self.queue else self.interface


def get_request(port: GnmiPort) -> Any:
    """Return the request for a port's counters.

    Raises:
        ConfigError: the path of its marks is malformed.
    """
    return gnmi_pb2.GetRequest(path=paths(port), type=_STATE, encoding=gnmi_pb2.JSON_IETF)


def paths(port: GnmiPort) -> list[Any]:
    """Return the path of a port's counters, and that of its marks if it has one."""
    found = [_queue(port) if port.queue else _interface(port)]
    return [*found, _given(port.marks)] if port.marks else found


def _interface(port: GnmiPort) -> Any:
    steps: _Steps = (("interface", {"name": port.interface}), ("state", {}), ("counters", {}))
    return _path((("interfaces", {}), *steps))


def _queue(port: GnmiPort) -> Any:
    above: _Steps = (
        ("qos", {}),
        ("interfaces", {}),
        ("interface", {"interface-id": port.interface}),
    )
    below: _Steps = (("output", {}), ("queues", {}), ("queue", {"name": port.queue}), ("state", {}))
    return _path((*above, *below))


def _path(steps: _Steps) -> Any:
    return gnmi_pb2.Path(elem=[gnmi_pb2.PathElem(name=name, key=key) for name, key in steps])


def _given(path: str) -> Any:
    try:
        made = gnmi_path_generator(path)
    except (ValueError, IndexError) as error:
        raise ConfigError("gnmi", "marks", f"{path!r} is no path", str(error)) from error
    if not made.elem:
        raise ConfigError("gnmi", "marks", f"{path!r} is no path", "write that of a leaf")
    return made
