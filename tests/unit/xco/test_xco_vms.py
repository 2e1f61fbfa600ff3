"""What the VMs that send to a destination add up to: weights, guarantees in use, and news."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import CLOSED, GAP, MS, NOW, RATE, REPORT, Core, build, long

SLOTS, HASHED, GATES, OUTSIDE = 32, 8, 65, 64
HOST, UNLISTED, GOLD, SILVER = 0, 3, 8, 9
MBPS = 10**6
WINDOW = 50 * MS


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("vms"))


class Vms:
    """The VMs of a host, and what has entered each gate."""

    def __init__(self, shim: ctypes.CDLL) -> None:
        self._shim = shim
        self._state = ctypes.c_void_p(shim.shim_vms())
        self._bytes = [(ctypes.c_uint64 * SLOTS)() for _ in range(GATES)]
        self.rate_bps, self.lasts = 0, False
        """How all gates are open; at first they are closed."""

    def set(self, slot: int, weight: int, guarantee_mbps: int = 0) -> None:
        """Give a slot to a VM; weight 0: take it away."""
        self._shim.shim_vms_set(self._state, slot, weight, guarantee_mbps)

    def look(self, now: int, gate: int, **sent: int) -> tuple[int, int]:
        """Have slots send, by their names; return the destination's weight and guarantee."""
        for name, count in sent.items():
            self._bytes[gate][SLOT[name]] += count
        opening = ctypes.c_uint64(self.rate_bps), self.lasts
        both = self._shim.shim_vms_look(self._state, long(now), gate, self._bytes[gate], *opening)
        return both & 0xFFFF, both >> 16

    def leave(self, gate: int) -> None:
        """Remove a gate."""
        self._bytes[gate] = (ctypes.c_uint64 * SLOTS)()
        self._shim.xco_vms_leave(self._state, gate)

    def free(self) -> int:
        return int(self._shim.xco_vms_free(self._state))

    def sent(self, slot: int) -> int:
        return int(self._shim.shim_vms_sent(self._state, slot))


SLOT = {"host": HOST, "unlisted": UNLISTED, "gold": GOLD, "silver": SILVER}


@pytest.fixture
def vms(shim: ctypes.CDLL) -> Vms:
    made = Vms(shim)
    made.set(GOLD, 3, 50)
    made.set(SILVER, 2)
    for gate in range(3):
        made.look(NOW, gate)
    return made


