"""Reads ports of a switch that speaks OpenFlow 1.3, such as Open vSwitch."""

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from xco.errors import PortError, PortGone, PortUncounted, SwitchAway, SwitchGarbled, SwitchRefused
from xco.ports import openflow_codec as codec
from xco.ports.openflow_codec import Message, Sent, Type
from xco.ports.reader import UNCOUNTED, Counters, Reading

_LARGEST: Final = 1 << 16
_HELLO_FAILED: Final = 0
_BAD_REQUEST: Final = 1
_BAD_PORT: Final = 11
_QUEUE_FAILED: Final = 9
_QUEUE_PORTS: Final = 0
_QUEUE_QUEUES: Final = 1
_ABSENT: Final = frozenset(
    {(_BAD_REQUEST, _BAD_PORT), (_QUEUE_FAILED, _QUEUE_PORTS), (_QUEUE_FAILED, _QUEUE_QUEUES)}
)
"""Errors for a port or queue that does not exist: type and code."""
_VERSION_FIX: Final = "have it speak OpenFlow 1.3: ovs-vsctl set bridge BRIDGE protocols=OpenFlow13"


@dataclass(frozen=True, slots=True)
class PortNumber:
    """A port by its OpenFlow number; of one queue if `queue` is not None."""

    port: int
    queue: int | None = None

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"port {self.port}" + ("" if self.queue is None else f", queue {self.queue}")


class OpenFlowReader:
    """Ports of one switch, over one connection to its passive listener.

    OpenFlow counts no marks and no backlog. A queue's drops are its tx_errors ("dropped due to
    overrun"), a port's its tx_dropped.
    """

    def __init__(self, switch: str, ports: Sequence[PortNumber], *, timeout_s: float = 1.0) -> None:
        """Take "tcp:ADDRESS:PORT" or "unix:PATH"; the timeout is that of all answers together."""
        self._switch, self._ports, self._timeout_s = switch, ports, timeout_s
        self._connection: _Connection | None = None

    def read(self) -> Sequence[Reading]:
        """Return a reading for each port.

        Raises:
            SwitchAway, SwitchGarbled, SwitchRefused: none can be read; connects again next time.
        """
        try:
            if self._connection is None:
                self._connection = _Connection(self._switch, self._timeout_s)
            return self._connection.readings(self._ports)
        except OSError as error:
            self.close()
            raise _away(self._switch, error) from error
        except PortError as error:
            self.close()
            raise type(error)(self._switch, error.problem, error.fix) from error

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _away(switch: str, error: OSError) -> SwitchAway:
    slow = isinstance(error, TimeoutError)
    problem = "does not answer in time" if slow else error.strerror or str(error)
    fix = "check that it runs and listens: ovs-vsctl set-controller BRIDGE ptcp:6653:127.0.0.1"
    return SwitchAway(switch, problem, fix)


