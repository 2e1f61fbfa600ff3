"""Traffic source: a UDP flood or a TCP flow, at a rate that can be changed.

Each line on standard input is a new rate in packets/s, and for UDP, optionally after a space, the
new bytes of data in a packet; the end of the input stops the source.

UDP: one send() passes up to 64 packets to the kernel, which it splits before the veth (UDP_SEGMENT,
udp(7)), so that the source costs far less than one send() for each packet. By default, a packet is
an Ethernet frame of 64 bytes as counted by the kernel, without its checksum: 14 Ethernet + 20 IPv4
+ 8 UDP + 22 payload, the paper's packet size (section 6).

TCP: CUBIC with 524 bytes of data in a segment, as the paper's TCP flows (section 6).
"""

import argparse
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from lab.programs.pacer import Pacer

PAYLOAD: Final = 22
"""Bytes of data that make a frame of 64."""
HEADERS: Final = 42
"""Bytes of a frame in addition to its data: 14 Ethernet + 20 IPv4 + 8 UDP; the checksum is not
counted."""
LARGEST_PAYLOAD: Final = 1472
"""Bytes of data that fill a frame of 1514, the largest at an MTU of 1500."""
LARGEST_DATAGRAM: Final = 65_507
"""Maximum bytes of data of one send() over IPv4."""
BATCH: Final = 64
LONGEST_TICK_S: Final = 0.001
SHORTEST_TICK_S: Final = 0.0002
DISCARD_PORT: Final = 9
TCP_DATA: Final = 524
TCP_MAX_SEGMENT: Final = TCP_DATA + 12
"""The segment size that leaves ``TCP_DATA`` after the 12 bytes of the timestamp option."""
UNPACED: Final = 2**64 - 1

_UDP_SEGMENT: Final = 103
_SO_MAX_PACING_RATE: Final = 47
_SEND_BUFFER: Final = 1 << 20


class Order(NamedTuple):
    """The request in a line of the standard input."""

    rate: float
    """Packets/s."""
    payload: int | None
    """Bytes of data in a packet; None keeps the size."""


class Sender(Protocol):
    """Sends a number of packets."""

    def __call__(self, packets: int) -> None:
        """Send them now."""
        ...


def open_udp(source: str, destination: str, payload: int = PAYLOAD) -> Sender:
    """Return a sender of UDP packets, batched if the kernel can split batches."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((source, 0))
    sock.connect((destination, DISCARD_PORT))
    try:
        sock.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, payload)
        sock.send(bytes(2 * payload))
    except OSError:  # an old kernel, or an interface without support
        sock.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, 0)
        return _singles(sock, payload)
    return _batches(sock, payload)


def batch_of(payload: int) -> int:
    """Return how many packets with this much data one send() takes."""
    return min(BATCH, LARGEST_DATAGRAM // payload)


def _batches(sock: socket.socket, payload: int) -> Sender:
    batch = batch_of(payload)
    full = bytes(batch * payload)

    def send(packets: int) -> None:
        whole, rest = divmod(packets, batch)
        for _ in range(whole):
            sock.send(full)
        if rest:
            sock.send(full[: rest * payload])

    return send


def _singles(sock: socket.socket, payload: int) -> Sender:
    data = bytes(payload)

    def send(packets: int) -> None:
        for _ in range(packets):
            sock.send(data)

    return send


def tick(rate: float) -> float:
    """Return the seconds between two batches: time for one full batch, within bounds.

    A burst longer than a batch could overflow the 256 packets that a veth with NAPI holds.
    """
    return min(max(SHORTEST_TICK_S, BATCH / max(rate, 1.0)), LONGEST_TICK_S)


def flood(opened: Callable[[int], Sender], order: Order) -> None:
    """Send what is due at every tick, by the latest order, until the standard input ends.

    Args:
        opened: returns a sender of packets with this much data.
        order: the first order.
    """
    rate, send = order.rate, opened(order.payload or PAYLOAD)
    report_ready()
    wake = time.monotonic()
    pacer = Pacer(rate, wake)
    while True:
        now = time.monotonic()
        wake = max(wake + tick(rate), now)
        if select.select([0], [], [], wake - now)[0]:
            new = read_order()
            if new is None:
                return
            if new.payload is not None:
                send = opened(new.payload)
            rate = new.rate
            pacer.set_rate(rate, time.monotonic())
        send(pacer.due(time.monotonic()))


def read_order() -> Order | None:
    """Return the newest order on the standard input, None at its end."""
    return order_of(os.read(0, 4096).decode())


def order_of(text: str) -> Order | None:
    """Return the order in some lines: the last rate, and the last size in any of them."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    payloads = [int(words[1]) for words in lines if len(words) > 1]
    return Order(float(lines[-1][0]), payloads[-1] if payloads else None)


def open_tcp(source: str, destination: str, port: int) -> socket.socket:
    """Return a non-blocking connection with the paper's segment size and congestion control."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, TCP_MAX_SEGMENT)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    sock.bind((source, 0))
    sock.connect((destination, port))
    sock.setblocking(False)
    return sock


def pace_tcp(sock: socket.socket, rate: float) -> None:
    """Limit a connection to a rate in segments/s; 0: no limit (SO_MAX_PACING_RATE, socket(7))."""
    limit = int(rate * TCP_DATA) if rate > 0 else UNPACED
    sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("=Q", limit))


def stream(sock: socket.socket) -> None:
    """Send as fast as the connection allows, until the standard input ends."""
    data = bytes(1 << 16)
    while True:
        readable, writable, _ = select.select([0], [sock], [])
        if readable:
            order = read_order()
            if order is None:
                return
            pace_tcp(sock, order.rate)
        if writable:
            sock.send(data)


def main() -> None:
    """Run the source that the command line describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="an IPv4 address of this host")
    parser.add_argument("destination", help="the IPv4 address to send to")
    parser.add_argument("rate", type=float, help="packets/s (TCP: segments/s, 0 for full speed)")
    parser.add_argument("--tcp", type=int, metavar="PORT", help="send a TCP flow to this port")
    parser.add_argument(
        "--payload", type=int, default=PAYLOAD, metavar="BYTES", help="of data in a UDP packet"
    )
    options = parser.parse_args()
    if options.tcp is None:
        opened = partial(open_udp, options.source, options.destination)
        flood(opened, Order(options.rate, options.payload))
    else:
        connection = open_tcp(options.source, options.destination, options.tcp)
        pace_tcp(connection, options.rate)
        report_ready()
        stream(connection)


def report_ready() -> None:
    """Report to the lab that traffic flows from now on."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
