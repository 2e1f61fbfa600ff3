"""What of the shield is pure: the bucket's numbers, what is exempt, and which way is chosen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UnitError
from common.units import BitsPerSecond, PacketsPerSecond
from xtc.errors import Denied, Gone, Permanent, Unsupported
from xtc.shield.bucket import DEEPEST, FRACTION, State, Terms, holding, in_bits, in_packets
from xtc.shield.exemptions import DEFAULT, Exemptions
from xtc.shield.interface import Shield
from xtc.shield.limiter import BestLimiter
from xtc.shield.methods import Findings, Way, choose

SECOND = 10**9 << FRACTION


@given(st.floats(min_value=1, max_value=1e8).map(PacketsPerSecond))
def test_a_second_holds_the_rate_in_packets(rate: PacketsPerSecond) -> None:
    terms = in_packets(rate)
    assert SECOND / terms.per_packet == pytest.approx(rate, rel=1e-3)
    assert terms.packets == pytest.approx(rate, rel=1e-3)
    assert (terms.per_byte, terms.bits) == (0, None)


@given(st.floats(min_value=1e3, max_value=1e11).map(BitsPerSecond))
def test_a_second_holds_the_rate_in_bits(rate: BitsPerSecond) -> None:
    terms = in_bits(rate)
    assert 8 * SECOND / terms.per_byte == pytest.approx(rate, rel=1e-3)
    assert terms.bits == pytest.approx(rate, rel=1e-3)
    assert (terms.per_packet, terms.packets) == (0, None)


@given(st.floats(min_value=1, max_value=1e9).map(PacketsPerSecond))
def test_no_joined_packet_overflows_64_bits(rate: PacketsPerSecond) -> None:
    terms = in_packets(rate)
    assert terms.depth + terms.per_packet * 2**17 < 2**64


@given(st.floats(min_value=1e3, max_value=1e12).map(BitsPerSecond))
def test_no_large_packet_overflows_64_bits(rate: BitsPerSecond) -> None:
    terms = in_bits(rate)
    assert terms.depth + terms.per_byte * 2**20 < 2**64


def test_ten_milliseconds_pass_at_once_and_at_least_sixteen_packets() -> None:
    slow, fast = in_packets(PacketsPerSecond(100)), in_packets(PacketsPerSecond(1e5))
    assert slow.depth == 16 * slow.per_packet
    assert fast.depth == 1000 * fast.per_packet
    assert in_bits(BitsPerSecond(1e6)).depth == 16 * 1518 * in_bits(BitsPerSecond(1e6)).per_byte


def test_a_burst_is_the_depth_and_single_packets_pass_however_small_it_is() -> None:
    terms = in_packets(PacketsPerSecond(1e3))
    assert holding(terms, 200).depth == 200 * terms.per_packet
    assert holding(terms, 0.1).depth == terms.per_packet
    assert holding(terms, 0.1, sharers=3).depth == 2 * terms.per_packet
    assert holding(in_packets(PacketsPerSecond(1)), 1e9).depth == DEEPEST


def test_a_burst_in_bits_has_room_for_the_frame_that_runs_over() -> None:
    terms = in_bits(BitsPerSecond(1e6))
    assert holding(terms, 800e3).depth == (100_000 - 1518) * terms.per_byte
    assert holding(terms, 1.0).depth == terms.per_byte
    assert holding(terms, 1.0, sharers=2).depth == 2 * terms.per_byte


@pytest.mark.parametrize("rate", [0.5, 0.0, -1.0, float("nan"), 2e9])
def test_what_is_no_rate_in_packets_is_refused(rate: float) -> None:
    with pytest.raises(UnitError, match="rate"):
        in_packets(PacketsPerSecond(rate))
    with pytest.raises(Permanent, match="rate"):
        Shield().limit("lo", PacketsPerSecond(rate))


@pytest.mark.parametrize("rate", [999.0, float("nan"), 2e12])
def test_what_is_no_rate_in_bits_is_refused(rate: float) -> None:
    with pytest.raises(UnitError, match="bits/s"):
        in_bits(BitsPerSecond(rate))


def test_maps_are_read_as_they_are_written() -> None:
    terms = in_packets(PacketsPerSecond(5000))
    assert Terms.unpack(terms.pack()) == terms
    state = State(at=1, level=2, passed=3, refused=4, refused_exempt=5)
    assert State.unpack(state.pack()) == state
    assert State.refused_in(state.pack()) == state.refused


def test_each_exemption_is_one_bit_of_its_own_table() -> None:
    value = Exemptions.parse(["ethertype/0x0806", "llc/0xfefe", "tcp/179", "udp/520"]).pack()
    assert len(value) == 4 * 8192 + 2 * 32
    bits = {i for i, byte in enumerate(value) if byte}
    places = (0x0806 >> 3, 8192 + (0xFEFE >> 3), 2 * 8192 + (179 >> 3), 3 * 8192 + (520 >> 3))
    assert bits == set(places)
    assert value[2 * 8192 + (179 >> 3)] == 1 << (179 & 7)
    last = Exemptions.parse(["ip/89", "icmpv6/135"]).pack()[4 * 8192 :]
    assert {i for i, byte in enumerate(last) if byte} == {89 >> 3, 32 + (135 >> 3)}


def test_what_routers_speak_is_exempt_by_default() -> None:
    entries = Exemptions.parse(DEFAULT).entries
    assert {("ip", 89), ("tcp", 179), ("udp", 3784), ("llc", 0xFEFE)} <= entries
    assert len(entries) == len(DEFAULT)


@pytest.mark.parametrize(
    "word",
    ["ospf", "tcp/", "tcp/70000", "ip/256", "sctp/1", "ethertype/0x100", "tcp/-1", ""],
)
def test_an_exemption_that_cannot_be_read_is_refused(word: str) -> None:
    with pytest.raises(UnitError, match="exempt: "):
        Exemptions.parse([word])


@pytest.mark.parametrize("word", ["ip/6", "ip/17", "ethertype/0x0800", "ethertype/0x86dd"])
def test_one_that_would_exempt_nearly_everything_is_refused(word: str) -> None:
    with pytest.raises(UnitError, match="narrow"):
        Exemptions.parse([word])


OTHER = "filter bpf cilium (pref 1)"
TABLE = [
    (Findings(), Way.CLSACT, ""),
    (Findings(tbf="no tbf"), Way.CLSACT, ""),
    (Findings(present=False), Way.NONE, "no such interface"),
    (Findings(privileged=False), Way.TBF, "CAP_NET_ADMIN"),
    (Findings(privileged=False, tbf="its qdisc may not be set"), Way.NONE, "may not be set"),
    (Findings(bpf="libbpf is missing"), Way.TBF, "libbpf is missing"),
    (Findings(bpf="not built", foreign_filter=OTHER), Way.TBF, "not built"),
    (Findings(foreign_filter=OTHER), Way.TBF, f"{OTHER} belongs to another owner"),
    (Findings(clsact="an ingress qdisc"), Way.TBF, "an ingress qdisc"),
    (Findings(bpf="not built", tbf="no tbf"), Way.NONE, "not built; no tbf"),
    (Findings(foreign_filter=OTHER, tbf="no tbf"), Way.NONE, "another owner; no tbf"),
]


@pytest.mark.parametrize(("found", "way", "reason"), TABLE)
def test_the_cheapest_way_that_is_possible_is_chosen(
    found: Findings, way: Way, reason: str
) -> None:
    choice = choose(found)
    assert choice.way is way
    assert reason in choice.reason
    assert bool(choice.reason) == (way is not Way.CLSACT)


class FakeWay:
    """A limiter that refuses what a test has it refuse."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal
        self.limits: dict[str, float] = {}

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        if self.refusal:
            raise self.refusal
        self.limits[interface] = rate

    def lift(self, interface: str) -> None:
        self.limits.pop(interface, None)

    def current(self, interface: str) -> float | None:
        return self.limits.get(interface)

    def dropped(self, interfaces: tuple[str, ...]) -> dict[str, int]:
        return {name: 7 for name in interfaces if name in self.limits}


