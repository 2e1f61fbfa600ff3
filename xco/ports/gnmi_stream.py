"""Reads ports of a switch over gNMI with Subscribe: one stream of samples for all of them."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog

from xco.errors import PortError, SwitchAway
from xco.ports.gnmi import GnmiReader
from xco.ports.gnmi_call import Updates
from xco.ports.gnmi_gather import Gathered
from xco.ports.gnmi_library import grpc
from xco.ports.gnmi_paths import GnmiPort, subscribe_request
from xco.ports.gnmi_tls import GnmiTarget, failure, reopened
from xco.ports.reader import Reading

_REFUSALS: Final = (
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
)
"""Answers of targets that cannot stream, or not these paths or this often."""
_REST_NS: Final = 200_000_000
"""Time to take what is here after readings are due: a flood must not keep them back."""
_READ_NS: Final = 10_000_000_000
"""Time until a read returns without any reading: updates that lead to none must not hold it."""
_log = structlog.get_logger("xco.ports")


class GnmiStream:
    """Ports of one switch; asks for them with Get where the switch refuses to stream."""

    def __init__(
        self,
        target: GnmiTarget,
        ports: Sequence[GnmiPort],
        sample_ns: int,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Prepare the request; connects at the first `read`.

        Raises:
            ConfigError: a path is malformed, or a file cannot be used.
        """
        self._target, self._ports, self._sample_ns, self._now_ns = target, ports, sample_ns, now_ns
        self._request = subscribe_request(ports, sample_ns)
        self._get = GnmiReader(target, ports)
        self._refused = False
        self._channel: Any = None
        self._updates: Updates | None = None
        self._gathered = Gathered(ports, sample_ns, 0)

    def read(self) -> Sequence[Reading | None]:
        """Return what is new of each port; wait until something is.

        Raises:
            SwitchAway: the switch cannot be reached, or sends nothing.
            SwitchUntrusted: its certificate, or the agent's, is not accepted.
            SwitchRefused: it refuses the user.
        """
        try:
            return self._get.read() if self._refused else self._streamed()
        except PortError:
            self.close()
            raise

    def close(self) -> None:
        """End the stream; the next `read` opens one again."""
        if self._updates is not None:
            self._updates.close()
        if self._channel is not None:
            self._channel.close()
        self._updates = self._channel = None
        self._get.close()
        self._refused = False

    def _streamed(self) -> Sequence[Reading | None]:
        updates = self._updates or self._opened()
        try:
            self._take(updates)
        except EOFError as error:
            raise SwitchAway(self._target.address, *error.args) from error
        except grpc.RpcError as error:
            return self._failed(error)
        return self._gathered.readings(updates.as_of_ns(self._now_ns()), self._target.address)

    def _take(self, updates: Updates) -> None:
        """Take answers until readings are due, and then what is here; both have an end."""
        began_ns = self._now_ns()
        while (wait_ns := self._wait_ns(updates, began_ns)) and (answer := updates.next(wait_ns)):
            self._gathered.take(*answer)
        due_ns = self._now_ns()
        while self._now_ns() - due_ns < _REST_NS and (answer := updates.next(0)):
            self._gathered.take(*answer)

    def _wait_ns(self, updates: Updates, began_ns: int) -> int:
        """Return how long to wait; 0: readings are due, or what comes leads to none."""
        if self._gathered.ready():
            return 0
        now_ns = self._now_ns()
        patience_ns = self._gathered.patience_ns(updates.as_of_ns(now_ns))
        return max(0, min(patience_ns, began_ns + _READ_NS - now_ns))

    def _opened(self) -> Updates:
        self._channel, metadata = reopened(self._target)
        self._gathered = Gathered(self._ports, self._sample_ns, self._now_ns())
        self._updates = Updates(self._channel, self._request, metadata)
        return self._updates

    def _failed(self, error: Any) -> Sequence[Reading]:
        """Fall back to Get where the switch refuses to stream; otherwise raise what is wrong."""
        if error.code() not in _REFUSALS:
            raise failure(self._target, self._target.address, error)
        _log.warning(
            "stream_refused", switch=self._target.address, problem=error.details(), now="get"
        )
        self.close()
        self._refused = True
        return self._get.read()
