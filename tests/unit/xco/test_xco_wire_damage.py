"""A valid message with one field damaged by who has the key: each rule of the layout is checked."""

import struct
from collections.abc import Callable

import pytest
from xco_controller_rig import KEY, again

from xco.errors import Forged, Malformed, Stale
from xco.protocol.wire import (
    AGENT,
    ANY_VLAN,
    CONTROLLER,
    NOWHERE,
    TIME_MAX,
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
    Origin,
    Permit,
    Places,
    Port,
    PortCounts,
    Report,
    Status,
    Strategy,
    Waiting,
    Welcome,
    authenticated,
    decode,
    encode,
)

BODY = 32
"""Where the body begins: after magic, type, version, host, epoch, sequence and time."""
MALFORMED, VERSION_DIFFERS = 1, 3
FROM_HOST = Header(host=3, epoch=5, sequence=7, sent_ns=9)
OURS = Header(host=CONTROLLER, epoch=5, sequence=7, sent_ns=9)

HELLO = Hello(FROM_HOST, bytes(range(32)))
WELCOME = Welcome(OURS, 3, Status.JOINED, Strategy.HYBRID, 11, 12, 13, 14)
REPORT = Report(FROM_HOST, Flag.MORE, 11, 13, (Waiting(2, 1500, 1000), Waiting(4, 9, 8)), 15)
SLICE = Directive(OURS, 3, Mode.SLICE, 100, 200, 1, 2, (Permit(2, 10**9), Permit(4, 0)))
RATE = Directive(OURS, 3, Mode.RATE, 100, 0, 1, 2, (Permit(2, 10**9),))
LEAVE = Leave(FROM_HOST)
MAC = bytes(range(2, 8)) + bytes(10)
PLACES = Places(FROM_HOST, CONTROLLER, 0, 1, 1, 0, (Located(MAC, 0, Kind.MAC, 3),))
MAP = Map(OURS, 3, 1, 2, 4, 1, (Located(MAC, 7, Kind.MAC, NOWHERE),))
WHOLE = Map(OURS, 3, 1, 2, 4, 1, (Located(b"\2\1".ljust(16, b"\0"), ANY_VLAN, Kind.HOST, 258),))
MARKS = Marks(FROM_HOST, 2, 100, 10, 15000, 4, bytes(range(32)), 10**6, 10**9)
COUNTS = PortCounts(9, 3, 100, 10, 15000, 4, 1, 3000, coordinated_bytes=9000)
OTHER = PortCounts(8, 3, 100, 10, 15000, 4, 1, 3000)
PORT = Port(Header(AGENT, 5, 7, 9), bytes(range(32)), (COUNTS, OTHER))
VALID = (HELLO, WELCOME, REPORT, SLICE, RATE, LEAVE, PLACES, MAP, WHOLE, MARKS, PORT)


def damaged(message: Message, offset: int, layout: str, value: int) -> bytes:
    """Return the message with one number of its header or body replaced, authenticated."""
    plain = bytearray(encode(message, KEY)[:-16])
    struct.pack_into(f"<{layout}", plain, offset, value)
    return authenticated(bytes(plain), KEY)


def resized(message: Message, change: Callable[[bytes], bytes]) -> bytes:
    return authenticated(change(encode(message, KEY)[:-16]), KEY)


def refused(datagram: bytes, code: int = MALFORMED) -> str:
    """Return the field that Python names; C refuses it as well."""
    with pytest.raises(Malformed) as caught:
        decode(datagram, KEY)
    assert again(datagram) == code
    return caught.value.field


@pytest.mark.parametrize("message", VALID, ids=lambda m: type(m).__name__)
def test_undamaged_all_of_them_are_read(message: Message) -> None:
    datagram = encode(message, KEY)
    assert decode(datagram, KEY) == message
    assert again(datagram) == datagram


@pytest.mark.parametrize("message", VALID, ids=lambda m: type(m).__name__)
def test_magic_and_version_are_checked_in_every_message(message: Message) -> None:
    assert refused(damaged(message, 0, "B", ord("Y"))) == "magic"
    assert refused(damaged(message, 3, "B", ord("2"))) == "magic"
    for version in (0, 1, 3, 255):
        assert refused(damaged(message, 5, "B", version), VERSION_DIFFERS) == "version"


