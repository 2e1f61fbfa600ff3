"""Messages between the controller, the local coordinators and the port agents.

xco/core/common/message.h lays them out in C.

One datagram is one message: a header, a body, and an authenticator over both (keyed BLAKE2b of 16
bytes; xco/protocol/keys.py has the keys). docs/reference/xco-protocol.md describes the protocol.
"""

import hashlib
import hmac
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from xco.errors import Forged, Malformed, Stale
from xco.protocol.checks import (
    ADDRESS_BYTES,
    AGENT,
    ANY_VLAN,
    AUTH_BYTES,
    CONTROLLER,
    DIGEST_BYTES,
    ENTRIES_MAX,
    HOSTS_MAX,
    LOCATED_MAX,
    MAC_BYTES,
    NODES_MAX,
    NOWHERE,
    PORTS_MAX,
    TIME_MAX,
    VLAN_MOST,
    check_destination,
    check_instants,
    check_length,
    check_zero,
    enum_of,
)
from xco.protocol.counters import marks_bytes, port_bytes, read_marks, read_port
from xco.protocol.messages import (
    Directive,
    Flag,
    Header,
    Hello,
    Kind,
    Leave,
    Located,
    Map,
    Marks,
    Message,
    Mode,
    Permit,
    Places,
    Port,
    PortCounts,
    Report,
    Status,
    Strategy,
    Waiting,
    Welcome,
)

__all__ = [
    "AGENT",
    "ANY_VLAN",
    "CONTROLLER",
    "ENTRIES_MAX",
    "HOSTS_MAX",
    "LOCATED_MAX",
    "NODES_MAX",
    "NOWHERE",
    "PORTS_MAX",
    "TIME_MAX",
    "VLAN_MOST",
    "Directive",
    "Flag",
    "Header",
    "Hello",
    "Kind",
    "Leave",
    "Located",
    "Map",
    "Marks",
    "Message",
    "Mode",
    "Origin",
    "Permit",
    "Places",
    "Port",
    "PortCounts",
    "Report",
    "Status",
    "Strategy",
    "Waiting",
    "Welcome",
    "decode",
    "encode",
]

VERSION: Final = 5
_MAGIC = b"XCO1"
_HEADER = struct.Struct("<4sBBHQQQ")
_HELLO = struct.Struct("<32s")
_WELCOME = struct.Struct("<HBBIQQQQ")
_REPORT = struct.Struct("<HHIQQQ")
_WAITING = struct.Struct("<HIIIHHH")
_DIRECTIVE = struct.Struct("<HBBHHQQQQ")
_PERMIT = struct.Struct("<HHQ")
_MAP = struct.Struct("<HHIQQQQ")
_LOCATED = struct.Struct("<16sHBBH")
DATAGRAM_MAX: Final = _HEADER.size + _REPORT.size + ENTRIES_MAX * _WAITING.size + AUTH_BYTES

_FROM_CONTROLLER = (Welcome.kind, Directive.kind, Map.kind)


def encode(message: Message, key: bytes) -> bytes:
    """Return the authenticated datagram of a message.

    Raises:
        Malformed: a field is out of its range.
    """
    header = message.header
    _check_sender(message.kind, header.host)
    check_instants(sent_ns=header.sent_ns)
    try:
        plain = _HEADER.pack(
            _MAGIC,
            message.kind,
            VERSION,
            header.host,
            header.epoch,
            header.sequence,
            header.sent_ns,
        ) + _WRITERS[message.kind](message)
    except struct.error as error:
        raise Malformed("field", str(error)) from error
    return authenticated(plain, key)


def decode(datagram: bytes, key: bytes) -> Message:
    """Return the message of a datagram; any bytes give a message or one of these errors.

    Raises:
        Malformed: not a message of this protocol and version, or it breaks a rule.
        Forged: the authenticator does not match.
    """
    if not _HEADER.size + AUTH_BYTES <= len(datagram) <= DATAGRAM_MAX:
        raise Malformed("length", f"{len(datagram)} bytes")
    magic, kind, version, host, epoch, sequence, sent_ns = _HEADER.unpack_from(datagram)
    if magic != _MAGIC:
        raise Malformed("magic", repr(magic))
    if version != VERSION:
        raise Malformed("version", f"{version}, not {VERSION}")
    plain, authenticator = datagram[:-AUTH_BYTES], datagram[-AUTH_BYTES:]
    if not hmac.compare_digest(_authenticator(plain, key), authenticator):
        raise Forged("authenticator", "another key, or altered on the way")
    _check_sender(kind, host)
    check_instants(sent_ns=sent_ns)
    reader = _READERS[kind]
    return reader(Header(host, epoch, sequence, sent_ns), plain[_HEADER.size :])


class Origin:
    """State kept of a sender: the highest epoch, and the highest sequence within it."""

    def __init__(self) -> None:
        self.epoch = 0
        self.sequence = 0

    def accept(self, header: Header) -> None:
        """Record an accepted message of the controller.

        Raises:
            Stale: of a lower epoch, a duplicate, or overtaken by a later one.
        """
        if header.epoch < self.epoch:
            raise Stale("epoch", f"{header.epoch} after {self.epoch}")
        if header.epoch == self.epoch and header.sequence <= self.sequence:
            raise Stale("sequence", f"{header.sequence} after {self.sequence}")
        self.epoch, self.sequence = header.epoch, header.sequence


