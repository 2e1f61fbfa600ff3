"""Laws of the OpenFlow codec: any bytes give messages or a typed error; parts do not matter."""

from hypothesis import given
from hypothesis import strategies as st
from openflow_switch import port_stats, queue_stats, reply

from xco.errors import SwitchGarbled
from xco.ports.openflow_codec import (
    Message,
    Part,
    Sent,
    Stream,
    Type,
    check_version,
    encoded,
    error,
    statistics,
)

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
MESSAGES = st.builds(Message, st.integers(1, 6), st.integers(0, 255), U32, st.binary(max_size=300))


@given(st.lists(MESSAGES, max_size=6), st.lists(st.integers(1, 50), min_size=1))
def test_messages_are_the_same_however_they_are_cut(
    messages: list[Message], cuts: list[int]
) -> None:
    whole, stream, found = b"".join(map(encoded, messages)), Stream(), []
    index = 0
    while whole:
        size = cuts[index % len(cuts)]
        found += stream.messages(whole[:size])
        whole, index = whole[size:], index + 1
    assert found == messages


@given(st.binary(max_size=400))
def test_any_bytes_give_messages_or_a_typed_error(data: bytes) -> None:
    try:
        for message in Stream().messages(data):
            check_version(message)
    except SwitchGarbled:
        return


@given(st.one_of(MESSAGES, st.builds(Message, st.just(4), st.just(19), U32, st.binary())))
def test_any_body_gives_statistics_or_a_typed_error(message: Message) -> None:
    for read in (statistics, error):
        try:
            read(message)
        except SwitchGarbled:
            continue


@given(st.lists(st.tuples(U32, U64, U64, U64), max_size=5), U32, st.booleans())
def test_statistics_of_ports_are_read_back(
    ports: list[tuple[int, int, int, int]], xid: int, more: bool
) -> None:
    entries = b"".join(port_stats(*port) for port in ports)
    (message,) = Stream().messages(reply(xid, Part.PORT_STATS, entries, more=more))
    assert (message.type, message.xid) == (Type.MULTIPART_REPLY, xid)
    assert statistics(message) == ([Sent(one[0], None, *one[1:]) for one in ports], more)


@given(st.lists(st.tuples(U32, U32, U64, U64, U64), max_size=5))
def test_statistics_of_queues_are_read_back(queues: list[tuple[int, int, int, int, int]]) -> None:
    entries = b"".join(queue_stats(*queue) for queue in queues)
    (message,) = Stream().messages(reply(1, Part.QUEUE_STATS, entries))
    assert statistics(message) == ([Sent(*one) for one in queues], False)