def run(vms: Vms, gate: int, mbps: int, start: int = NOW) -> int:
    """Have gold send at a rate for two windows; return the time after them."""
    step, now = 5 * MS, start
    for _ in range(2 * WINDOW // step):
        now += step
        vms.look(now, gate, gold=mbps * MBPS // 8 * step // 10**9)
    return now


def test_a_destination_has_the_weight_of_those_that_send_to_it(vms: Vms) -> None:
    assert vms.look(NOW + 5 * MS, 0, gold=1500)[0] == 3
    assert vms.look(NOW + 10 * MS, 0, silver=1500, host=1500, unlisted=1500)[0] == 3 + 2 + 1 + 1
    assert vms.look(NOW + 5 * MS, 1, silver=1500)[0] == 2


def test_one_that_was_silent_for_100_ms_no_longer_counts(vms: Vms) -> None:
    vms.look(NOW + 5 * MS, 0, gold=1500, silver=1500)
    assert vms.look(NOW + 100 * MS, 0, silver=1500)[0] == 5
    assert vms.look(NOW + 106 * MS, 0)[0] == 2
    assert vms.look(NOW + 300 * MS, 0) == (1, 0)  # 0 would say that no VM is listed


def test_looks_that_follow_each_other_fast_cost_nothing(vms: Vms) -> None:
    vms.look(NOW + 5 * MS, 0, gold=1500)
    assert vms.look(NOW + 6 * MS - 1, 0, silver=1500) == (0, 0)  # not written
    assert vms.look(NOW + 6 * MS, 0)[0] == 5


def open_at(vms: Vms, rate_bps: int) -> None:
    vms.rate_bps, vms.lasts = rate_bps, True


def flows(vms: Vms, start: int, steps: int, **rates_bps: int) -> tuple[int, int]:
    """Have slots send for steps of 5 ms; return the time after them, and the weight."""
    weight, now = 0, start
    for _ in range(steps):
        now += 5 * MS
        sent = {name: rate // 1600 for name, rate in rates_bps.items()}
        weight, _ = vms.look(now, 0, **sent)
    return now, weight


def test_a_vm_that_sends_little_counts_little(vms: Vms) -> None:
    vms.set(GOLD, 100)
    vms.set(SILVER, 1)
    open_at(vms, 10**9)
    assert flows(vms, NOW, 20, gold=10_000, silver=900 * MBPS)[1] == 2  # 1.1, rounded up
    assert flows(vms, NOW + 100 * MS, 20, gold=10_000)[1] == 1


def test_one_that_takes_its_share_counts_in_full(vms: Vms) -> None:
    vms.set(GOLD, 100)
    vms.set(SILVER, 1)
    open_at(vms, 10**9)
    _, weight = flows(vms, NOW, 20, gold=990 * MBPS, silver=10 * MBPS)
    assert weight == 101


def test_a_weight_counts_in_full_where_a_gate_is_closed_or_in_slices(vms: Vms) -> None:
    vms.set(GOLD, 100)
    vms.rate_bps = 10**9
    assert flows(vms, NOW, 20, gold=10_000)[1] == 100
    open_at(vms, 0)
    assert flows(vms, NOW + 100 * MS, 20, gold=10_000)[1] == 100


@pytest.mark.parametrize("beside", [0, 1])
def test_a_vm_that_begins_to_flood_has_its_weight_soon(vms: Vms, beside: int) -> None:
    """Its host competes with another one of weight 1; within its gate it has its part at once."""
    vms.set(GOLD, 100)
    vms.set(SILVER, 1)
    weights, now, gate_bps = [1], NOW, 10**9 // 2
    for _ in range(6):
        open_at(vms, gate_bps)
        used = gate_bps * 100 // 101 if beside else gate_bps
        now, weight = flows(vms, now, 10, gold=used, silver=gate_bps - used)
        weights.append(weight)
        gate_bps = 10**9 * weight // (weight + 1)
    assert min(weights[3:]) > 70  # while the gate just grew, the rate is still of the smaller one
    assert weights[-2:] == [100 + beside] * 2


def test_a_guarantee_counts_as_far_as_it_is_used(vms: Vms) -> None:
    now = run(vms, 0, mbps=10)
    assert vms.look(now + 5 * MS, 0, gold=1500)[1] == 10 + 5 + 1


def test_what_one_destination_leaves_of_a_guarantee_another_gets(vms: Vms) -> None:
    now = max(run(vms, 0, mbps=400), run(vms, 1, mbps=4))
    assert vms.look(now + 5 * MS, 1, gold=1500)[1] == 4 + 2 + 1
    assert vms.look(now + 5 * MS, 0, gold=1500)[1] == 50 - 7


def test_destinations_outside_the_topology_have_no_part_of_a_guarantee(vms: Vms) -> None:
    now = max(run(vms, 0, mbps=400), run(vms, OUTSIDE, mbps=400))
    assert vms.look(now + 5 * MS, OUTSIDE, gold=1500) == (0, 0)  # not written
    assert vms.look(now + 5 * MS, 0, gold=1500)[1] == 50


def test_no_more_than_the_guarantee_counts(vms: Vms) -> None:
    now = run(vms, 0, mbps=400)
    assert vms.look(now + 5 * MS, 0, gold=1500)[1] == 50


def test_a_guarantee_is_divided_among_the_destinations(vms: Vms) -> None:
    now = max(run(vms, gate, mbps=400) for gate in range(3))
    assert vms.look(now + 5 * MS, 0, gold=1500)[1] == 17  # 50 / 3
    vms.leave(1)
    assert vms.look(now + 10 * MS, 0, gold=1500)[1] == 25


def test_a_vm_without_a_guarantee_reserves_nothing(vms: Vms) -> None:
    assert vms.look(NOW + 5 * MS, 0, silver=10**6, host=10**6) == (3, 0)


def test_a_slot_forgets_its_last_vm(vms: Vms) -> None:
    run(vms, 0, mbps=400)
    vms.set(GOLD, 0)
    assert vms.look(NOW + 2 * WINDOW + 5 * MS, 0) == (1, 0)
    vms.set(GOLD, 7, 10)
    assert vms.look(NOW + 2 * WINDOW + 10 * MS, 0) == (1, 0)
    assert vms.sent(GOLD) == 0
    assert vms.look(NOW + 2 * WINDOW + 15 * MS, 0, gold=1500) == (7, 1)
    assert vms.sent(GOLD) == 1500


def test_a_gate_that_is_made_again_begins_anew(vms: Vms) -> None:
    vms.look(NOW + 5 * MS, 0, gold=9000)
    vms.leave(0)
    assert vms.look(NOW + 10 * MS, 0) == (1, 0)
    assert vms.look(NOW + 15 * MS, 0, gold=1500)[0] == 3
    assert vms.sent(GOLD) == 9000 + 1500


def test_there_are_24_slots_for_listed_vms(shim: ctypes.CDLL) -> None:
    vms, given = Vms(shim), []
    while slot := vms.free():
        given.append(slot)
        vms.set(slot, 100, 0xFFFF)
    assert given == list(range(HASHED, SLOTS))
    vms.set(11, 0)
    assert vms.free() == 11


def test_sums_have_an_upper_limit(shim: ctypes.CDLL) -> None:
    vms = Vms(shim)
    for slot, name in ((GOLD, "gold"), (SILVER, "silver")):
        vms.set(slot, 100, 0xFFFF)
        vms.look(NOW, 0, **{name: 0})
    vms.look(NOW + WINDOW, 0, gold=2**40, silver=2**40)
    assert vms.look(NOW + WINDOW + 5 * MS, 0, gold=1, silver=1) == (200, 0xFFFF)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 150), st.integers(0, 2)), max_size=40))