class _Connection:
    """A connection after HELLO. Every method raises OSError or PortError if it fails."""

    def __init__(self, switch: str, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._until = time.monotonic() + timeout_s
        self._stream, self._waiting = codec.Stream(), list[Message]()
        self._xid = 1
        self._socket = _connected(switch, timeout_s)
        try:
            self._greet()
        except (OSError, PortError):
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def readings(self, ports: Sequence[PortNumber]) -> list[Reading]:
        """Request all statistics at once, then gather the answers in whatever order."""
        self._until = time.monotonic() + self._timeout_s
        answers = _Answers({self._next(): port for port in ports})
        self._send(answers.requests())
        while not answers.complete:
            answers.take(self._message())
        return answers.readings()

    def _greet(self) -> None:
        self._send(codec.encoded(Message(codec.VERSION, Type.HELLO, self._next())))
        while True:
            message = self._received()
            if message.type == Type.ERROR and codec.error(message)[0] == _HELLO_FAILED:
                raise SwitchRefused("OpenFlow", "does not speak OpenFlow 1.3", _VERSION_FIX)
            if message.type != Type.HELLO:
                raise SwitchGarbled("OpenFlow", f"begins with a message of type {message.type}")
            if message.version < codec.VERSION:
                raise SwitchRefused("OpenFlow", f"speaks version {message.version}", _VERSION_FIX)
            return

    def _message(self) -> Message:
        """Return the next message, and answer requests for an echo."""
        while True:
            message = self._received()
            codec.check_version(message)
            if message.type != Type.ECHO_REQUEST:
                return message
            answer = Message(codec.VERSION, Type.ECHO_REPLY, message.xid, message.body)
            self._send(codec.encoded(answer))

    def _received(self) -> Message:
        while not self._waiting:
            self._socket.settimeout(max(self._until - time.monotonic(), 0.001))
            data = self._socket.recv(_LARGEST)
            if not data:
                raise ConnectionResetError("closed the connection")
            self._waiting += self._stream.messages(data)
            if time.monotonic() > self._until:
                raise TimeoutError
        return self._waiting.pop(0)

    def _send(self, data: bytes) -> None:
        self._socket.settimeout(max(self._until - time.monotonic(), 0.001))
        self._socket.sendall(data)

    def _next(self) -> int:
        self._xid = self._xid % 0xFFFFFFFF + 1
        return self._xid


class _Answers:
    """Gathers the answers to one request for each port."""

    def __init__(self, asked: dict[int, PortNumber]) -> None:
        """Take the ports by the xid of their request."""
        self._asked = asked
        self._found: dict[int, list[Sent]] = {xid: [] for xid in asked}
        self._failed: dict[int, PortError] = {}
        self._open = set(asked)

    @property
    def complete(self) -> bool:
        """Whether every port has its answer."""
        return not self._open

    def requests(self) -> bytes:
        return b"".join(codec.request(one.port, one.queue, xid) for xid, one in self._asked.items())

    def take(self, message: Message) -> None:
        """Keep an answer; other messages, such as changes of ports, are of no interest."""
        xid, more = message.xid, False
        if xid not in self._open or message.type not in (Type.ERROR, Type.MULTIPART_REPLY):
            return
        if message.type == Type.ERROR:
            self._failed[xid] = _refused(self._asked[xid], *codec.error(message))
        else:
            entries, more = codec.statistics(message)
            self._found[xid] += entries
        if not more:
            self._open.remove(xid)

    def readings(self) -> list[Reading]:
        return [
            self._failed.get(xid) or _reading(port, self._found[xid])
            for xid, port in self._asked.items()
        ]


def _connected(switch: str, timeout_s: float) -> socket.socket:
    scheme, _, where = switch.partition(":")
    if scheme == "unix":
        return _connected_here(where, timeout_s)
    address, _, port = where.rpartition(":")
    made = socket.create_connection((address.strip("[]"), int(port)), timeout_s)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _connected_here(path: str, timeout_s: float) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(timeout_s)
    try:
        made.connect(path)
    except OSError:
        made.close()
        raise
    return made


def _refused(port: PortNumber, kind: int, code: int) -> PortError:
    if (kind, code) in _ABSENT:
        return _gone(port)
    return SwitchRefused(str(port), f"refused with error {kind}, code {code}")


def _gone(port: PortNumber) -> PortGone:
    queue = "correct `queue`: ovs-vsctl list QoS shows which exist"
    fix = (
        queue if port.queue is not None else "correct `number`: ovs-vsctl get Interface NAME ofport"
    )
    return PortGone(str(port), "the switch does not have it", fix)


def _reading(port: PortNumber, entries: Sequence[Sent]) -> Reading:
    mine = [one for one in entries if (one.port, one.queue) == (port.port, port.queue)]
    if not mine:
        return _gone(port)
    sent = mine[0]
    if UNCOUNTED in (sent.packets, sent.bytes):
        return PortUncounted(str(port), "the switch does not count what leaves it")
    return Counters(sent.packets, sent.bytes, drops=0 if sent.drops == UNCOUNTED else sent.drops)
