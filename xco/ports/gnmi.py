"""Reads ports of a switch over gNMI, with the messages of pygnmi and the models of OpenConfig."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from xco.errors import (
    ConfigError,
    PortError,
    PortGone,
    SwitchAway,
    SwitchGarbled,
    SwitchRefused,
)
from xco.ports.gnmi_values import of_interface, of_queue, values
from xco.ports.reader import UNCOUNTED, Counters, Reading

try:
    import grpc
    from pygnmi.create_gnmi_path import gnmi_path_generator
    from pygnmi.spec.v080 import gnmi_pb2, gnmi_pb2_grpc
except ModuleNotFoundError as missing:
    raise ConfigError(
        "gnmi", "", f"{missing.name} is not installed", "pip install 'xtc[gnmi]'"
    ) from missing

_LARGEST: Final = 1 << 20
"""Bytes of an answer: the counters of a port fit many times."""


@dataclass(frozen=True, slots=True)
class GnmiTarget:
    """A switch, and how it is reached."""

    address: str
    """Address and port, such as "switch1:9339"."""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    """Certificates that sign the switch's; none: an unencrypted connection."""
    cert_file: str = ""
    """This program's certificate, with `cert_key_file`, where the switch asks for one."""
    cert_key_file: str = ""
    tls_name: str = ""
    """Name in the switch's certificate, where it differs from the address."""


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


class GnmiReader:
    """Ports of one switch. All requests are under way at once, with one deadline."""

    def __init__(
        self, target: GnmiTarget, ports: Sequence[GnmiPort], *, timeout_s: float = 1.0
    ) -> None:
        """Prepare the requests; connects at the first `read`.

        Raises:
            ConfigError: a path is malformed, or a file cannot be read.
        """
        self._target, self._timeout_s = target, timeout_s
        self._ports = [(port, _request(port)) for port in ports]
        self._metadata = _metadata(target)
        self._credentials = _credentials(target)
        self._channel: Any = None

    def read(self) -> Sequence[Reading]:
        """Return a reading for each port.

        Raises:
            SwitchAway: the switch cannot be reached, or does not answer in time.
        """
        if self._channel is None:
            self._channel = self._opened()
        stub = gnmi_pb2_grpc.gNMIStub(self._channel)
        calls = [
            stub.Get.future(request, timeout=self._timeout_s, metadata=self._metadata)
            for _, request in self._ports
        ]
        readings = [
            _reading(port, call) for (port, _), call in zip(self._ports, calls, strict=True)
        ]
        for one in readings:
            if isinstance(one, SwitchAway):
                raise SwitchAway(self._target.address, one.problem, one.fix)
        return readings

    def close(self) -> None:
        """Close the channel."""
        if self._channel is not None:
            self._channel.close()
        self._channel = None

    def _opened(self) -> Any:
        options: list[tuple[str, Any]] = [("grpc.max_receive_message_length", _LARGEST)]
        if self._target.tls_name:
            options.append(("grpc.ssl_target_name_override", self._target.tls_name))
        if self._credentials is None:
            return grpc.insecure_channel(self._target.address, options)
        return grpc.secure_channel(self._target.address, self._credentials, options)


def _request(port: GnmiPort) -> Any:
    name = {"name": port.interface}
    if port.queue:
        paths = [
            _path(
                ("qos", {}),
                ("interfaces", {}),
                ("interface", {"interface-id": port.interface}),
                ("output", {}),
                ("queues", {}),
                ("queue", {"name": port.queue}),
                ("state", {}),
            )
        ]
    else:
        paths = [_path(("interfaces", {}), ("interface", name), ("state", {}), ("counters", {}))]
    if port.marks:
        paths.append(_given(port.marks))
    state = gnmi_pb2.GetRequest.STATE
    return gnmi_pb2.GetRequest(path=paths, type=state, encoding=gnmi_pb2.JSON_IETF)


def _path(*elements: tuple[str, dict[str, str]]) -> Any:
    return gnmi_pb2.Path(elem=[gnmi_pb2.PathElem(name=name, key=key) for name, key in elements])


def _given(path: str) -> Any:
    try:
        made = gnmi_path_generator(path)
    except (ValueError, IndexError) as error:
        raise ConfigError("gnmi", "marks", f"{path!r} is no path", str(error)) from error
    if not made.elem:
        raise ConfigError("gnmi", "marks", f"{path!r} is no path", "write that of a leaf")
    return made


def _metadata(target: GnmiTarget) -> list[tuple[str, str]]:
    if not target.username:
        return []
    password = _content(target.password_file).decode().strip() if target.password_file else ""
    return [("username", target.username), ("password", password)]


def _credentials(target: GnmiTarget) -> Any:
    if not target.ca_file:
        return None
    key = _content(target.cert_key_file) if target.cert_key_file else None
    certificate = _content(target.cert_file) if target.cert_file else None
    return grpc.ssl_channel_credentials(_content(target.ca_file), key, certificate)


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        problem = error.strerror or "cannot be read"
        raise ConfigError(path, "", problem, "name a file that this program may read") from error


def _reading(port: GnmiPort, call: Any) -> Reading:
    try:
        return _counters(port, call.result())
    except grpc.RpcError as error:
        return _failure(port, error)
    except PortError as error:
        return error


def _counters(port: GnmiPort, answer: Any) -> Counters:
    """Return the counters in an answer: one notification for each path, in their order."""
    updates = [list(each.update) for each in answer.notification]
    if not port.marks:
        return _sent(port, (update for each in updates for update in each))
    if len(updates) < 2:
        raise SwitchGarbled(str(port), f"{len(updates)} notifications for two paths")
    counted = _sent(port, (update for each in updates[:-1] for update in each))
    found = set(values(updates[-1]).values())
    if len(found) != 1 or max(found) > UNCOUNTED:
        problem = f"{port.marks} is not one number of 64 bits"
        raise SwitchGarbled(str(port), problem, "correct `marks`")
    return replace(counted, marks=found.pop(), counts_marks=True)


def _sent(port: GnmiPort, updates: Iterable[Any]) -> Counters:
    found = values(updates)
    return (of_queue if port.queue else of_interface)(str(port), found)


def _failure(port: GnmiPort, error: Any) -> PortError:
    code, said = error.code(), error.details() or "no details"
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return SwitchAway(str(port), said, "check address, port, certificates, and that gNMI runs")
    if code is grpc.StatusCode.NOT_FOUND:
        return PortGone(str(port), said, "correct `interface`, `queue` or `marks`")
    return SwitchRefused(str(port), f"{code.name}: {said}", "check the user and its rights")