@pytest.mark.parametrize("kind", [0, 10, 255])
def test_a_type_that_is_none_is_refused(kind: int) -> None:
    assert refused(damaged(LEAVE, 4, "B", kind)) == "type"


@pytest.mark.parametrize("message", [HELLO, REPORT, LEAVE], ids=lambda m: type(m).__name__)
def test_a_hosts_message_is_from_a_host(message: Message) -> None:
    for host in (0, 0xFFFD):
        decoded = decode(damaged(message, 6, "H", host), KEY)
        assert decoded.header.host == host
    for host in (0xFFFE, CONTROLLER):
        assert refused(damaged(message, 6, "H", host)) == "host"


@pytest.mark.parametrize("message", [WELCOME, SLICE, RATE], ids=lambda m: type(m).__name__)
def test_a_controllers_message_is_from_the_controller(message: Message) -> None:
    for host in (0, 0xFFFD, 0xFFFE):
        assert refused(damaged(message, 6, "H", host)) == "host"


@pytest.mark.parametrize(
    ("message", "offset", "layout", "value", "field"),
    [
        (WELCOME, 0, "H", 0xFFFF, "to"),
        (WELCOME, 2, "B", 4, "status"),
        (WELCOME, 3, "B", 4, "strategy"),
        (WELCOME, 4, "I", 1, "reserved"),
        (WELCOME, 4, "I", 1 << 31, "reserved"),
        (REPORT, 0, "H", 4, "flag"),
        (REPORT, 2, "H", 1, "length"),
        (REPORT, 2, "H", 3, "length"),
        (REPORT, 4, "I", 1, "reserved"),
        (REPORT, 32, "H", 0xFFFE, "destination"),
        (REPORT, 52, "H", 0xFFFE, "destination"),
        (SLICE, 0, "H", 0xFFFE, "to"),
        (SLICE, 2, "B", 4, "mode"),
        (SLICE, 3, "B", 1, "reserved"),
        (SLICE, 4, "H", 1, "length"),
        (SLICE, 4, "H", 3, "length"),
        (SLICE, 6, "H", 1, "reserved"),
        (SLICE, 16, "Q", 99, "end_ns"),
        (SLICE, 16, "Q", 0, "end_ns"),
        (SLICE, 8, "Q", 201, "end_ns"),
        (SLICE, 40, "H", 0xFFFE, "destination"),
        (SLICE, 42, "H", 1, "reserved"),
        (SLICE, 52, "H", 0xFFFE, "destination"),
        (SLICE, 54, "H", 1, "reserved"),
        (RATE, 2, "B", 1, "end_ns"),
        (RATE, 16, "Q", 99, "end_ns"),
        (REPORT, 52, "H", 2, "destination"),
        (SLICE, 52, "H", 2, "destination"),
        (REPORT, -8, "Q", TIME_MAX, "sent_ns"),
        (SLICE, -8, "Q", 2**64 - 1, "sent_ns"),
        (REPORT, 24, "Q", TIME_MAX, "free_ns"),
        (SLICE, 16, "Q", TIME_MAX, "end_ns"),
        (RATE, 24, "Q", TIME_MAX, "echo_sent_ns"),
        (RATE, 32, "Q", 2**64 - 1, "echo_received_ns"),
        (WELCOME, 8, "Q", TIME_MAX, "slice_ns"),
        (WELCOME, 16, "Q", TIME_MAX, "silence_ns"),
        (WELCOME, 24, "Q", TIME_MAX, "echo_sent_ns"),
        (WELCOME, 32, "Q", 2**63, "echo_received_ns"),
        (PLACES, 0, "H", 3, "to"),
        (MAP, 0, "H", CONTROLLER, "to"),
        (MAP, 2, "H", 2, "length"),
        (MAP, 4, "I", 1, "reserved"),
        (MAP, 8, "Q", 3, "versions"),
        (MAP, 16, "Q", 5, "versions"),
        (MAP, 24, "Q", TIME_MAX, "versions"),
        (MAP, 40, "B", 1, "address"),
        (MAP, 46, "B", 1, "address"),
        (MAP, 56, "H", 4095, "vlan"),
        (MAP, 58, "B", 3, "located"),
        (MAP, 58, "B", 4, "kind"),
        (MAP, 59, "B", 1, "reserved"),
        (MAP, 60, "H", 0xFFFE, "located"),
        (PLACES, 60, "H", 4, "located"),
        (PLACES, 58, "B", 3, "located"),
        (WHOLE, 40, "B", 3, "located"),
        (WHOLE, 42, "B", 1, "located"),
        (WHOLE, 56, "H", 0, "located"),
        (WHOLE, 59, "B", 1, "reserved"),
        (WHOLE, 60, "H", 257, "located"),
        (WHOLE, 60, "H", NOWHERE, "located"),
        (MARKS, 32, "H", 3, "to"),
        (MARKS, 32, "H", 0xFFFE, "to"),
        (MARKS, 38, "H", 1, "reserved"),
        (MARKS, 38, "H", 0x8000, "reserved"),
        (MARKS, 40, "Q", TIME_MAX, "read_ns"),
        (MARKS, 64, "Q", 11, "marks"),
        (PORT, 32, "H", 1, "length"),
        (PORT, 32, "H", 17, "length"),
        (PORT, 34, "H", 1, "reserved"),
        (PORT, 36, "I", 1, "reserved"),
        (PORT, 40, "I", 0x1FFFC, "source"),
        (PORT, 40, "I", 3, "target"),
        (PORT, 40, "I", 8, "port"),
        (PORT, 44, "I", 0x1FFFC, "target"),
        (PORT, 48, "Q", TIME_MAX, "read_ns"),
        (PORT, 72, "Q", 15001, "coordinated_bytes"),
    ],
)
def test_one_damaged_field_of_a_body_is_named(
    message: Message, offset: int, layout: str, value: int, field: str
) -> None:
    assert refused(damaged(message, BODY + offset, layout, value)) == field


