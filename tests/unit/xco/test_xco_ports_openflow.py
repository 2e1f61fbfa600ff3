"""Statistics over OpenFlow 1.3: what a switch may answer, and what it may not."""

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from openflow_switch import port_stats, queue_stats, refusal, reply, switch

from xco.errors import (
    PortError,
    PortGone,
    PortUncounted,
    SwitchAway,
    SwitchGarbled,
    SwitchRefused,
)
from xco.ports.openflow import OpenFlowReader, PortNumber
from xco.ports.openflow_codec import Message, Part, Type, encoded
from xco.ports.reader import UNCOUNTED, Counters

PORT = PortNumber(3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "br0.mgmt"


Readers = Callable[..., OpenFlowReader]


@pytest.fixture
def reader(path: Path) -> Iterator[Readers]:
    """Make readers of the switch at `path`, which are closed at the end."""
    with contextlib.ExitStack() as stack:

        def made(*ports: PortNumber, timeout_s: float = 5.0) -> OpenFlowReader:
            ours = OpenFlowReader(f"unix:{path}", ports or (PORT,), timeout_s=timeout_s)
            stack.callback(ours.close)
            return ours

        yield made


def asked(message: Message) -> tuple[int, int, int | None]:
    """Return type of the statistics, port and queue of a request."""
    part, _, port = struct.unpack_from("!HHxxxxI", message.body)
    queue = struct.unpack_from("!I", message.body, 12)[0] if part == Part.QUEUE_STATS else None
    return part, port, queue


def counting(message: Message) -> bytes:
    """Answer with counters that name port and queue."""
    _, port, queue = asked(message)
    if queue is None:
        return reply(message.xid, Part.PORT_STATS, port_stats(port, 10 + port, 1000, 7))
    return reply(message.xid, Part.QUEUE_STATS, queue_stats(port, queue, 20 + queue, 2000, 8))


def test_ports_and_queues_are_read_in_the_order_of_the_configuration(
    path: Path, reader: Readers
) -> None:
    ports = PORT, PortNumber(3, 1), PortNumber(1)
    with switch(path, counting):
        assert reader(*ports).read() == [
            Counters(13, 1000, drops=7),
            Counters(21, 2000, drops=8),
            Counters(11, 1000, drops=7),
        ]


def test_one_connection_serves_all_reads(path: Path, reader: Readers) -> None:
    with switch(path, counting) as there:
        ours = reader()
        for _ in range(3):
            ours.read()
        ours.close()
    assert [message.type for message in there.heard].count(Type.HELLO) == 1


def test_an_answer_in_parts_is_put_together(path: Path, reader: Readers) -> None:
    def parts(message: Message) -> bytes:
        other = reply(message.xid, Part.PORT_STATS, port_stats(9, 1, 1, 1), more=True)
        return other + reply(message.xid, Part.PORT_STATS, port_stats(3, 5, 6, 7))

    with switch(path, parts):
        assert reader().read() == [Counters(5, 6, drops=7)]


def test_echoes_are_answered_and_other_messages_skipped(path: Path, reader: Readers) -> None:
    def chatty(message: Message) -> bytes:
        if message.type == Type.ECHO_REPLY:
            return b""
        echo = encoded(Message(4, Type.ECHO_REQUEST, 77, b"alive?"))
        changed = encoded(Message(4, 12, 0, bytes(72)))
        late = reply(message.xid - 1, Part.PORT_STATS, port_stats(3, 1, 1, 1))
        return echo + changed + late + counting(message)

    with switch(path, chatty) as there:
        ours = reader()
        for _ in range(2):
            assert ours.read() == [Counters(13, 1000, drops=7)]
        ours.close()
    assert Message(4, Type.ECHO_REPLY, 77, b"alive?") in there.heard


@pytest.mark.parametrize(("kind", "code"), [(1, 11), (9, 0), (9, 1)])
def test_a_port_that_the_switch_does_not_have_is_gone(
    path: Path, reader: Readers, kind: int, code: int
) -> None:
    def partly(message: Message) -> bytes:
        gone = asked(message)[1] == 9
        return refusal(message.xid, kind, code) if gone else counting(message)

    with switch(path, partly):
        gone, there = reader(PortNumber(9, 4), PORT).read()
    assert isinstance(gone, PortGone)
    assert "port 9, queue 4" in str(gone)
    assert there == Counters(13, 1000, drops=7)


def test_a_port_that_is_missing_from_the_answer_is_gone(path: Path, reader: Readers) -> None:
    with switch(path, lambda message: reply(message.xid, Part.PORT_STATS, b"")):
        (gone,) = reader().read()
    assert isinstance(gone, PortGone)


def test_another_error_is_named_by_its_numbers(path: Path, reader: Readers) -> None:
    with switch(path, lambda message: refusal(message.xid, 1, 5)):
        (refused,) = reader().read()
    assert isinstance(refused, SwitchRefused)
    assert str(refused) == "port 3: refused with error 1, code 5"


def test_a_switch_that_does_not_count_says_so(path: Path, reader: Readers) -> None:
    def uncounted(message: Message) -> bytes:
        return reply(message.xid, Part.PORT_STATS, port_stats(3, UNCOUNTED, 5, 1))

    with switch(path, uncounted):
        (reading,) = reader().read()
    assert isinstance(reading, PortUncounted)


def test_drops_that_are_not_counted_are_none(path: Path, reader: Readers) -> None:
    def partly(message: Message) -> bytes:
        return reply(message.xid, Part.PORT_STATS, port_stats(3, 4, 5, UNCOUNTED))

    with switch(path, partly):
        assert reader().read() == [Counters(4, 5)]


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n",
        lambda xid: encoded(Message(1, Type.MULTIPART_REPLY, xid)),
        lambda xid: struct.pack("!BBHI", 4, Type.MULTIPART_REPLY, 7, xid),
        lambda xid: reply(xid, Part.PORT_STATS, port_stats(3, 1, 1, 1)[:-1]),
        lambda xid: encoded(Message(4, Type.MULTIPART_REPLY, xid, b"123")),
        lambda xid: encoded(Message(4, Type.ERROR, xid, b"1")),
        lambda xid: encoded(Message(4, Type.MULTIPART_REPLY, xid, struct.pack("!HHxxxx", 13, 0))),
    ],
)
def test_an_answer_that_is_no_openflow_is_garbled(
    path: Path, reader: Readers, answer: Callable[[int], bytes]
) -> None:
    garbled = True
    with switch(path, lambda message: answer(message.xid) if garbled else counting(message)):
        ours = reader()
        with pytest.raises(SwitchGarbled, match=rf"^unix:{path}: "):
            ours.read()
        garbled = False
        assert ours.read() == [Counters(13, 1000, drops=7)]


