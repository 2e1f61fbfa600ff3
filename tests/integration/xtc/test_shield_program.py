"""The shield's program in the kernel, run on given packets: exact to the packet, no flood.

A bucket whose last draining lies in the future does not drain: the clock stands still for it.
"""

import ctypes
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from support.frames import (
    arp,
    ethernet,
    icmpv6,
    ipv4,
    ipv6,
    llc,
    tagged,
    tcp,
    udp,
)

from common.units import BitsPerSecond, PacketsPerSecond
from xtc.kernel import bpf
from xtc.shield.bucket import FRACTION, State, Terms, holding, in_bits, in_packets
from xtc.shield.exemptions import DEFAULT, Exemptions
from xtc.shield.filters import OBJECT, PROGRAM

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not OBJECT.exists(), reason="shield.bpf.o is not built (clang, libbpf-dev)"),
]
PASS, DROP = 0xFFFFFFFF, 2  # TC_ACT_UNSPEC, TC_ACT_SHOT
ORDINARY, EXEMPT = 0, 1
NEVER = 2**63
PLAIN = ethernet(0x0800, ipv4(17, udp(5000, 9)))


class _Run(ctypes.Structure):
    """``struct bpf_test_run_opts``."""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("data_in", ctypes.c_void_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    )


class Loaded:
    """The program, with buckets that a test sets and reads."""

    def __init__(self) -> None:
        self.program = bpf.load(OBJECT, PROGRAM)
        self.exempt(*DEFAULT)

    def exempt(self, *words: str) -> None:
        self.program.maps["exempt"].write(0, Exemptions.parse(words).pack())

    def terms(self, which: int, terms: Terms) -> None:
        self.program.maps["terms"].write(which, terms.pack())

    def stop_the_clock(self, level: int = 0) -> None:
        for which in (ORDINARY, EXEMPT):
            state = State(at=NEVER, level=level if which == ORDINARY else 0)
            self.program.maps["buckets"].write(which, state.pack())

    def state(self, which: int = ORDINARY) -> State:
        return State.unpack(self.program.maps["buckets"].read(which, locked=True))

    def run(self, frame: bytes, repeat: int = 1, **skb: int) -> int:
        """Run on a frame; return what became of the last of the repetitions."""
        options = _Run(sz=ctypes.sizeof(_Run), data_size_in=len(frame), repeat=repeat)
        data = ctypes.create_string_buffer(frame, len(frame))
        options.data_in = ctypes.addressof(data)
        context = _context(**skb)
        if skb:
            options.ctx_in, options.ctx_size_in = ctypes.addressof(context), len(context)
        bpf.call("bpf_prog_test_run_opts", self.program.fd, ctypes.byref(options))
        return int(options.retval)

    def is_exempt(self, frame: bytes) -> bool:
        """Whether a frame passes a shut bucket, at the cost of the exempt one."""
        full = in_packets(PacketsPerSecond(1000))
        self.terms(ORDINARY, full)
        self.terms(EXEMPT, full)
        self.stop_the_clock(level=full.depth)
        action = self.run(frame)
        assert (action == PASS) == (self.state(EXEMPT).passed == 1)
        return action == PASS


def _context(**skb: int) -> Any:
    """Return a ``struct __sk_buff`` with some fields set."""
    offsets = {"wire_len": 160, "gso_segs": 164, "gso_size": 176}
    context = ctypes.create_string_buffer(192)
    for name, value in skb.items():
        struct.pack_into("=I", context, offsets[name], value)
    return context


DEEP_S = 60.0
"""A bucket so deep is not empty before a test is over, however long the machine stands still."""


@pytest.fixture
def loaded() -> Iterator[Loaded]:
    try:
        yield Loaded()
    except OSError as error:
        pytest.skip(f"no BPF here: {error}")


def test_without_a_limit_everything_passes(loaded: Loaded) -> None:
    assert loaded.run(PLAIN, 1000) == PASS
    assert loaded.state().refused == 0


LARGE = in_packets(PacketsPerSecond(1), 3200.0)
"""A bucket of 3200 packets, of which none drains during a test."""
RESERVE = 128
"""Packets of its reserve; a packet costs 25 in the bucket of its flow."""
BULK = ethernet(0x0800, ipv4(17, udp(5001, 9)))