@pytest.mark.parametrize(
    ("message", "offset", "layout", "value"),
    [
        (WELCOME, 0, "H", 0xFFFD),
        (WELCOME, 0, "H", AGENT),
        (MARKS, 32, "H", 0xFFFD),
        (MARKS, 34, "H", 2**16 - 1),
        (MARKS, 36, "H", 2**16 - 1),
        (MARKS, 64, "Q", 10),
        (MARKS, 72, "Q", 2**64 - 1),
        (MARKS, 80, "Q", 2**64 - 1),
        (PORT, 40, "I", 0x1FFFB),
        (PORT, 72, "Q", 15000),
        (PORT, 96, "Q", 2**64 - 1),
        (WELCOME, 2, "B", 3),
        (WELCOME, 3, "B", 0),
        (WELCOME, 8, "Q", TIME_MAX - 1),
        (WELCOME, 16, "Q", TIME_MAX - 1),
        (WELCOME, 24, "Q", TIME_MAX - 1),
        (WELCOME, 32, "Q", TIME_MAX - 1),
        (REPORT, 0, "H", 3),
        (REPORT, 8, "Q", 2**64 - 1),
        (REPORT, 16, "Q", 2**64 - 1),
        (REPORT, 24, "Q", 0),
        (REPORT, 32, "H", 0xFFFD),
        (REPORT, 34, "I", 2**32 - 1),
        (REPORT, 38, "I", 0),
        (REPORT, 42, "I", 2**32 - 1),
        (REPORT, 46, "H", 2**16 - 1),
        (REPORT, 48, "H", 2**16 - 1),
        (REPORT, 50, "H", 2**16 - 1),
        (SLICE, 16, "Q", 100),  # an end at the start
        (SLICE, 8, "Q", 200),
        (SLICE, 24, "Q", TIME_MAX - 1),
        (SLICE, 32, "Q", 0),
        (SLICE, 40, "H", 0xFFFD),
        (SLICE, 44, "Q", 2**64 - 1),
        (RATE, 16, "Q", 100),
        (RATE, 2, "B", 0),
        (RATE, 2, "B", 3),
    ],
)
def test_a_field_on_its_bound_is_read_as_it_stands(
    message: Message, offset: int, layout: str, value: int
) -> None:
    datagram = damaged(message, BODY + offset, layout, value)
    assert encode(decode(datagram, KEY), KEY) == datagram
    assert again(datagram) == datagram
    assert decode(datagram, KEY) != message


