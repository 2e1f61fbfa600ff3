"""Traffic source: a UDP flood or a TCP flow, at a rate that can be changed.

Each line on standard input is a new rate in packets/s; the end of the input ends the source.

UDP: one send() hands the kernel up to 64 packets, which it cuts apart before the veth
(UDP_SEGMENT, udp(7)), so that the source costs far less than one send() for each packet.
A packet is, if nothing else is asked for, an Ethernet frame of 64 bytes as the kernel counts it,
without its checksum: 14 Ethernet + 20 IPv4 + 8 UDP + 22 payload, the paper's packet size
(section 6).

TCP: CUBIC with 524 bytes of data in a segment, as the paper's TCP flows (section 6).
"""

import argparse
import os
import select
import socket
import struct
import sys
import time
from typing import Final, Protocol

from lab.pacer import Pacer

PAYLOAD: Final = 22
"""Bytes of data that make a frame of 64."""
BATCH: Final = 64
LONGEST_TICK_S: Final = 0.001
SHORTEST_TICK_S: Final = 0.0002
DISCARD_PORT: Final = 9
TCP_DATA: Final = 524
TCP_MAX_SEGMENT: Final = TCP_DATA + 12
"""The segment size that leaves ``TCP_DATA`` once the timestamp option has taken its 12 bytes."""
UNPACED: Final = 2**64 - 1

_UDP_SEGMENT: Final = 103
_SO_MAX_PACING_RATE: Final = 47
_SEND_BUFFER: Final = 1 << 20


class Sender(Protocol):
    """Sends a number of packets."""

    def __call__(self, packets: int) -> None:
        """Send them now."""
        ...


def open_udp(source: str, destination: str, payload: int = PAYLOAD) -> Sender:
    """Return a sender of UDP packets, batched where the kernel can cut batches apart."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((source, 0))
    sock.connect((destination, DISCARD_PORT))
    try:
        sock.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, payload)
        sock.send(bytes(2 * payload))
    except OSError:  # an old kernel, or an interface that cannot do it
        sock.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, 0)
        return _singles(sock, payload)
    return _batches(sock, payload)


def _batches(sock: socket.socket, payload: int) -> Sender:
    full = bytes(BATCH * payload)

    def send(packets: int) -> None:
        whole, rest = divmod(packets, BATCH)
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

    A burst longer than a batch could overrun the 256 packets that a veth with NAPI holds.
    """
    return min(max(SHORTEST_TICK_S, BATCH / max(rate, 1.0)), LONGEST_TICK_S)


def flood(send: Sender, rate: float) -> None:
    """Send at the rate, at every tick what is due, until the standard input ends."""
    wake = time.monotonic()
    pacer = Pacer(rate, wake)
    while True:
        now = time.monotonic()
        wake = max(wake + tick(rate), now)
        if select.select([0], [], [], wake - now)[0]:
            new_rate = read_rate()
            if new_rate is None:
                return
            rate = new_rate
            pacer.set_rate(rate, time.monotonic())
        send(pacer.due(time.monotonic()))


def read_rate() -> float | None:
    """Return the newest rate on the standard input in packets/s, None at its end."""
    lines = os.read(0, 4096).split()
    return float(lines[-1]) if lines else None


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
    """Hold a connection to a rate in segments/s; 0 lets it run (SO_MAX_PACING_RATE, socket(7))."""
    limit = int(rate * TCP_DATA) if rate > 0 else UNPACED
    sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("=Q", limit))


def stream(sock: socket.socket) -> None:
    """Send as fast as the connection takes it, until the standard input ends."""
    data = bytes(1 << 16)
    while True:
        readable, writable, _ = select.select([0], [sock], [])
        if readable:
            rate = read_rate()
            if rate is None:
                return
            pace_tcp(sock, rate)
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
        send = open_udp(options.source, options.destination, options.payload)
        report_ready()
        flood(send, options.rate)
    else:
        connection = open_tcp(options.source, options.destination, options.tcp)
        pace_tcp(connection, options.rate)
        report_ready()
        stream(connection)


def report_ready() -> None:
    """Tell the lab that traffic flows from now on."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
