"""Hosts that share links without a controller: their laws, and what lying hosts can do."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import LINE, MS, NOW, SILENCE, build
from xco_peers_rig import DIFFERS, LATE, MISDIRECTED, TAKEN, Peer, Told, World, demanded

from xco.laws import by_marks

PACE, AIM = 0.98, 0.99
FULL = AIM * PACE
MESSAGES_BPS = 150_000


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("shim"))


class Marked(ctypes.Structure):
    """struct xco_marked."""

    _fields_ = (
        ("rate_bps", ctypes.c_double),
        ("target_bps", ctypes.c_double),
        ("alpha", ctypes.c_double),
        ("calm", ctypes.c_uint32),
    )


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1.5)), max_size=200))
def test_the_compiled_law_of_marks_is_that_of_python(
    shim: ctypes.CDLL, periods: list[tuple[int, float]]
) -> None:
    link = ctypes.c_double(LINE)
    shim.xco_marked_begin.restype = Marked
    pair, expected = shim.xco_marked_begin(link), by_marks.started(LINE)
    for packets, share in periods:
        marks = packets * share
        numbers = ctypes.c_double(packets), ctypes.c_double(marks)
        shim.xco_marked_follow(ctypes.byref(pair), *numbers, link)
        expected = by_marks.followed(expected, packets, marks, LINE)
        assert pair.rate_bps == pytest.approx(expected.rate_bps, rel=1e-9)
        assert pair.target_bps == pytest.approx(expected.target_bps, rel=1e-9)
        assert (pair.alpha, pair.calm) == (pytest.approx(expected.alpha), expected.calm)


U64 = st.integers(0, 2**64 - 1)
ALL = 2**64 - 1


@given(st.lists(U64, max_size=40), U64)
def test_demands_share_a_capacity_max_min_fairly(
    shim: ctypes.CDLL, demands: list[int], capacity: int
) -> None:
    words = demanded([(demand, 0, 1) for demand in demands], capacity)
    shim.xco_shares_grant(*words)
    level, spare = shim.xco_shares_level(*words), shim.xco_shares_spare(*words)
    given_out = [min(level, demand) for demand in demands]
    assert sum(given_out) <= capacity
    active = sum(demand > 0 for demand in demands)
    if sum(demands) <= capacity:
        assert level == ALL
        assert spare == ((capacity - sum(demands)) // active if active else 0)
    else:
        assert sum(given_out) > capacity - len(demands), "less than a bit each is left"
        assert spare == 0


def test_senders_share_a_port_equally(shim: ctypes.CDLL) -> None:
    world = World(shim, 5)
    for source in range(4):
        world.send(source, 4)
    world.run(300)
    assert world.shares() == pytest.approx([FULL / 4] * 4, rel=0.02)


def test_what_one_cannot_use_the_others_get(shim: ctypes.CDLL) -> None:
    world = World(shim, 4)
    world.send(0, 3, 0.1)
    world.send(1, 3)
    world.send(2, 3)
    world.run(500)
    small, *others = world.shares()
    assert small == pytest.approx(0.1, rel=0.02)
    assert others == pytest.approx([(FULL - 0.11) / 2] * 2, rel=0.05)


def test_one_that_begins_has_its_share_within_some_periods(shim: ctypes.CDLL) -> None:
    world = World(shim, 3)
    world.send(0, 2)
    world.run(300)
    world.send(1, 2)
    world.run(50)
    assert world.shares(100) == pytest.approx([FULL / 2] * 2, rel=0.06)


def test_the_sum_fits_the_senders_line_and_leaves_others_the_rest(shim: ctypes.CDLL) -> None:
    world = World(shim, 4)
    world.send(0, 2)
    world.send(0, 3)
    world.send(1, 3)
    world.run(500)
    first, second, other = world.shares()
    assert first == pytest.approx(0.49, rel=0.03)
    assert second == pytest.approx(0.49, rel=0.03)
    assert other == pytest.approx(0.49, rel=0.03)


def test_a_sender_held_elsewhere_leaves_its_part_of_a_port_to_others(shim: ctypes.CDLL) -> None:
    world = World(shim, 6)
    for target in (2, 3, 4, 5):
        world.send(0, target)
    world.send(1, 5)
    world.run(800)
    *_, quarter, rest = world.shares()
    assert quarter == pytest.approx(0.245, rel=0.05)
    assert rest == pytest.approx(FULL - 0.25, rel=0.05)


def test_traffic_of_others_is_left_out(shim: ctypes.CDLL) -> None:
    world = World(shim, 3)
    world.foreign_bps[2] = 0.3 * LINE
    for source in (0, 1):
        world.send(source, 2)
    world.run(2000)
    assert world.shares() == pytest.approx([(AIM - 0.3) * PACE / 2] * 2, rel=0.05)
    assert world.ports[2].queue < world.ports[2].threshold


def test_a_link_in_between_is_shared_by_its_marks(shim: ctypes.CDLL) -> None:
    """The simulator's Core: two pairs, with nothing in common but a link that no end knows."""
    world = World(shim, 4, {"core": LINE})
    world.send(0, 2, float("inf"), "core")
    world.run(300)
    world.send(1, 3, float("inf"), "core")
    world.run(3000)
    shares = world.shares(2000)
    assert min(shares) > 0.7 * max(shares)
    assert sum(shares) > 0.8
    assert world.links["core"].longest < 0.02 * LINE, "20 ms"


