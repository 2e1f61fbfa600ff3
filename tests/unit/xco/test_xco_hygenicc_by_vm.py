"""Weights and guarantees of VMs without a controller: ports and lines are shared by them."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import LINE, MS, NOW, SILENCE, build
from xco_peers_rig import Demand, Peer, Told, World, demanded

PACE, AIM = 0.98, 0.99
FULL = AIM * PACE
ALL = 2**64 - 1
U64 = st.integers(0, ALL)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("shim"))


RATES = st.one_of(U64, st.integers(0, 10**10))
GUARANTEES = st.one_of(st.just(0), st.integers(0, 1000), st.integers(0, 2**16 - 1))
DEMANDS = st.lists(st.tuples(RATES, GUARANTEES, st.integers(1, 2**16 - 1)), max_size=20)


@given(DEMANDS, RATES)
def test_guarantees_come_first_and_weights_share_the_rest(
    shim: ctypes.CDLL, demands: list[tuple[int, int, int]], capacity: int
) -> None:
    words = demanded(demands, capacity)
    shim.xco_shares_grant(*words)
    made, promisable = words[0], capacity - capacity // 20
    grants = [made[at].granted_bps for at in range(len(demands))]
    wanted = [min(rate, guarantee * 10**6) for rate, guarantee, _ in demands]
    assert all(grant <= want for grant, want in zip(grants, wanted, strict=True))
    assert sum(grants) <= promisable
    if sum(-(-want // 10**6) for want in wanted) * 10**6 <= promisable:
        assert grants == wanted
    level = shim.xco_shares_level(*words)
    rates = [
        min(rate, grant + level * weight)
        for (rate, _, weight), grant in zip(demands, grants, strict=True)
    ]
    parts = [
        shim.xco_shares_part(ctypes.byref(made[at]), ctypes.c_uint64(level))
        for at in range(len(demands))
    ]
    assert rates == [min(d[0], part) for d, part in zip(demands, parts, strict=True)]
    assert sum(rates) <= capacity
    if sum(rate for rate, _, _ in demands) > capacity:
        assert level < ALL
        assert sum(rates) > capacity - sum(weight for _, _, weight in demands), "a bit by weight"


@given(DEMANDS, RATES)
def test_what_all_can_use_at_once_is_no_more_than_the_capacity(
    shim: ctypes.CDLL, demands: list[tuple[int, int, int]], capacity: int
) -> None:
    words = demanded(demands, capacity)
    shim.xco_shares_grant(*words)
    even = shim.xco_shares_even(*words)
    level = shim.xco_shares_level(*words)
    active = [at for at, demand in enumerate(demands) if demand[0] > 0]
    parts = [words[0][at].granted_bps + even * demands[at][2] for at in active]
    assert sum(parts) <= capacity
    assert even <= level
    if active:
        assert sum(parts) > capacity - sum(demands[at][2] for at in active)


def test_senders_share_a_port_by_the_weights_of_their_vms(shim: ctypes.CDLL) -> None:
    world = World(shim, 4)
    for source, weight in enumerate((5, 2, 0)):
        world.send(source, 3)
        world.promise(source, 3, weight)
    world.run(300)
    assert world.shares() == pytest.approx([FULL * part / 8 for part in (5, 2, 1)], rel=0.02)


def test_a_guarantee_comes_before_the_weights(shim: ctypes.CDLL) -> None:
    world = World(shim, 4)
    for source in range(3):
        world.send(source, 3)
    world.promise(0, 3, 1, 500)
    world.run(300)
    rest = FULL - 0.5 * PACE
    expected = [0.5 * PACE + rest / 3, rest / 3, rest / 3]
    assert world.shares() == pytest.approx(expected, rel=0.02)


def test_what_a_guarantee_leaves_unused_the_others_get(shim: ctypes.CDLL) -> None:
    world = World(shim, 3)
    world.send(0, 2, 0.1)
    world.send(1, 2)
    world.promise(0, 2, 9, 600)
    world.run(500)
    assert world.shares() == pytest.approx([0.1, FULL - 0.11], rel=0.05)


def test_guarantees_above_a_port_are_cut(shim: ctypes.CDLL) -> None:
    """One claims more than the port: the other keeps half of what it is promised, and a share."""
    world = World(shim, 3)
    for source, guarantee in ((0, 2**16 - 1), (1, 950)):
        world.send(source, 2)
        world.promise(source, 2, 1, guarantee)
    world.run(300)
    assert world.shares() == pytest.approx([FULL / 2] * 2, rel=0.02)
    assert world.ports[2].queue < world.ports[2].threshold


def test_an_absurd_weight_brings_a_weighted_part_and_no_more(shim: ctypes.CDLL) -> None:
    world = World(shim, 3)
    for source in (0, 1):
        world.send(source, 2)
    world.promise(0, 2, 2**16 - 1)
    world.run(300)
    large, small = world.shares()
    assert large <= FULL * 1.01
    assert small >= 0.97 * PACE / 2 / 20, "a twentieth of the safe share is certain"


def test_the_own_line_is_shared_by_weight_and_guarantee(shim: ctypes.CDLL) -> None:
    world = World(shim, 4)
    for target in (1, 2, 3):
        world.send(0, target)
    world.promise(0, 1, 1, 400)
    world.promise(0, 2, 2)
    world.run(500)
    expected = [PACE * share for share in (0.4 + 0.15, 0.3, 0.15)]
    assert world.shares() == pytest.approx(expected, rel=0.03)


def test_messages_and_reports_carry_what_is_promised(shim: ctypes.CDLL) -> None:
    peer = Peer(shim, 0, 3)
    peer.core.look(NOW, peer.gate(NOW, 1), 10**6, 2**40)
    peer.promise(1, 7, 250)
    peer.count(NOW, {})
    peer.allow(NOW)
    (told,) = peer.written(NOW + 10 * MS)
    assert (told.weight, told.guarantee_mbps) == (7, 250)
    assert peer.first_entry() == (2**40, 7, 250)


def test_what_a_silent_host_was_promised_counts_no_longer(shim: ctypes.CDLL) -> None:
    peer, arrived = Peer(shim, 0, 3), {1: (0, 0, 0), 2: (0, 0, 0)}
    peer.count(NOW, arrived)
    peer.take(NOW, 1, Told(0, wants_bps=LINE, weight=9, guarantee_mbps=500))
    offers = []
    for at in range(1, 4):
        now = NOW + at * (SILENCE // 2)
        peer.take(now, 2, Told(0, wants_bps=LINE))
        arrived = dict.fromkeys((1, 2), (at * 1000, at * 10**6, 0))
        peer.count(now, arrived)
        offers.append((peer.offer(1), peer.offer(2)))
    assert offers[0][0] > 9 * offers[0][1]
    assert offers[2][0] < offers[2][1]


def test_a_level_without_bound_permits_everything(shim: ctypes.CDLL) -> None:
    for granted in (0, 7):
        demand = Demand(9, granted, 0, 3)
        assert shim.xco_shares_part(ctypes.byref(demand), ctypes.c_uint64(ALL)) == ALL


def test_what_all_leave_is_offered_by_weight(shim: ctypes.CDLL) -> None:
    peer = Peer(shim, 0, 3)
    peer.count(NOW, {})
    peer.take(NOW, 1, Told(0, wants_bps=6 * LINE // 10, weight=3))
    peer.take(NOW, 2, Told(0, wants_bps=LINE // 10, weight=1))
    peer.count(NOW + 10 * MS, {1: (100, 10**5, 0)})
    assert peer.offer(1) == pytest.approx((0.6 + 0.3 * 3 / 4) * LINE, rel=1e-3)
    assert peer.offer(2) == pytest.approx(LINE / 4, rel=1e-3)


def test_the_published_law_ignores_vms(shim: ctypes.CDLL) -> None:
    peer = Peer(shim, 0, 3).publish()
    for target in (1, 2):
        peer.core.look(NOW, peer.gate(NOW, target), 10**6, 1)
        peer.take(NOW, target, Told(0))
    peer.promise(1, 9, 500)
    peer.allow(NOW)
    assert peer.allowed(1) == peer.allowed(2) == LINE // 2