def test_a_flood_leaves_the_last_part_of_a_bucket_to_sparse_flows(loaded: Loaded) -> None:
    room = LARGE.depth // LARGE.per_packet
    sparse = ethernet(0x0800, ipv4(17, udp(5002, 9)))
    loaded.terms(ORDINARY, LARGE)
    loaded.stop_the_clock()
    assert loaded.run(PLAIN, room) == PASS, "a flow that begins has the whole bucket"
    loaded.stop_the_clock(level=LARGE.depth - RESERVE * LARGE.per_packet)
    assert loaded.run(PLAIN, RESERVE) == DROP
    assert loaded.state().passed == RESERVE // 4 + 2, "but for what others may fill"
    assert loaded.run(sparse, loaded.state().refused) == PASS
    assert loaded.run(sparse) == DROP, "no room is left"
    loaded.stop_the_clock(level=LARGE.depth - 2 * RESERVE * LARGE.per_packet)
    assert loaded.run(PLAIN, RESERVE) == PASS


def _pass_time(loaded: Loaded, packets: int) -> None:
    """Drain what packets cost from the bucket and from that of the flows that are not sparse."""
    less = packets * LARGE.per_packet
    loaded.stop_the_clock(level=max(0, loaded.state().level - less))
    flows, others = loaded.program.maps["flows"], 1024
    at, level = struct.unpack("=QQ", flows.read(others))
    flows.write(others, struct.pack("=QQ", at, max(0, level - less)))


def test_flows_without_end_leave_their_share_to_one_that_sends_more(loaded: Loaded) -> None:
    """Next to a flood of twice the rate, each packet of which is another flow."""
    loaded.terms(ORDINARY, LARGE)
    loaded.stop_the_clock(level=LARGE.depth - LARGE.per_packet)
    loaded.run(BULK, 1000)
    passed = 0
    for turn in range(80):
        _pass_time(loaded, 8)
        for number in range(16):
            loaded.run(ethernet(0x0800, ipv4(17, udp(6000 + 16 * turn + number, 9))))
            if number == turn % 16:
                passed += loaded.run(BULK) == PASS
    assert 30 <= passed <= 50, "as many as of the flood"


def test_a_packet_that_holds_too_many_segments_costs_its_flow_nothing(loaded: Loaded) -> None:
    loaded.terms(ORDINARY, LARGE)
    loaded.stop_the_clock(level=LARGE.depth - RESERVE // 2 * LARGE.per_packet)
    loaded.run(BULK, 200)
    loaded.stop_the_clock(level=LARGE.depth - RESERVE // 2 * LARGE.per_packet)
    assert loaded.run(PLAIN.ljust(1000, b"\0"), gso_segs=65_000, gso_size=1) == DROP
    assert loaded.run(PLAIN) == PASS


def test_what_exempt_traffic_sends_too_much_costs_its_ordinary_flow_nothing(loaded: Loaded) -> None:
    nearly_full = State(at=NEVER, level=LARGE.depth - RESERVE * LARGE.per_packet)
    loaded.terms(EXEMPT, LARGE)
    loaded.terms(ORDINARY, LARGE)
    loaded.stop_the_clock(level=nearly_full.level)
    loaded.run(BULK, 200)
    loaded.stop_the_clock()
    loaded.program.maps["buckets"].write(EXEMPT, nearly_full.pack())
    loaded.run(ROUTING["OSPF"], RESERVE)
    assert loaded.state(EXEMPT).passed == RESERVE
    loaded.stop_the_clock(level=nearly_full.level)
    loaded.program.maps["buckets"].write(EXEMPT, State(at=NEVER, level=LARGE.depth).pack())
    assert loaded.run(ROUTING["OSPF"]) == PASS


@pytest.mark.parametrize("rate", [100.0, 5_000.0, 1e6])
def test_exactly_a_burst_passes_while_the_clock_stands_still(loaded: Loaded, rate: float) -> None:
    terms = in_packets(PacketsPerSecond(rate))
    loaded.terms(ORDINARY, terms)
    loaded.stop_the_clock()
    room = terms.depth // terms.per_packet
    assert loaded.run(PLAIN, room) == PASS
    assert loaded.run(PLAIN, 500) == DROP
    assert (loaded.state().passed, loaded.state().refused) == (room, 500)


def test_what_drains_is_what_the_clock_says_to_the_unit(loaded: Loaded) -> None:
    """Full all the time: what passed cost exactly the time that went by, less what is left."""
    terms = in_packets(PacketsPerSecond(3e5), DEEP_S)
    loaded.terms(ORDINARY, terms)
    loaded.stop_the_clock()
    loaded.run(PLAIN, 1)
    before = replace(State(at=_now()), level=terms.depth)
    loaded.program.maps["buckets"].write(ORDINARY, before.pack())
    loaded.run(PLAIN, 20_000)
    after = loaded.state()
    assert after.passed + after.refused == 20_000
    drained = (after.at - before.at) << FRACTION
    assert before.level + after.passed * terms.per_packet - drained == after.level


def test_no_packet_is_lost_or_passed_twice_however_many_cpus_take_from_a_bucket(
    loaded: Loaded,
) -> None:
    terms = in_packets(PacketsPerSecond(1e6), DEEP_S)
    loaded.terms(ORDINARY, terms)
    before = State(at=_now(), level=terms.depth)
    loaded.program.maps["buckets"].write(ORDINARY, before.pack())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: loaded.run(PLAIN, 30_000), range(4)))
    after = loaded.state()
    assert after.passed + after.refused == 4 * 30_000
    drained = (after.at - before.at) << FRACTION
    assert before.level + after.passed * terms.per_packet - drained == after.level