def test_without_messages_hosts_keep_to_safe_shares(shim: ctypes.CDLL) -> None:
    world = World(shim, 5)
    for source in (0, 1):
        world.send(source, 4)
    world.run(300)
    world.silent.add(4)
    world.run(100)
    assert world.shares(100) == pytest.approx([PACE / 4] * 2, rel=0.02)


def test_marks_of_a_port_in_use_are_its_own(shim: ctypes.CDLL) -> None:
    peer = Peer(shim, 0, 3)
    peer.count(NOW, {1: (0, 0, 0)})
    peer.count(NOW + 10 * MS, {1: (1000, 1_100_000, 900)})  # 0.88 of the port
    assert peer.between(1) == 0
    peer.count(NOW + 20 * MS, {1: (1500, 1_600_000, 1300)})  # 0.4 of it
    assert peer.between(1) == 400


def offered(shim: ctypes.CDLL, offer: int, marks: tuple[int, int] = (0, 0)) -> Peer:
    """Return a sender that has heard of an offer, and in a period of so many packets and marks."""
    peer = Peer(shim, 0, 3)
    gate = peer.gate(NOW, 1)
    peer.core.look(NOW, gate, 10**6, 1)
    assert peer.take(NOW, 1, Told(0, offer_bps=offer)) == TAKEN
    packets, marked = marks
    peer.take(NOW + 10 * MS, 1, Told(0, packets, packets, marked, offer))
    peer.allow(NOW + 10 * MS)
    return peer


