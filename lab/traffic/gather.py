"""Connections to servers of reads, all of which are asked at the same instant."""

import selectors
import socket
import struct
from collections.abc import Sequence
from typing import Final

from lab.errors import LabError

REQUEST: Final = struct.Struct("!I")
"""The bytes to answer with, as in lab/traffic/barrier.c."""
BUFFER_BYTES: Final = 1 << 20
CONNECT_S: Final = 10.0


class Gather:
    """Open connections, kept open; a query is complete when all have answered.

    Raises:
        OSError: a server refuses, or does not accept within ten seconds.
    """

    def __init__(self, addresses: Sequence[str], port: int) -> None:
        """Connect to all of them."""
        self._buffer = bytearray(BUFFER_BYTES)
        self._servers = [connect(address, port) for address in addresses]
        self._selector = selectors.DefaultSelector()
        for server in self._servers:
            self._selector.register(server, selectors.EVENT_READ)

    def ask(self, size: int) -> int:
        """Ask every server for so many bytes, wait for all of them, and return their number.

        Raises:
            LabError: a server has gone.
        """
        try:
            return self._ask(size)
        except ConnectionError as error:
            raise LabError(f"a server has gone: {error}") from error

    def _ask(self, size: int) -> int:
        left = dict.fromkeys(self._servers, size)
        request = REQUEST.pack(size)
        for server in self._servers:
            server.sendall(request)
        while left:
            for key, _ in self._selector.select():
                assert isinstance(key.fileobj, socket.socket)
                self._take(key.fileobj, left)
        return size * len(self._servers)

    def _take(self, server: socket.socket, left: dict[socket.socket, int]) -> None:
        # MSG_TRUNC discards the data without copying it (tcp(7))
        length = server.recv_into(self._buffer, BUFFER_BYTES, socket.MSG_TRUNC)
        if not length:
            raise ConnectionResetError("it closed its connection")
        left[server] -= length
        if left[server] == 0:
            del left[server]

    def close(self) -> None:
        """Close the connections."""
        self._selector.close()
        for server in self._servers:
            server.close()


def connect(address: str, port: int) -> socket.socket:
    """Connect with CUBIC and without Nagle's delay.

    Raises:
        OSError: the server refuses, or does not accept within ten seconds.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        tune(made)
        made.settimeout(CONNECT_S)
        made.connect((address, port))
    except BaseException:
        made.close()
        raise
    made.settimeout(None)
    return made


def tune(made: socket.socket) -> None:
    """Set CUBIC, whatever the kernel's default is, and send small requests immediately."""
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