def _now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def test_a_limit_in_bits_counts_the_bytes_of_large_and_small_packets(loaded: Loaded) -> None:
    terms = in_bits(BitsPerSecond(8e6))
    loaded.terms(ORDINARY, terms)
    for size in (60, 1514):
        loaded.stop_the_clock()
        loaded.run(PLAIN.ljust(size, b"\0"), 5_000)
        room = terms.depth // terms.per_byte
        assert loaded.state().passed == room // size + 1, "the last one may run over"


def test_a_joined_packet_costs_what_it_holds(loaded: Loaded) -> None:
    terms = in_packets(PacketsPerSecond(1000))
    loaded.terms(ORDINARY, terms)
    loaded.stop_the_clock()
    assert loaded.run(PLAIN.ljust(200, b"\0"), gso_segs=10, gso_size=100) == PASS
    assert loaded.state().passed == 10
    assert loaded.state().level == 10 * terms.per_packet


def test_one_larger_than_the_burst_passes_and_is_paid_for(loaded: Loaded) -> None:
    terms = in_packets(PacketsPerSecond(1000))
    loaded.terms(ORDINARY, terms)
    loaded.stop_the_clock(level=terms.depth - terms.per_packet)
    frame = PLAIN.ljust(200, b"\0")
    assert loaded.run(frame, gso_segs=45, gso_size=100) == PASS
    assert loaded.state().level == terms.depth + 44 * terms.per_packet
    assert loaded.run(frame) == DROP


DATAGRAM = udp(5000, 9)[:8]
"""A header without a payload."""
GUESTS = {
    "UDP": ethernet(0x0800, ipv4(17, DATAGRAM)),
    "UDP over IPv6": ethernet(0x86DD, ipv6(17, DATAGRAM)),
    "UDP with options": ethernet(0x0800, ipv4(17, DATAGRAM, options=40)),
    "UDP in a VLAN": tagged(ethernet(0x0800, ipv4(17, DATAGRAM)), 0x8100),
    "TCP": ethernet(0x0800, ipv4(6, tcp(40000, 443))),
    "TCP with timestamps": ethernet(0x0800, ipv4(6, tcp(40000, 443, options=12))),
    "TCP over IPv6": ethernet(0x86DD, ipv6(6, tcp(40000, 443))),
}


@pytest.mark.parametrize(("size", "segments"), [(1, 12), (1, 13), (100, 10)])
@pytest.mark.parametrize("name", GUESTS)
def test_a_guests_joined_packet_is_counted_although_the_kernel_has_not(
    loaded: Loaded, name: str, size: int, segments: int
) -> None:
    loaded.terms(ORDINARY, in_packets(PacketsPerSecond(1000)))
    loaded.stop_the_clock()
    loaded.run(GUESTS[name] + bytes(segments * size), gso_segs=0, gso_size=size)
    assert loaded.state().passed == segments


@pytest.mark.parametrize("name", ["ARP", "OSPFv3", "MLD behind hop-by-hop", "IS-IS", "LLDP"])
def test_headers_that_are_not_understood_are_counted_as_few(loaded: Loaded, name: str) -> None:
    loaded.terms(ORDINARY, in_packets(PacketsPerSecond(1000)))
    loaded.stop_the_clock()
    loaded.run(ROUTING[name].ljust(142, b"\0"), gso_segs=0, gso_size=1)
    assert loaded.state().passed >= 142 - 54


JOINED = PLAIN.ljust(42 + 1000, b"\0")