@pytest.mark.parametrize(
    ("greeting", "expected"),
    [
        (encoded(Message(1, Type.HELLO, 1)), "speaks version 1"),
        (encoded(Message(4, Type.ERROR, 1, struct.pack("!HH", 0, 0))), "does not speak"),
    ],
)
def test_a_switch_without_openflow_1_3_is_told_apart(
    path: Path, reader: Readers, greeting: bytes, expected: str
) -> None:
    with (
        switch(path, counting, greeting=greeting),
        pytest.raises(SwitchRefused, match=expected) as raised,
    ):
        reader().read()
    assert "protocols=OpenFlow13" in raised.value.fix


def test_a_newer_switch_greets_with_its_own_version(path: Path, reader: Readers) -> None:
    versions = struct.pack("!HHI", 1, 8, 1 << 4 | 1 << 6)
    with switch(path, counting, greeting=encoded(Message(6, Type.HELLO, 1, versions))):
        assert reader().read() == [Counters(13, 1000, drops=7)]


def test_a_switch_that_begins_with_something_else_is_garbled(path: Path, reader: Readers) -> None:
    greeting = encoded(Message(4, Type.MULTIPART_REPLY, 1))
    with switch(path, counting, greeting=greeting), pytest.raises(SwitchGarbled):
        reader().read()


@pytest.mark.parametrize("flood", [b"", encoded(Message(4, 12, 0, bytes(72)))])
def test_a_switch_that_does_not_answer_is_away_in_time(
    path: Path, reader: Readers, flood: bytes
) -> None:
    with switch(path, lambda _: flood), pytest.raises(SwitchAway, match="in time"):
        reader(timeout_s=0.2).read()


def test_a_switch_that_comes_back_is_connected_again(path: Path, reader: Readers) -> None:
    ours = reader()
    with pytest.raises(SwitchAway, match="No such file"):
        ours.read()
    for _ in range(2):
        with switch(path, counting):
            assert ours.read() == [Counters(13, 1000, drops=7)]
        with pytest.raises(SwitchAway):
            ours.read()


def test_a_closed_tcp_port_is_away() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        where = f"tcp:127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(PortError, match=f"^{where}: Connection refused"):
            OpenFlowReader(where, [PORT]).read()
