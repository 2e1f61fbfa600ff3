"""Bodies of the messages that carry counters: MARKS and PORT."""

import struct

from xco.errors import Malformed
from xco.protocol.checks import (
    AGENT,
    DIGEST_BYTES,
    NODES_MAX,
    PORTS_MAX,
    check_destination,
    check_instants,
    check_length,
    check_zero,
)
from xco.protocol.messages import Header, Marks, Port, PortCounts

_MARKS = struct.Struct("<32sHHHHQQQQQQ")
_PORTS = struct.Struct("<32sHHI")
_PORT = struct.Struct("<IIQQQQQQQ")


def marks_bytes(message: Marks) -> bytes:
    """Return the body of a MARKS."""
    _check_marks(message)
    counted = message.packets, message.bytes, message.marks
    promised = message.weight, message.guarantee_mbps
    rates = message.offer_bps, message.wants_bps
    return _MARKS.pack(message.digest, message.to, *promised, 0, message.read_ns, *counted, *rates)


def port_bytes(message: Port) -> bytes:
    """Return the body of a PORT."""
    _check_digest(message.digest)
    _check_ports(message)
    entries = (
        _PORT.pack(
            entry.source,
            entry.target,
            entry.read_ns,
            entry.packets,
            entry.bytes,
            entry.coordinated_bytes,
            entry.marks,
            entry.drops,
            entry.backlog_bytes,
        )
        for entry in message.ports
    )
    return _PORTS.pack(message.digest, len(message.ports), 0, 0) + b"".join(entries)


def _check_digest(digest: bytes) -> None:
    if len(digest) != DIGEST_BYTES:
        raise Malformed("digest", f"{len(digest)} bytes, not {DIGEST_BYTES}")


def _check_marks(message: Marks) -> None:
    _check_digest(message.digest)
    check_destination("to", message.to)
    check_instants(read_ns=message.read_ns)
    if message.to == message.header.host:
        raise Malformed("to", "a host does not write to itself")
    if message.marks > message.packets:
        raise Malformed("marks", f"{message.marks} of {message.packets} packets")


def _check_ports(message: Port) -> None:
    if len(message.ports) > PORTS_MAX:
        raise Malformed("count", f"{len(message.ports)} ports, at most {PORTS_MAX}")
    for port in message.ports:
        _check_port(port)
        if message.header.host not in (AGENT, port.target):
            raise Malformed("target", f"host {message.header.host} counts only at its own port")
    if len({(port.source, port.target) for port in message.ports}) < len(message.ports):
        raise Malformed("port", "named twice")


def _check_port(port: PortCounts) -> None:
    check_instants(read_ns=port.read_ns)
    for field, node in (("source", port.source), ("target", port.target)):
        if not 0 <= node < NODES_MAX:
            raise Malformed(field, f"{node} is no node")
    if port.source == port.target:
        raise Malformed("target", "the port's own node")
    if port.coordinated_bytes > port.bytes:
        raise Malformed("coordinated_bytes", f"{port.coordinated_bytes} of {port.bytes}")


def read_marks(header: Header, body: bytes) -> Marks:
    """Return the MARKS of a body."""
    check_length(body, _MARKS.size)
    digest, to, weight, guarantee, reserved, read_ns, *counted, offer, wants = _MARKS.unpack(body)
    packets, count, marks = counted
    check_zero(reserved)
    told = packets, count, marks, digest, offer, wants, weight, guarantee
    message = Marks(header, to, read_ns, *told)
    _check_marks(message)
    return message


def read_port(header: Header, body: bytes) -> Port:
    """Return the PORT of a body."""
    if len(body) < _PORTS.size:
        raise Malformed("length", f"a body of {len(body)} bytes")
    digest, count, *reserved = _PORTS.unpack_from(body)
    check_length(body, _PORTS.size + count * _PORT.size)
    check_zero(*reserved)
    ports = tuple(
        PortCounts(source, target, read_ns, packets, all_bytes, marks, drops, backlog, coordinated)
        for source, target, read_ns, packets, all_bytes, coordinated, marks, drops, backlog in (
            _PORT.iter_unpack(body[_PORTS.size :])
        )
    )
    message = Port(header, digest, ports)
    _check_ports(message)
    return message
