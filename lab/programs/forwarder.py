"""A router in user space: one process that forwards IPv4 between two interfaces, both ways.

It decrements the TTL, updates the header's checksum (RFC 1624) and writes the next hop's MAC
addresses, as a router must (RFC 1812, section 5.3.1). It drops packets to unknown destinations.
"""

import errno
import gc
import select
import socket
import sys
from typing import Final

import msgspec

Headers = list[bytes | None]
"""The first 12 bytes of a frame to each neighbour, by the last byte of its IPv4 address."""

MIN_FRAME: Final = 34
MAX_FRAME: Final = 2048
BATCH: Final = 32
"""Packets of one direction before the other direction is served."""
BUFFER_BYTES: Final = 1 << 20

_ETH_P_IP: Final = 0x0800
_SOL_PACKET: Final = 263
_PACKET_QDISC_BYPASS: Final = 20
_PACKET_IGNORE_OUTGOING: Final = 23
_SO_SNDBUFFORCE: Final = 32
_SO_RCVBUFFORCE: Final = 33
_TTL, _CHECKSUM, _LAST_OCTET = 22, 24, 33
_BYTE: Final = 0xFF


class PortConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One interface: its name, the router's MAC address on it, and its neighbours."""

    interface: str
    mac: str
    neighbours: dict[str, str]
    """IPv4 address to MAC address; all of one /24 network."""


def headers(port: PortConfig) -> Headers:
    """Return the table of Ethernet addresses for frames that leave through the port."""
    table: Headers = [None] * 256
    for address, mac in port.neighbours.items():
        octet = socket.inet_aton(address)[3]
        table[octet] = _mac(mac) + _mac(port.mac)
    return table


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def rewrite(frame: bytearray, table: Headers) -> bool:
    """Rewrite a received frame for sending; return False to drop it."""
    header, ttl = table[frame[_LAST_OCTET]], frame[_TTL]
    if header is None or ttl <= 1:
        return False
    frame[:12] = header
    frame[_TTL] = ttl - 1
    high = frame[_CHECKSUM]
    if high < _BYTE:  # decrementing the TTL adds 0x0100 to the checksum
        frame[_CHECKSUM] = high + 1
    else:
        _carry(frame)
    return True


def _carry(frame: bytearray) -> None:
    low = frame[_CHECKSUM + 1] + 1  # ones' complement: the carry is added at the end
    frame[_CHECKSUM], frame[_CHECKSUM + 1] = low >> 8, low & _BYTE


def open_port(interface: str) -> socket.socket:
    """Return a non-blocking packet socket for the IPv4 frames of one interface (packet(7))."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    sock.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, BUFFER_BYTES)
    sock.bind((interface, _ETH_P_IP))
    sock.setblocking(False)
    return sock


class Direction:
    """Forwards from one port to the other."""

    def __init__(self, receiver: socket.socket, sender: socket.socket, table: Headers) -> None:
        self._receive, self._send, self._table = receiver.recv_into, sender.send, table
        self._frame = bytearray(MAX_FRAME)
        self._view = memoryview(self._frame)

    def forward(self) -> bool:
        """Forward at most one batch; return whether more may be waiting."""
        receive, send, table = self._receive, self._send, self._table  # locals are faster
        frame, view = self._frame, self._view
        try:
            for _ in range(BATCH):
                length = receive(frame)
                if length >= MIN_FRAME and rewrite(frame, table):
                    send(view[:length])
        except BlockingIOError:  # nothing more to read, or no room to send: then a router drops
            return False
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            # the receiver's queue is full: this packet is lost, as in any router
        return True


def run(directions: list[Direction], sockets: list[socket.socket]) -> None:
    """Forward without end; wait only when no direction has packets."""
    poller = select.poll()
    for sock in sockets:
        poller.register(sock, select.POLLIN)
    while True:
        busy = [direction.forward() for direction in directions]  # all are served in turn
        if not any(busy):
            poller.poll()


def main() -> None:
    """Forward between the two ports that the command line specifies as JSON."""
    first, second = msgspec.json.decode(sys.argv[1], type=tuple[PortConfig, PortConfig])
    left, right = open_port(first.interface), open_port(second.interface)
    directions = [
        Direction(left, right, headers(second)),
        Direction(right, left, headers(first)),
    ]
    gc.disable()  # the loop creates no cycles; collections would only disturb the rate
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    run(directions, [left, right])


if __name__ == "__main__":
    main()