@pytest.mark.parametrize(
    ("offer", "allowed"),
    [
        (LINE // 2, LINE // 2),
        (2**64 - 1, LINE),
        (1, LINE // 4 // 20),
        (0, 0),
    ],
)
def test_an_offer_counts_between_the_guaranteed_part_and_the_line(
    shim: ctypes.CDLL, offer: int, allowed: int
) -> None:
    peer = offered(shim, offer)
    assert peer.allowed(1) == allowed
    safe = round(PACE * (allowed or LINE // 4))
    assert peer.rate(NOW + 10 * MS, 1) == pytest.approx(safe, rel=1e-4)


def test_marks_of_links_in_between_lower_a_rate_below_the_offer(shim: ctypes.CDLL) -> None:
    assert offered(shim, LINE, (100, 100)).allowed(1) == LINE // 2


def test_an_offer_ends_with_the_silence(shim: ctypes.CDLL) -> None:
    peer = offered(shim, LINE // 2)
    for later, allowed in ((SILENCE - 1, LINE // 2), (SILENCE, 0)):
        peer.allow(NOW + 10 * MS + later)
        assert peer.allowed(1) == allowed


def test_offers_of_before_are_forgotten_when_the_controller_is_lost(shim: ctypes.CDLL) -> None:
    peer = offered(shim, LINE // 2)
    peer.core.decide(NOW + 10 * MS)
    peer.core.direct(NOW + 11 * MS, 3, 0, 0)
    peer.core.decide(NOW + 11 * MS)
    peer.core.decide(NOW + 11 * MS + SILENCE)
    assert peer.allowed(1) == 0


@pytest.mark.parametrize(
    ("message", "result"),
    [
        ((1, Told(0), 1001), TAKEN),
        ((1, Told(0), 1000), LATE),
        ((1, Told(0), 999), LATE),
        ((1, Told(0), 1001, 7), DIFFERS),
        ((1, Told(2), 1001), MISDIRECTED),
        ((0, Told(0), 1001), MISDIRECTED),
        ((3, Told(0), 1001), MISDIRECTED),
        ((2, Told(0), 1), TAKEN),
    ],
)
def test_a_message_is_taken_once_by_the_host_that_it_is_to(
    shim: ctypes.CDLL, message: tuple[int, Told, int], result: int
) -> None:
    peer = Peer(shim, 0, 3)
    peer.take(NOW, 1, Told(0), 1000)
    assert peer.take(NOW + MS, *message) == result


def test_counters_that_restart_begin_again(shim: ctypes.CDLL) -> None:
    peer = Peer(shim, 0, 3)
    peer.core.look(NOW, peer.gate(NOW, 1), 10**6, 1)
    counters = [(10**6, 0), (10**6 + 10, 0), (10, 10), (20, 10)]
    for at, (packets, marks) in enumerate(counters):
        peer.take(NOW + at * 10 * MS, 1, Told(0, packets, packets, marks, LINE))
    peer.allow(NOW + 30 * MS)
    assert peer.allowed(1) == LINE


def test_more_messages_drive_no_law_faster(shim: ctypes.CDLL) -> None:
    peer = offered(shim, LINE, (100, 100))
    for at in range(40):
        peer.take(NOW + 10 * MS + at * 100_000, 1, Told(0, 200 + at, 200, 200 + at, LINE))
    peer.allow(NOW + 14 * MS)
    assert peer.allowed(1) == LINE // 2


U16 = st.integers(0, 2**16 - 1)


@given(st.lists(st.tuples(U64, U64, U64, U64, U64, U16, U16), min_size=1, max_size=20))
def test_no_message_stops_traffic_or_lets_it_exceed_the_line(
    shim: ctypes.CDLL, messages: list[tuple[int, int, int, int, int, int, int]]
) -> None:
    peer, now = Peer(shim, 0, 3), NOW
    peer.gate(now, 1)
    for at, (packets, count, marks, *rest) in enumerate(messages):
        now += 10 * MS
        peer.core.look(now, peer.gates[1], 10**6, at)
        peer.take(now, 1, Told(0, packets, count, min(packets, marks), *rest))
        peer.count(now, {1: (at * 100, at * 10**5, at)})
        peer.allow(now)
        assert LINE // 4 // 20 * 0.97 <= peer.rate(now, 1) <= LINE
        assert peer.offer(1) <= LINE


@given(st.lists(st.tuples(st.booleans(), U64, st.floats(0, 1)), min_size=1, max_size=8))
def test_what_is_demanded_never_brings_more_than_a_max_min_share(
    shim: ctypes.CDLL, senders: list[tuple[bool, int, float]]
) -> None:
    """Whatever the others say, a sender at which something waits gets an equal part at least."""
    hosts = len(senders) + 2
    peer, now = Peer(shim, 0, hosts), NOW
    arrived = dict.fromkeys(range(hosts + 1), (0, 0, 0))
    peer.count(now, arrived)
    for turn in range(1, 4):
        now += 10 * MS
        for host, (tells, wants, _) in enumerate(senders, start=2):
            if tells:
                peer.take(now, host, Told(0, wants_bps=wants))
        peer.take(now, 1, Told(0, wants_bps=LINE))
        size = 1_250_000 // hosts
        for host, (_, _, rate) in enumerate(senders, start=2):
            count = int(size * rate) * turn
            arrived[host] = count // 1000, count, 0
        arrived[1] = size // 1000 * turn, size * turn, 0
        peer.count(now, arrived)
    assert peer.offer(1) >= AIM * LINE // (len(senders) + 1) - MESSAGES_BPS - 1
    assert sum(min(peer.offer(host), LINE) for host in range(1, hosts)) <= 2 * AIM * LINE + hosts


def test_hosts_write_to_each_other_while_there_is_traffic(shim: ctypes.CDLL) -> None:
    peer, now = Peer(shim, 0, 3), NOW
    peer.count(now, {})
    assert peer.written(now) == []
    peer.count(now + 10 * MS, {1: (100, 10**5, 0)})
    (told,) = peer.written(now + 10 * MS)
    assert (told.to, told.packets) == (1, 100)
    assert told.offer_bps > 0
    assert peer.written(now + 19 * MS) == []
    peer.count(now + 500 * MS, {1: (102, 10**5 + 300, 0)})
    assert [one.to for one in peer.written(now + 509 * MS)] == [1]
    assert peer.written(now + 520 * MS) == []