def authenticated(plain: bytes, key: bytes) -> bytes:
    """Return header and body followed by their authenticator."""
    return plain + _authenticator(plain, key)


def _authenticator(plain: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(plain, digest_size=AUTH_BYTES, key=key).digest()


def _check_sender(kind: int, host: int) -> None:
    if kind not in _READERS:
        raise Malformed("type", str(kind))
    agent = host == AGENT and kind != Port.kind
    if (host == CONTROLLER) != (kind in _FROM_CONTROLLER) or agent:
        raise Malformed("host", f"{host} sends no message of type {kind}")


def _hello_bytes(message: Hello) -> bytes:
    if len(message.digest) != DIGEST_BYTES:
        raise Malformed("digest", f"{len(message.digest)} bytes, not {DIGEST_BYTES}")
    return _HELLO.pack(message.digest)


def _welcome_bytes(message: Welcome) -> bytes:
    _check_welcome(message)
    return _WELCOME.pack(
        message.to,
        message.status,
        message.strategy,
        0,
        message.slice_ns,
        message.silence_ns,
        message.echo_sent_ns,
        message.echo_received_ns,
    )


def _report_bytes(message: Report) -> bytes:
    _check_entries(message.waiting)
    check_instants(free_ns=message.free_ns)
    head = _REPORT.pack(
        message.flags,
        len(message.waiting),
        0,
        message.directive_sequence,
        message.gave_up_sequence,
        message.free_ns,
    )
    return head + b"".join(_waiting_bytes(entry) for entry in message.waiting)


def _waiting_bytes(entry: Waiting) -> bytes:
    now = entry.destination, entry.backlog_bytes, entry.rate_kbps
    low, high = entry.sent_bytes & 0xFFFF_FFFF, entry.sent_bytes >> 32
    return _WAITING.pack(*now, low, high, entry.weight, entry.guarantee_mbps)


def _directive_bytes(message: Directive) -> bytes:
    check_destination("to", message.to)
    _check_entries(message.permits)
    _check_times(message)
    head = _DIRECTIVE.pack(
        message.to,
        message.mode,
        0,
        len(message.permits),
        0,
        message.start_ns,
        message.end_ns,
        message.echo_sent_ns,
        message.echo_received_ns,
    )
    entries = (_PERMIT.pack(entry.destination, 0, entry.rate_bps) for entry in message.permits)
    return head + b"".join(entries)


def _map_bytes(message: Places | Map) -> bytes:
    _check_map(message)
    versions = message.since, message.until, message.last, message.heard
    head = _MAP.pack(message.to, len(message.entries), 0, *versions)
    entries = (
        _LOCATED.pack(entry.address, entry.vlan, entry.kind, 0, entry.host)
        for entry in message.entries
    )
    return head + b"".join(entries)


def _check_map(message: Places | Map) -> None:
    down = isinstance(message, Map)
    if not (0 <= message.to < HOSTS_MAX if down else message.to == CONTROLLER):
        raise Malformed("to", f"{message.to} does not read this")
    if not message.since <= message.until <= message.last < TIME_MAX:
        raise Malformed("versions", f"{message.since}, {message.until}, {message.last}")
    if len(message.entries) > LOCATED_MAX:
        raise Malformed("count", f"{len(message.entries)} addresses, at most {LOCATED_MAX}")
    for entry in message.entries:
        _check_located(entry)
        known = 0 <= entry.host < HOSTS_MAX if down else entry.host == message.header.host
        if not known and entry.host != NOWHERE:
            raise Malformed("located", f"{entry.host} is not a host that may have it")
        if entry.kind is Kind.HOST and not (down and known and _is_of_host(entry)):
            raise Malformed("located", f"{entry.host} is not the host that it names")


def _is_of_host(entry: Located) -> bool:
    number = entry.host.to_bytes(2, "little").ljust(ADDRESS_BYTES, b"\0")
    return entry.address == number and entry.vlan == ANY_VLAN


def _check_located(entry: Located) -> None:
    if len(entry.address) != ADDRESS_BYTES:
        raise Malformed("address", f"{len(entry.address)} bytes, not {ADDRESS_BYTES}")
    if entry.kind is Kind.MAC and (entry.address[0] & 1 or any(entry.address[MAC_BYTES:])):
        raise Malformed("address", f"{entry.address.hex()} is not the MAC of one station")
    if not 0 <= entry.vlan <= VLAN_MOST and entry.vlan != ANY_VLAN:
        raise Malformed("vlan", str(entry.vlan))


def _check_entries(entries: Sequence[Waiting] | Sequence[Permit]) -> None:
    if len(entries) > ENTRIES_MAX:
        raise Malformed("count", f"{len(entries)} entries, at most {ENTRIES_MAX}")
    for entry in entries:
        check_destination("destination", entry.destination)
    if len({entry.destination for entry in entries}) < len(entries):
        raise Malformed("destination", "named twice")


def _check_times(message: Directive) -> None:
    if message.end_ns != 0 and message.end_ns < message.start_ns:
        raise Malformed("end_ns", "before the start")
    if message.mode == Mode.SLICE and message.end_ns == 0:
        raise Malformed("end_ns", "a timeslice without an end")
    check_instants(
        start_ns=message.start_ns,
        end_ns=message.end_ns,
        echo_sent_ns=message.echo_sent_ns,
        echo_received_ns=message.echo_received_ns,
    )


def _check_welcome(message: Welcome) -> None:
    if message.to != AGENT:
        check_destination("to", message.to)
    check_instants(
        slice_ns=message.slice_ns,
        silence_ns=message.silence_ns,
        echo_sent_ns=message.echo_sent_ns,
        echo_received_ns=message.echo_received_ns,
    )


def _read_hello(header: Header, body: bytes) -> Hello:
    check_length(body, _HELLO.size)
    return Hello(header, body)


def _read_welcome(header: Header, body: bytes) -> Welcome:
    check_length(body, _WELCOME.size)
    to, status, strategy, reserved, *times = _WELCOME.unpack(body)
    check_zero(reserved)
    message = Welcome(header, to, enum_of(Status, status), enum_of(Strategy, strategy), *times)
    _check_welcome(message)
    return message


def _read_report(header: Header, body: bytes) -> Report:
    if len(body) < _REPORT.size:
        raise Malformed("length", f"a body of {len(body)} bytes")
    flags, count, reserved, heard, gave_up, free_ns = _REPORT.unpack_from(body)
    check_length(body, _REPORT.size + count * _WAITING.size)
    rows = list(_WAITING.iter_unpack(body[_REPORT.size :]))
    check_zero(reserved)
    waiting = tuple(
        Waiting(destination, backlog, rate, low | high << 32, *promised)
        for destination, backlog, rate, low, high, *promised in rows
    )
    _check_entries(waiting)
    check_instants(free_ns=free_ns)
    return Report(header, enum_of(Flag, flags), heard, gave_up, waiting, free_ns)


def _read_directive(header: Header, body: bytes) -> Directive:
    if len(body) < _DIRECTIVE.size:
        raise Malformed("length", f"a body of {len(body)} bytes")
    to, mode, reserved, count, also_reserved, start_ns, end_ns, sent_ns, received_ns = (
        _DIRECTIVE.unpack_from(body)
    )
    check_length(body, _DIRECTIVE.size + count * _PERMIT.size)
    rows = list(_PERMIT.iter_unpack(body[_DIRECTIVE.size :]))
    check_zero(reserved, also_reserved, *(row[1] for row in rows))
    permits = tuple(Permit(row[0], row[2]) for row in rows)
    check_destination("to", to)
    _check_entries(permits)
    times = start_ns, end_ns, sent_ns, received_ns
    message = Directive(header, to, enum_of(Mode, mode), *times, permits)
    _check_times(message)
    return message


def _read_leave(header: Header, body: bytes) -> Leave:
    check_length(body, 0)
    return Leave(header)


def _read_places(header: Header, body: bytes) -> Places:
    to, versions, entries = _map_fields(body)
    message = Places(header, to, *versions, entries)
    _check_map(message)
    return message


def _read_map(header: Header, body: bytes) -> Map:
    to, versions, entries = _map_fields(body)
    message = Map(header, to, *versions, entries)
    _check_map(message)
    return message


def _map_fields(body: bytes) -> tuple[int, tuple[int, int, int, int], tuple[Located, ...]]:
    if len(body) < _MAP.size:
        raise Malformed("length", f"a body of {len(body)} bytes")
    to, count, reserved, since, until, last, heard = _MAP.unpack_from(body)
    check_length(body, _MAP.size + count * _LOCATED.size)
    rows = list(_LOCATED.iter_unpack(body[_MAP.size :]))
    check_zero(reserved, *(row[3] for row in rows))
    entries = tuple(Located(row[0], row[1], enum_of(Kind, row[2]), row[4]) for row in rows)
    return to, (since, until, last, heard), entries


_READERS: dict[int, Callable[[Header, bytes], Message]] = {
    Hello.kind: _read_hello,
    Welcome.kind: _read_welcome,
    Report.kind: _read_report,
    Directive.kind: _read_directive,
    Leave.kind: _read_leave,
    Places.kind: _read_places,
    Map.kind: _read_map,
    Marks.kind: read_marks,
    Port.kind: read_port,
}

_WRITERS: dict[int, Callable[[Any], bytes]] = {
    Hello.kind: _hello_bytes,
    Welcome.kind: _welcome_bytes,
    Report.kind: _report_bytes,
    Directive.kind: _directive_bytes,
    Leave.kind: lambda _: b"",
    Places.kind: _map_bytes,
    Map.kind: _map_bytes,
    Marks.kind: marks_bytes,
    Port.kind: port_bytes,
}