@pytest.mark.parametrize("message", VALID, ids=lambda m: type(m).__name__)
def test_a_body_of_another_length_is_refused(message: Message) -> None:
    assert refused(resized(message, lambda plain: plain + b"\0")) == "length"
    assert refused(resized(message, lambda plain: plain[:-1])) == "length"
    if message is not LEAVE:
        assert refused(resized(message, lambda plain: plain[:BODY])) == "length"


def test_a_datagram_without_room_for_a_header_is_refused() -> None:
    for length in (0, 1, 31, 32, 47):
        assert refused(bytes(length)) == "length"
    assert refused(bytes(48)) == "magic"


def test_more_than_64_entries_are_refused_though_their_count_is_right() -> None:
    full = Directive(OURS, 3, Mode.RATE, 1, 0, 0, 0, tuple(Permit(n, 1) for n in range(64)))
    assert decode(encode(full, KEY), KEY) == full
    one_more = struct.pack("<HHQ", 64, 0, 1)

    def grown(plain: bytes) -> bytes:
        return plain[: BODY + 4] + struct.pack("<H", 65) + plain[BODY + 6 :] + one_more

    assert refused(resized(full, grown)) == "count"
    entries = tuple(Waiting(n, 1, 1) for n in range(64))
    report = Report(FROM_HOST, Flag.NONE, 0, 0, entries)
    assert decode(encode(report, KEY), KEY) == report

    def one_longer(plain: bytes) -> bytes:
        entry = struct.pack("<HIIIHHH", 64, 1, 1, 1, 0, 0, 0)
        return plain[: BODY + 2] + struct.pack("<H", 65) + plain[BODY + 4 :] + entry

    assert refused(resized(report, one_longer)) == "length"


def test_the_authenticator_covers_header_and_body() -> None:
    datagram = bytearray(encode(REPORT, KEY))
    for index in range(6, len(datagram)):
        altered = bytes(datagram[:index]) + bytes([datagram[index] ^ 1]) + datagram[index + 1 :]
        with pytest.raises(Forged):
            decode(altered, KEY)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (Welcome(FROM_HOST, 3, Status.JOINED, Strategy.RATE, 1, 1, 1, 1), "host"),
        (Welcome(OURS, 0xFFFF, Status.JOINED, Strategy.RATE, 1, 1, 1, 1), "to"),
        (Welcome(OURS, -1, Status.JOINED, Strategy.RATE, 1, 1, 1, 1), "to"),
        (Welcome(OURS, 3, Status.JOINED, Strategy.RATE, TIME_MAX, 1, 1, 1), "slice_ns"),
        (Report(OURS, Flag.NONE, 0, 0), "host"),
        (Report(Header(0xFFFE, 1, 1, 1), Flag.NONE, 0, 0), "host"),
        (Report(FROM_HOST, Flag.NONE, 0, 0, (Waiting(1, 2**32, 1),)), "field"),
        (Directive(OURS, 3, Mode.CLOSED, 2, 1, 0, 0), "end_ns"),
        (Directive(OURS, 3, Mode.RATE, 1, 0, 0, 0, (Permit(0xFFFE, 1),)), "destination"),
        (Directive(OURS, 3, Mode.RATE, 1, 0, 0, 0, (Permit(1, 1),) * 65), "count"),
        (Hello(FROM_HOST, bytes(33)), "digest"),
        (Leave(OURS), "host"),
    ],
)
def test_what_would_be_refused_is_not_sent(message: Message, field: str) -> None:
    with pytest.raises(Malformed) as caught:
        encode(message, KEY)
    assert caught.value.field == field


def test_an_origin_takes_only_what_is_later() -> None:
    origin = Origin()

    def offer(epoch: int, sequence: int) -> str:
        try:
            origin.accept(Header(CONTROLLER, epoch, sequence, 0))
        except Stale as stale:
            return stale.field
        return "taken"

    assert offer(0, 0) == "sequence"
    assert offer(2, 5) == "taken"
    assert offer(2, 5) == "sequence"
    assert offer(2, 4) == "sequence"
    assert offer(1, 9) == "epoch"
    assert offer(2, 6) == "taken"
    assert offer(3, 0) == "taken"
    assert (origin.epoch, origin.sequence) == (3, 0)
    assert offer(3, 0) == "sequence"
    assert offer(3, 1) == "taken"
