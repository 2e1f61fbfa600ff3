"""Sockets towards one host: CURVE on TCP, short queues, no message too large.

Options are those of zmq_setsockopt(3). libzmq reconnects by itself, but not after a refused
handshake or an oversized message. So the owner of a socket must reconnect when it has been silent
for too long.
"""

import resource
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Final

import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

from policer.contracts.host import Host
from policer.errors import LinkError
from policer.link.keys import WHERE, Keys

Socket = zmq.asyncio.Socket

MAX_TELEMETRY: Final = 4 << 20
"""Bytes; a tick of 4,096 routers takes about half of it."""
MAX_REPLY: Final = 1 << 20
"""Bytes; the outcomes of a whole batch, each with a page of text."""
QUEUE: Final = 16
"""Messages that may wait in either direction; of the largest ones, 64 MiB per host."""
MOST_FILES: Final = 65_536
_OPTIONS: Final = {
    zmq.LINGER: 0,
    zmq.SNDHWM: QUEUE,
    zmq.RCVHWM: QUEUE,
    zmq.HANDSHAKE_IVL: 5000,
    zmq.HEARTBEAT_IVL: 2000,  # detects a host that lost its power
    zmq.HEARTBEAT_TIMEOUT: 6000,
    zmq.RECONNECT_IVL: 100,
    zmq.RECONNECT_IVL_MAX: 3000,
}
_FATES: Final[Mapping[int, str]] = {
    zmq.EVENT_CONNECT_RETRIED: "no process listens there",
    zmq.EVENT_HANDSHAKE_SUCCEEDED: "the daemon is connected but silent",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "the handshake fails (is server_key the daemon's own?)",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "the handshake fails (is server_key the daemon's own?)",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "the daemon does not admit this policer's key (put its .key "
    "file into the daemon's server.authorised_keys_dir, and restart the daemon)",
}
"""Meanings of the events of a connecting socket (zmq_socket_monitor(3))."""
_monitors = count()


@cache
def shared_context() -> zmq.asyncio.Context:
    """Return the one context of all links of this process, with room for hundreds of hosts.

    A host takes four descriptors, and more while connecting: the soft limit is raised to the hard
    one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    context = zmq.asyncio.Context()
    context.set(zmq.MAX_SOCKETS, MOST_FILES)
    return context


class Dialled:
    """A socket that connects to a host and keeps trying; records why it has not succeeded yet."""

    def __init__(self, kind: int, host: Host, keys: Keys | None) -> None:
        """Start to connect: a DEALER to the host's requests, a SUB to its telemetry.

        Raises:
            LinkError: says which part of the host's entry or of the settings is wrong or missing.
        """
        address = host.requests if kind == zmq.DEALER else host.telemetry
        self._monitor: zmq.Socket[bytes] | None = None
        try:
            self.socket: Socket = shared_context().socket(kind)
        except zmq.ZMQError as error:
            raise LinkError(f"{address}: {error.strerror}") from error
        try:
            self._prepare(kind, address, host, keys)
            self.socket.connect(address)
        except zmq.ZMQError as error:
            self.close()
            raise LinkError(f"{address}: {error.strerror}") from error
        except LinkError:
            self.close()
            raise

    def _prepare(self, kind: int, address: str, host: Host, keys: Keys | None) -> None:
        for option, value in _OPTIONS.items():
            self.socket.set(option, value)
        self.socket.set(zmq.MAXMSGSIZE, MAX_REPLY if kind == zmq.DEALER else MAX_TELEMETRY)
        if kind == zmq.SUB:
            self.socket.subscribe(b"")
        if address.startswith("tcp:"):
            self._encrypt(host, keys)
        self._watch()

    def _encrypt(self, host: Host, keys: Keys | None) -> None:
        if keys is None:
            raise LinkError(f"{WHERE}: none is set, and {host.name} is on TCP, which takes keys")
        if host.server_key is None:
            raise LinkError(f"server_key: {host.name} has none, and TCP takes one")
        self.socket.set(zmq.CURVE_SERVERKEY, host.server_key.encode())
        self.socket.set(zmq.CURVE_PUBLICKEY, keys.public)
        self.socket.set(zmq.CURVE_SECRETKEY, keys.secret)

    def _watch(self) -> None:
        address = f"inproc://policer.link.{next(_monitors)}"
        events = 0
        for event in _FATES:
            events |= event
        self.socket.monitor(address, events)
        self._monitor = zmq.Context.shadow(shared_context()).socket(zmq.PAIR)
        self._monitor.connect(address)

    def fate(self) -> str:
        """Return the state of the connection, by the last event of libzmq."""
        words = "it was heard before" if self._monitor is None else "there is no connection"
        with suppress(zmq.Again):  # no more events
            while self._monitor is not None:
                told = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
                words = _FATES.get(told["event"], words)
        return words

    def succeeded(self) -> None:
        """Stop monitoring the connection: the host was heard."""
        if self._monitor is not None:
            self.socket.monitor(None, 0)
            self._monitor.close(linger=0)
            self._monitor = None

    def close(self) -> None:
        """Disconnect; unsent messages are dropped."""
        if not self.socket.closed:
            self.succeeded()
            self.socket.close(linger=0)
