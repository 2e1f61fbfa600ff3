"""The layout of the messages, byte by byte."""

import hashlib

import pytest
from xco_controller_rig import KEY, again

from xco.errors import Malformed
from xco.protocol.wire import (
    AGENT,
    CONTROLLER,
    DATAGRAM_MAX,
    TIME_MAX,
    Directive,
    Flag,
    Header,
    Hello,
    Marks,
    Message,
    Mode,
    Permit,
    Port,
    PortCounts,
    Report,
    Waiting,
    authenticated,
    decode,
    encode,
)

HEADER = Header(host=3, epoch=5, sequence=7, sent_ns=9)
OURS = Header(host=CONTROLLER, epoch=5, sequence=7, sent_ns=9)


def test_a_report_is_laid_out_as_documented() -> None:
    waiting = Waiting(2, 1500, 1000, 2**33 + 7, 300, 250)
    datagram = encode(Report(HEADER, Flag.MORE, 11, 13, (waiting,), 15), KEY)
    assert datagram[:-16].hex(" ", 4) == (
        "58434f31 03050300 05000000 00000000 07000000 00000000 09000000 00000000"
        " 02000100 00000000 0b000000 00000000 0d000000 00000000 0f000000 00000000"
        " 0200dc05 0000e803 00000700 00000200 2c01fa00"
    )


def test_a_directive_is_laid_out_as_documented() -> None:
    message = Directive(OURS, 3, Mode.SLICE, 100, 200, 1, 2, (Permit(2, 10**9),))
    assert encode(message, KEY)[32:-16].hex(" ", 4) == (
        "03000100 01000000 64000000 00000000 c8000000 00000000"
        " 01000000 00000000 02000000 00000000 02000000 00ca9a3b 00000000"
    )


def test_marks_are_laid_out_as_documented() -> None:
    numbers = 100, 10, 15000, 4
    message = Marks(HEADER, 2, *numbers, bytes(range(32)), 10**6, 10**9, 300, 250)
    datagram = encode(message, KEY)
    assert datagram[32:64] == bytes(range(32))
    assert datagram[64:-16].hex(" ", 4) == (
        "02002c01 fa000000 64000000 00000000 0a000000 00000000 983a0000 00000000"
        " 04000000 00000000 40420f00 00000000 00ca9a3b 00000000"
    )


def test_a_port_is_laid_out_as_documented() -> None:
    port = PortCounts(3, 2, 100, 10, 15000, 4, 1, 3000, coordinated_bytes=9000)
    message = Port(Header(AGENT, 5, 7, 9), bytes(range(32)), (port,))
    assert encode(message, KEY)[64:-16].hex(" ", 4) == (
        "01000000 00000000 03000000 02000000 64000000 00000000 0a000000 00000000"
        " 983a0000 00000000 28230000 00000000 04000000 00000000 01000000 00000000"
        " b80b0000 00000000"
    )


@pytest.mark.parametrize("bit", range(2, 16))
def test_flags_nobody_knows_are_refused_by_python_and_c(bit: int) -> None:
    plain = bytearray(encode(Report(HEADER, Flag.NONE, 0, 0, (), 0), KEY)[:-16])
    plain[32:34] = (1 << bit).to_bytes(2, "little")
    datagram = authenticated(bytes(plain), KEY)
    with pytest.raises(Malformed) as caught:
        decode(datagram, KEY)
    assert (caught.value.field, again(datagram)) == ("flag", 1)
    with pytest.raises(ValueError, match="invalid value"):
        Flag(1 << bit)


def test_the_authenticator_is_keyed_blake2b() -> None:
    datagram = encode(Hello(HEADER, bytes(32)), KEY)
    assert datagram[-16:] == hashlib.blake2b(datagram[:-16], key=KEY, digest_size=16).digest()
    assert again(datagram) == datagram


def test_the_longest_message_fits_a_frame() -> None:
    waiting = tuple(Waiting(host, 1, 1) for host in range(64))
    assert len(encode(Report(HEADER, Flag.NONE, 0, 0, waiting), KEY)) == DATAGRAM_MAX


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (Hello(OURS, bytes(32)), "host"),
        (Hello(HEADER, bytes(31)), "digest"),
        (Hello(Header(3, -1, 1, 1), bytes(32)), "field"),
        (Directive(HEADER, 3, Mode.CLOSED, 1, 0, 0, 0), "host"),
        (Directive(OURS, 0xFFFE, Mode.CLOSED, 1, 0, 0, 0), "to"),
        (Directive(OURS, 3, Mode.SLICE, 1, 0, 0, 0), "end_ns"),
        (Directive(OURS, 3, Mode.RATE, 2, 1, 0, 0), "end_ns"),
        (Report(HEADER, Flag.NONE, 0, 0, (Waiting(0xFFFF, 1, 1),)), "destination"),
        (Report(HEADER, Flag.NONE, 0, 0, (Waiting(1, 1, 1),) * 65), "count"),
        (Report(HEADER, Flag.NONE, 0, 0, (Waiting(1, 1, 1, 2**48),)), "field"),
        (Report(HEADER, Flag.NONE, 0, 0, (Waiting(1, 1, 1, -1),)), "field"),
        (Report(HEADER, Flag.NONE, 0, 0, (Waiting(1, 1, 1, 1, 2**16),)), "field"),
        (Report(HEADER, Flag.NONE, 0, 0, (Waiting(1, 1, 1, 1, 1, 2**16),)), "field"),
        (Marks(HEADER, 2, 1, 1, 1, 1, bytes(32), 1, 1, 2**16), "field"),
        (Report(HEADER, Flag.NONE, 0, 0, (Waiting(1, 1, 1),) * 2), "destination"),
        (Directive(OURS, 3, Mode.RATE, 1, 0, 0, 0, (Permit(1, 1),) * 2), "destination"),
        (Hello(Header(3, 5, 7, TIME_MAX), bytes(32)), "sent_ns"),
        (Marks(HEADER, 3, 1, 1, 1, 1, bytes(32)), "to"),
        (Marks(HEADER, 2, 1, 1, 1, 2, bytes(32)), "marks"),
        (Marks(HEADER, 2, 1, 1, 1, 1, bytes(33)), "digest"),
        (Marks(Header(AGENT, 5, 7, 9), 2, 1, 1, 1, 1, bytes(32)), "host"),
        (Port(HEADER, bytes(31)), "digest"),
        (Port(HEADER, bytes(32), (PortCounts(9, 2, 1, 0, 0, 0, 0, 0),)), "target"),
        (Port(HEADER, bytes(32), (PortCounts(3, 3, 1, 0, 0, 0, 0, 0),)), "target"),
        (Port(HEADER, bytes(32), (PortCounts(9, 3, 1, 0, 0, 0, 0, 0),) * 2), "port"),
        (Port(HEADER, bytes(32), (PortCounts(9, 3, 1, 0, 0, 0, 0, 0, 1),)), "coordinated_bytes"),
        (Port(HEADER, bytes(32), (PortCounts(9, 3, 1, 0, 0, 0, 0, 0),) * 17), "count"),
    ],
)
def test_what_breaks_a_rule_is_not_sent(message: Message, field: str) -> None:
    with pytest.raises(Malformed) as caught:
        encode(message, KEY)
    assert caught.value.field == field
