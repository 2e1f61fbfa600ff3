"""How many packets the sockets of an endpoint can have in its queues, as pure arithmetic.

The kernel charges a packet to its socket until the device has it, and stops the socket when its
send buffer is full. So a queue that has room for all send buffers never overflows.
"""

from typing import Final

import msgspec

from zovn.check.facts import Facts, Socket

SMALLEST_CHARGE: Final = 768
"""Bytes that the kernel charges for the smallest packet: a buffer of 512, and its descriptor."""
LARGEST_PACKET: Final = 1 << 16
"""Bytes; the last packet may exceed the buffer."""
SOCKETS: Final = 8
"""Sockets to allow for, unless more exist."""


class Demand(msgspec.Struct, frozen=True):
    """What a queue must hold."""

    sockets: int
    packets: int
    bytes: int


def demand(facts: Facts, expected: int = SOCKETS) -> Demand:
    """Return what queues must hold for the open sockets, and for more up to those expected."""
    settings = facts.settings
    spare = max(settings.send_default, settings.send_largest)
    charges = [_charge(socket, settings.tcp_limit) for socket in facts.sockets]
    charges += [spare] * (expected - len(charges))
    packets = sum(_packets(charge) for charge in charges)
    return Demand(len(charges), packets, sum(charges) + LARGEST_PACKET * len(charges))


def _charge(socket: Socket, tcp_limit: int) -> int:
    """Return the bytes that a socket may have in queues; TCP's buffer grows by itself."""
    return tcp_limit if socket.protocol == "tcp" else socket.send_buffer


def _packets(charge: int) -> int:
    return -(-charge // SMALLEST_CHARGE) + 1