@pytest.mark.parametrize("skb", [{"gso_segs": 65_000, "gso_size": 1}, {"gso_size": 1}])
def test_more_segments_than_an_honest_sender_joins_keep_nobody_out(
    loaded: Loaded, skb: dict[str, int]
) -> None:
    loaded.terms(ORDINARY, in_packets(PacketsPerSecond(1000)))
    loaded.stop_the_clock()
    assert loaded.run(JOINED, **skb) == DROP
    assert loaded.state().refused == (skb.get("gso_segs") or 1000)
    assert (loaded.state().passed, loaded.state().level) == (0, 0)
    assert loaded.run(PLAIN) == PASS


def test_the_largest_joined_packet_of_an_honest_sender_passes(loaded: Loaded) -> None:
    loaded.terms(ORDINARY, in_packets(PacketsPerSecond(1000)))
    loaded.stop_the_clock()
    assert loaded.run(JOINED, gso_segs=512, gso_size=1448) == PASS
    assert loaded.run(JOINED, gso_segs=513, gso_size=1448) == DROP
    assert (loaded.state().passed, loaded.state().refused) == (512, 513)


def test_a_routing_protocol_is_no_way_round_the_most_segments(loaded: Loaded) -> None:
    loaded.terms(ORDINARY, in_packets(PacketsPerSecond(1000)))
    loaded.terms(EXEMPT, in_packets(PacketsPerSecond(1000)))
    loaded.stop_the_clock()
    bgp = ethernet(0x0800, ipv4(6, tcp(40000, 179))).ljust(1000, b"\0")
    assert loaded.run(bgp, gso_segs=65_000, gso_size=1) == DROP
    assert loaded.state(EXEMPT).level == 0
    assert loaded.state().refused == loaded.state().refused_exempt == 65_000


def test_without_a_limit_no_packet_holds_too_many_segments(loaded: Loaded) -> None:
    assert loaded.run(JOINED, gso_segs=65_000, gso_size=1) == PASS


ROUTING = {
    "ARP": arp(),
    "OSPF": ethernet(0x0800, ipv4(89)),
    "OSPF with options": ethernet(0x0800, ipv4(89, options=8)),
    "OSPF, later fragment": ethernet(0x0800, ipv4(89, offset=100)),
    "OSPFv3": ethernet(0x86DD, ipv6(89)),
    "OSPFv3, later fragment": ethernet(0x86DD, ipv6(44, fragment=(89, 800))),
    "VRRP": ethernet(0x0800, ipv4(112)),
    "IGMP": ethernet(0x0800, ipv4(2)),
    "PIM": ethernet(0x0800, ipv4(103)),
    "BGP, to": ethernet(0x0800, ipv4(6, tcp(40000, 179))),
    "BGP, from": ethernet(0x86DD, ipv6(6, tcp(179, 40000))),
    "BGP with options": ethernet(0x0800, ipv4(6, tcp(40000, 179), options=40)),
    "BFD": ethernet(0x0800, ipv4(17, udp(49152, 3784))),
    "BFD, first fragment": ethernet(0x0800, ipv4(17, udp(49152, 3784), more=True)),
    "LDP": ethernet(0x0800, ipv4(17, udp(646, 646))),
    "RIPng": ethernet(0x86DD, ipv6(17, udp(521, 521))),
    "neighbour solicitation": ethernet(0x86DD, ipv6(58, icmpv6(135))),
    "MLD behind hop-by-hop": ethernet(0x86DD, ipv6(0, b"\x3a\0\x05\x02\0\0\0\0" + icmpv6(143))),
    "IS-IS": llc(0xFEFE),
    "LACP": ethernet(0x8809, b"\x01"),
    "LLDP": ethernet(0x88CC, b"\x02"),
    "OSPF in a VLAN": tagged(ethernet(0x0800, ipv4(89)), 0x8100),
    "IS-IS in a VLAN": tagged(llc(0xFEFE), 0x8100),
    "BGP in QinQ": tagged(tagged(ethernet(0x0800, ipv4(6, tcp(1, 179))), 0x8100), 0x88A8),
}


@pytest.mark.parametrize("name", ROUTING)
def test_routing_protocols_pass_a_shut_bucket(loaded: Loaded, name: str) -> None:
    assert loaded.is_exempt(ROUTING[name])


