"""The agent's datagrams: to every controller, and their answers."""

import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from xco.errors import WireError
from xco.protocol.keys import HostKeys
from xco.protocol.messages import Port, Welcome
from xco.protocol.wire import DATAGRAM_MAX, decode, encode

_MOST: Final = 64
"""Datagrams that are read at a time: a flood must not hold up the next look."""


class Controllers:
    """A socket for each controller; what cannot be sent now is lost, as any datagram may be."""

    def __init__(self, addresses: Sequence[tuple[str, int]], keys: HostKeys) -> None:
        """Open the sockets. Raises OSError."""
        self._keys = keys
        self._selector = selectors.DefaultSelector()
        for address in addresses:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            made = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self._selector.register(made, selectors.EVENT_READ, address)

    def close(self) -> None:
        """Close the sockets."""
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()

    def send(self, message: Port) -> None:
        """Send a message to every controller."""
        datagram = encode(message, self._keys.up)
        for key in self._selector.get_map().values():
            assert isinstance(key.fileobj, socket.socket)
            with suppress(OSError):  # unreachable, or no room: the next message makes up for it
                key.fileobj.sendto(datagram, key.data)

    def answers(self, until_ns: int) -> Iterator[Welcome]:
        """Yield answers until an instant of the monotonic clock; drop what is not authentic."""
        while (left_ns := until_ns - time.monotonic_ns()) > 0:
            for key, _ in self._selector.select(left_ns / 1e9):
                assert isinstance(key.fileobj, socket.socket)
                yield from self._received(key.fileobj, key.data)

    def _received(self, ready: socket.socket, address: tuple[str, int]) -> Iterator[Welcome]:
        for _ in range(_MOST):
            try:
                datagram, origin = ready.recvfrom(DATAGRAM_MAX + 1)
            except OSError:
                return
            if origin[:2] != address:
                continue
            with suppress(WireError):
                message = decode(datagram, self._keys.down)
                if isinstance(message, Welcome):
                    yield message