def test_weight_and_guarantee_are_within_their_bounds(
    shim: ctypes.CDLL, steps: list[tuple[int, int, int]]
) -> None:
    vms, now = Vms(shim), NOW
    vms.set(GOLD, 3, 50)
    for gate, wait, act in steps:
        now += wait * MS + 5 * MS
        if act == 0:
            vms.leave(gate)
        weight, guarantee = vms.look(now, gate, gold=1500 * (act == 1))
        assert weight in {1, 3}
        assert guarantee <= (50 if weight == 3 else 0)


def promised(shim: ctypes.CDLL) -> Core:
    """Return a core that reported a destination with a backlog, weight 8 and 40 Mbit/s."""
    core = Core(shim)
    core.add(NOW, 1)
    core.direct(NOW, CLOSED, 0, 0)
    core.look(NOW, 0, 10**6)
    shim.shim_promise(core.state, 0, 8, 40)
    assert core.decide(NOW + GAP) & REPORT
    return core


@pytest.mark.parametrize(
    ("weight", "guarantee", "news"),
    [(8, 40, False), (9, 45, False), (11, 40, True), (8, 50, True), (8, 0, True), (5, 40, True)],
)
def test_a_change_of_more_than_an_eighth_is_news(
    shim: ctypes.CDLL, weight: int, guarantee: int, news: bool
) -> None:
    core = promised(shim)
    shim.shim_promise(core.state, 0, weight, guarantee)
    assert not core.decide(NOW + GAP + GAP // 2) & REPORT
    assert bool(core.decide(NOW + 2 * GAP) & REPORT) == news
    assert not core.decide(NOW + 3 * GAP) & REPORT


def test_what_is_promised_where_nothing_waits_is_no_news(shim: ctypes.CDLL) -> None:
    core = Core(shim)
    core.add(NOW, 1)
    core.direct(NOW, RATE, 0, 0)
    core.decide(NOW)
    core.decide(NOW + 2 * GAP)
    shim.shim_promise(core.state, 0, 5, 40)
    assert not core.decide(NOW + 3 * GAP) & REPORT