OTHERS = {
    "UDP": PLAIN,
    "TCP": ethernet(0x0800, ipv4(6, tcp(40000, 443))),
    "UDP on BGP's port": ethernet(0x0800, ipv4(17, udp(40000, 179))),
    "TCP, later fragment that looks like BGP": ethernet(0x0800, ipv4(6, tcp(179, 179), offset=1)),
    "UDP6, later fragment": ethernet(0x86DD, ipv6(44, udp(3784, 3784), fragment=(17, 8))),
    "echo request": ethernet(0x86DD, ipv6(58, icmpv6(128))),
    "spanning tree": llc(0x4242),
    "options longer than the packet": ethernet(0x0800, b"\x4f" + ipv4(6, tcp(1, 179))[1:]),
    "IPv4 with a header of four bytes": ethernet(0x0800, b"\x41" + ipv4(89)[1:]),
    "version 6 in IPv4": ethernet(0x0800, b"\x65" + ipv4(89)[1:]),
    "three tags": tagged(tagged(tagged(ROUTING["OSPF"], 0x8100), 0x8100), 0x8100),
    "cut in the IP header": tagged(ethernet(0x0800, ipv4(89)[:12]), 0x8100),
    "cut in the ports": ethernet(0x0800, ipv4(6, tcp(179, 179)[:2])),
    "an unknown EtherType": ethernet(0x88B5, b"\0" * 46),
    "a tag cut in half": ethernet(0x88A8, b"\0\0"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_and_malformed_packets_are_ordinary_traffic(loaded: Loaded, name: str) -> None:
    assert not loaded.is_exempt(OTHERS[name])


def test_a_forged_protocol_gains_nothing(loaded: Loaded) -> None:
    ordinary, exempt = in_packets(PacketsPerSecond(5000)), in_packets(PacketsPerSecond(2000))
    loaded.terms(ORDINARY, ordinary)
    loaded.terms(EXEMPT, exempt)
    loaded.stop_the_clock()
    loaded.run(ROUTING["OSPF"], 10_000)
    room, bonus = ordinary.depth // ordinary.per_packet, exempt.depth // exempt.per_packet
    assert loaded.state(EXEMPT).passed == bonus
    assert loaded.state().passed == room - bonus
    assert loaded.state().refused == loaded.state().refused_exempt == 10_000 - room


def test_ordinary_traffic_makes_room_for_what_is_exempt(loaded: Loaded) -> None:
    ordinary = in_packets(PacketsPerSecond(5000))
    loaded.terms(ORDINARY, ordinary)
    loaded.terms(EXEMPT, in_packets(PacketsPerSecond(5000)))
    loaded.stop_the_clock()
    assert loaded.run(ROUTING["OSPF"], 10) == PASS
    assert loaded.state() == State(at=NEVER, level=10 * ordinary.per_packet)
    room = ordinary.depth // ordinary.per_packet
    loaded.run(PLAIN, 100)
    assert loaded.state().passed == room - 10
    assert loaded.run(ROUTING["OSPF"], 5) == PASS
    assert loaded.state().level == (room + 5) * ordinary.per_packet


def test_ordinary_traffic_waits_a_second_at_most_for_what_is_exempt(loaded: Loaded) -> None:
    ordinary = in_packets(PacketsPerSecond(1))
    loaded.terms(ORDINARY, ordinary)
    loaded.terms(EXEMPT, in_packets(PacketsPerSecond(5000)))
    loaded.stop_the_clock()
    assert loaded.run(ROUTING["OSPF"], 40) == PASS
    assert loaded.state().level == ordinary.depth + (10**9 << FRACTION)


def test_without_a_limit_what_is_exempt_fills_nothing(loaded: Loaded) -> None:
    loaded.terms(EXEMPT, in_packets(PacketsPerSecond(5000)))
    loaded.stop_the_clock()
    assert loaded.run(ROUTING["OSPF"], 40) == PASS
    assert loaded.state().level == 0


def test_no_frame_takes_more_than_the_burst_in_bits(loaded: Loaded) -> None:
    burst = 80e3
    loaded.terms(ORDINARY, holding(in_bits(BitsPerSecond(400e3)), burst))
    loaded.stop_the_clock()
    loaded.run(PLAIN.ljust(1514, b"\0"), 100)
    assert burst / 8 - 2 * 1518 <= loaded.state().passed * 1514 <= burst / 8


def test_more_protocols_can_be_exempt(loaded: Loaded) -> None:
    frame = ethernet(0x0800, ipv4(17, udp(4242, 9999)))
    assert not loaded.is_exempt(frame)
    loaded.exempt(*DEFAULT, "udp/9999", "ethertype/0x88b5")
    assert loaded.is_exempt(frame)
    assert loaded.is_exempt(OTHERS["an unknown EtherType"])
