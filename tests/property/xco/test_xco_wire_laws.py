"""Laws of the messages: Python and C agree on every datagram; nothing altered is obeyed."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_controller_rig import KEY, again

from xco.errors import Forged, Malformed, Stale
from xco.protocol.wire import (
    AGENT,
    ANY_VLAN,
    CONTROLLER,
    DATAGRAM_MAX,
    ENTRIES_MAX,
    HOSTS_MAX,
    LOCATED_MAX,
    NODES_MAX,
    NOWHERE,
    PORTS_MAX,
    TIME_MAX,
    VERSION,
    VLAN_MOST,
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

U64 = st.integers(0, 2**64 - 1)
TIMES = st.integers(0, TIME_MAX - 1)
U32 = st.integers(0, 2**32 - 1)
U16 = st.integers(0, 2**16 - 1)
HOSTS = st.integers(0, HOSTS_MAX - 1)
FROM_HOST = st.builds(Header, HOSTS, U64, U64, TIMES)
FROM_CONTROLLER = st.builds(Header, st.just(CONTROLLER), U64, U64, TIMES)
WAITING = st.lists(
    st.builds(Waiting, HOSTS, U32, U32, st.integers(0, 2**48 - 1), U16, U16),
    max_size=ENTRIES_MAX,
    unique_by=lambda entry: entry.destination,
).map(tuple)
PERMITS = st.lists(
    st.builds(Permit, HOSTS, U64),
    max_size=ENTRIES_MAX,
    unique_by=lambda entry: entry.destination,
).map(tuple)
MALFORMED, FORGED, VERSION_DIFFERS = 1, 2, 3


@st.composite
def directives(draw: st.DrawFn) -> Directive:
    mode = draw(st.sampled_from(Mode))
    start = draw(st.integers(1, TIME_MAX - 1))
    end = draw(st.integers(start, TIME_MAX - 1))
    if mode is not Mode.SLICE and draw(st.booleans()):
        end = 0
    header = draw(FROM_CONTROLLER)
    echoes = draw(TIMES), draw(TIMES)
    return Directive(header, draw(HOSTS), mode, start, end, *echoes, draw(PERMITS))


@st.composite
def located(draw: st.DrawFn, hosts: st.SearchStrategy[int]) -> Located:
    kind = draw(st.sampled_from((Kind.MAC, Kind.IP)))
    address = draw(st.binary(min_size=16, max_size=16))
    if kind is Kind.MAC:
        address = bytes([address[0] & 0xFE]) + address[1:6] + bytes(10)
    vlan = draw(st.one_of(st.integers(0, VLAN_MOST), st.just(ANY_VLAN)))
    return Located(address, vlan, kind, draw(st.one_of(st.just(NOWHERE), hosts)))


def whole(number: int) -> Located:
    """Return the entry of a host that has named all of its addresses."""
    return Located(number.to_bytes(2, "little") + bytes(14), ANY_VLAN, Kind.HOST, number)


@st.composite
def changes(draw: st.DrawFn) -> Places | Map:
    down = draw(st.booleans())
    header = draw(FROM_CONTROLLER if down else FROM_HOST)
    hosts = HOSTS if down else st.just(header.host)
    entry = st.one_of(located(hosts), HOSTS.map(whole)) if down else located(hosts)
    entries = tuple(draw(st.lists(entry, max_size=LOCATED_MAX)))
    since, until, last = sorted(draw(st.tuples(TIMES, TIMES, TIMES)))
    heard = draw(U64)
    if down:
        return Map(header, draw(HOSTS), since, until, last, heard, entries)
    return Places(header, CONTROLLER, since, until, last, heard, entries)


@st.composite
def marks(draw: st.DrawFn) -> Marks:
    header = draw(FROM_HOST)
    to = draw(HOSTS.filter(lambda host: host != header.host))
    marked, packets = sorted(draw(st.tuples(U64, U64)))
    digest = draw(st.binary(min_size=32, max_size=32))
    counted = draw(TIMES), packets, draw(U64), marked
    return Marks(header, to, *counted, digest, draw(U64), draw(U64), draw(U16), draw(U16))


@st.composite
def ports(draw: st.DrawFn) -> Port:
    host = draw(st.one_of(st.just(AGENT), HOSTS))
    nodes = st.integers(0, NODES_MAX - 1)
    ends = st.tuples(nodes, nodes if host == AGENT else st.just(host))
    pairs = st.lists(ends.filter(lambda pair: pair[0] != pair[1]), max_size=PORTS_MAX, unique=True)
    found = []
    for source, target in draw(pairs):
        coordinated, counted = sorted(draw(st.tuples(U64, U64)))
        rest = draw(U64), draw(U64), draw(U64)
        found.append(
            PortCounts(source, target, draw(TIMES), draw(U64), counted, *rest, coordinated)
        )
    header = Header(host, draw(U64), draw(U64), draw(TIMES))
    return Port(header, draw(st.binary(min_size=32, max_size=32)), tuple(found))


MESSAGES = st.one_of(
    changes(),
    marks(),
    ports(),
    st.builds(Hello, FROM_HOST, st.binary(min_size=32, max_size=32)),
    st.builds(
        Welcome,
        FROM_CONTROLLER,
        st.one_of(HOSTS, st.just(AGENT)),
        st.sampled_from(Status),
        st.sampled_from(Strategy),
        TIMES,
        TIMES,
        TIMES,
        TIMES,
    ),
    st.builds(Report, FROM_HOST, st.integers(0, 3).map(Flag), U64, U64, WAITING, TIMES),
    directives(),
    st.builds(Leave, FROM_HOST),
)


@given(MESSAGES)
def test_what_is_encoded_is_decoded(message: Message) -> None:
    assert decode(encode(message, KEY), KEY) == message


@given(MESSAGES)
def test_c_reads_and_writes_the_same_bytes(message: Message) -> None:
    datagram = encode(message, KEY)
    assert len(datagram) <= DATAGRAM_MAX
    assert again(datagram) == datagram


@given(MESSAGES, st.data())
def test_one_altered_bit_is_never_obeyed(message: Message, data: st.DataObject) -> None:
    datagram = bytearray(encode(message, KEY))
    bit = data.draw(st.integers(0, 8 * len(datagram) - 1))
    datagram[bit // 8] ^= 1 << bit % 8
    with pytest.raises((Forged, Malformed)):
        decode(bytes(datagram), KEY)
    assert again(bytes(datagram)) in {MALFORMED, FORGED, VERSION_DIFFERS}


@given(MESSAGES)
def test_another_key_is_never_obeyed(message: Message) -> None:
    other = bytes(32)
    with pytest.raises(Forged):
        decode(encode(message, other), KEY)
    assert again(encode(message, other)) == FORGED


def verdicts(datagram: bytes) -> tuple[object, object]:
    """Return what Python and what C say to a datagram, in the same words."""
    try:
        in_python: object = encode(decode(datagram, KEY), KEY)
    except Forged:
        in_python = FORGED
    except Malformed as error:
        in_python = VERSION_DIFFERS if error.field == "version" else MALFORMED
    return in_python, again(datagram)


@given(st.binary(max_size=DATAGRAM_MAX + 8))
def test_any_bytes_are_judged_alike(datagram: bytes) -> None:
    in_python, in_c = verdicts(datagram)
    assert in_python == in_c


@given(MESSAGES, st.data())
def test_any_alteration_by_who_has_the_key_is_judged_alike(
    message: Message, data: st.DataObject
) -> None:
    plain = bytearray(encode(message, KEY)[:-16])
    for _ in range(data.draw(st.integers(1, 4))):
        plain[data.draw(st.integers(4, len(plain) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(plain)), st.integers(0, len(plain))))
    datagram = authenticated(bytes(plain[:cut]), KEY)
    in_python, in_c = verdicts(datagram)
    assert in_python == in_c
    assert not isinstance(in_c, bytes) or in_c == datagram, "one message has one form"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=40))
def test_epochs_and_sequences_only_rise(sent: list[tuple[int, int]]) -> None:
    origin, best = Origin(), (0, 0)
    for epoch, sequence in sent:
        header = Header(CONTROLLER, epoch, sequence, 0)
        if (epoch, sequence) > best:
            origin.accept(header)
            best = (epoch, sequence)
        else:
            with pytest.raises(Stale):
                origin.accept(header)
        assert (origin.epoch, origin.sequence) == best


@given(st.integers(ENTRIES_MAX + 1, 2**16 - 1))
def test_more_entries_than_there_is_room_for_are_refused(count: int) -> None:
    head = struct.pack("<4sBBHQQQ", b"XCO1", Report.kind, VERSION, 0, 1, 1, 1)
    body = struct.pack("<HHIQQQ", 0, count, 0, 0, 0, 0) + bytes(20 * ENTRIES_MAX)
    assert verdicts(authenticated(head + body, KEY)) == (MALFORMED, MALFORMED)
