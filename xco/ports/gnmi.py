"""Reads ports of a switch over gNMI with Get, with the messages of pygnmi."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from xco.errors import PortError, SwitchAway, SwitchGarbled, SwitchUntrusted
from xco.ports.gnmi_library import gnmi_pb2_grpc, grpc
from xco.ports.gnmi_paths import GnmiPort, get_request
from xco.ports.gnmi_tls import LOGIN_REFUSALS, GnmiTarget, failure, metadata, opened, reopened
from xco.ports.gnmi_values import of_interface, of_queue, values
from xco.ports.reader import UNCOUNTED, Counters, Reading


class GnmiReader:
    """Ports of one switch. All requests are under way at once, with one deadline."""

    def __init__(
        self, target: GnmiTarget, ports: Sequence[GnmiPort], *, timeout_s: float = 1.0
    ) -> None:
        """Prepare the requests; connects at the first `read`.

        Raises:
            ConfigError: a path is malformed, or a file cannot be used.
        """
        self._target, self._timeout_s = target, timeout_s
        self._ports = [(port, get_request(port)) for port in ports]
        self._metadata = metadata(target)
        opened(target).close()  # a file that cannot be used is an error of the settings now
        self._channel: Any = None

    def read(self) -> Sequence[Reading]:
        """Return a reading for each port.

        Raises:
            SwitchAway: the switch cannot be reached, or does not answer in time.
            SwitchUntrusted: its certificate, or the agent's, is not accepted.
            SwitchRefused: it refuses the user.
        """
        calls = self._asked()
        readings = [
            self._reading(port, call) for (port, _), call in zip(self._ports, calls, strict=True)
        ]
        if (error := self._lost(readings, calls)) is not None:
            self.close()  # the next attempt takes certificates and password from their files again
            raise error
        return readings

    def close(self) -> None:
        """Close the channel."""
        if self._channel is not None:
            self._channel.close()
        self._channel = None

    def _asked(self) -> list[Any]:
        """Start a call for each port."""
        if self._channel is None:
            self._channel, self._metadata = reopened(self._target)
        stub = gnmi_pb2_grpc.gNMIStub(self._channel)
        return [
            stub.Get.future(request, timeout=self._timeout_s, metadata=self._metadata)
            for _, request in self._ports
        ]

    def _lost(self, readings: Sequence[Reading], calls: Sequence[Any]) -> PortError | None:
        """Return the error of the switch, if it cannot be reached or refuses every login."""
        for one in readings:
            if isinstance(one, SwitchAway | SwitchUntrusted):
                return one
        if all(call.code() in LOGIN_REFUSALS for call in calls):
            return failure(self._target, self._target.address, calls[0])
        return None

    def _reading(self, port: GnmiPort, call: Any) -> Reading:
        try:
            return _counters(port, call.result())
        except grpc.RpcError as error:
            return failure(self._target, str(port), error)
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