def pair(refusal: Exception | None = None) -> tuple[BestLimiter, FakeWay, FakeWay]:
    shield, tbf = FakeWay(refusal), FakeWay()
    return BestLimiter(shield, tbf), shield, tbf  # type: ignore[arg-type]


def test_the_shield_takes_the_place_of_an_earlier_tbf() -> None:
    best, shield, tbf = pair()
    tbf.limit("v0", PacketsPerSecond(1))
    best.limit("v0", PacketsPerSecond(5))
    assert (shield.limits, tbf.limits) == ({"v0": 5}, {})
    assert (best.current("v0"), best.dropped(["v0"]), best.reason("v0")) == (5, {"v0": 7}, "")


def test_where_the_shield_cannot_be_a_tbf_limits_and_the_reason_is_known() -> None:
    best, _, tbf = pair(Unsupported("v0", "libbpf is missing"))
    best.limit("v0", PacketsPerSecond(5))
    assert tbf.limits == {"v0": 5}
    assert (best.current("v0"), best.dropped(["v0"])) == (5, {"v0": 7})
    assert best.reason("v0") == "libbpf is missing"
    best.lift("v0")
    assert (tbf.limits, best.reason("v0")) == ({}, "")


def test_what_a_tbf_would_not_get_around_is_raised() -> None:
    best, _, tbf = pair(Gone("v0", "gone"))
    with pytest.raises(Gone):
        best.limit("v0", PacketsPerSecond(5))
    assert tbf.limits == {}


def test_a_daemon_that_may_not_load_programs_limits_by_a_tbf() -> None:
    best, _, tbf = pair(Denied("v0", "denied"))
    best.limit("v0", PacketsPerSecond(5))
    assert tbf.limits == {"v0": 5}


def test_where_neither_is_possible_both_obstacles_are_named() -> None:
    best, _, tbf = pair(Unsupported("v0", "libbpf is missing"))
    tbf.refusal = Permanent("v0", "qdisc htb 1: belongs to another program")
    with pytest.raises(Permanent, match="libbpf is missing; qdisc htb 1:"):
        best.limit("v0", PacketsPerSecond(5))
