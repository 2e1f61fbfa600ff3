"""The deadline actuator on a kernel router of namespaces, flooded by a UDP sender."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import asdict, replace
from pyroute2 import IPRoute, netns
from support.cpu import TICK_S
from support.inconclusive import inconclusive
from support.paced import Paced
from support.rates import Rate, between, read
from support.stalls import Stalls
from support.waiting import eventually

from common.clock import FakeClock
from common.units import CapFraction, Seconds
from xtc.actuator import deadline
from xtc.actuator.deadline import DeadlineActuator, least_share, share_of
from xtc.actuator.factory import probe, release
from xtc.errors import Admission, Gone, Transient
from xtc.kernel import forwarding, napi
from xtc.kernel.joining import SINGLE, gso_segments, joining, set_gso_segments, set_joining
from xtc.kernel.namespaces import cookie, in_namespace
from xtc.kernel.offload import gro, set_gro, set_gro_list, set_tso, set_uso, tso
from xtc.kernel.peer import find_peer
from xtc.kernel.reserved import reserved
from xtc.kernel.scheduling import SCHED_DEADLINE, SCHED_OTHER, get_policy, set_policy
from xtc.kernel.sysfs import namespace_sysfs
from xtc.manager.cap import MAX_CONFLICTS, CapController
from xtc.spec import DeadlineOriginal, DeadlineSpec, Joining, ThreadPolicy

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or probe().deadline is not None, reason=str(probe().deadline)
    ),
]

SOURCE, ROUTER, SINK = "xtcact-dl-src", "xtcact-dl-vr", "xtcact-dl-dst"
ENDS = ("vr1", "vr2")
"""The router's interfaces: kernel threads are named by them, so no lab's may be called alike."""
SLICE_S = 0.02
FLOOD_PPS = 40e3
CAP = 0.01
"""On the machines tried so far it forwards 3,500 to 12,000 packets/s."""
CAPS, PERIOD_US = (0.005, 0.01), 4000
"""A turn has cost a thread up to 6 us before its first packet: more than half of 1 % of a period of
1 ms, so that the rates of two caps are not in proportion."""
TRIES = 10
RX_PACKETS, TX_DROPPED = 1, 11
"""Columns of /proc/net/dev (proc(5))."""
Result = TypeVar("Result")


def path(name: str) -> str:
    return f"/run/netns/{name}"


def inside(name: str, work: Callable[[], Result]) -> Result:
    return in_namespace(path(name), work)


def remove_namespaces() -> None:
    for name in (SOURCE, ROUTER, SINK):
        if Path(path(name)).exists():
            netns.remove(name)


@pytest.fixture
def router() -> Iterator[DeadlineSpec]:
    try:
        for name in (SOURCE, ROUTER, SINK):
            netns.create(name)
        inside(SOURCE, partial(make_link, 1))
        inside(SINK, partial(make_link, 2))
        inside(ROUTER, make_router)
        yield DeadlineSpec(netns=path(ROUTER), interfaces=ENDS)
    finally:
        remove_namespaces()
        wait_until_no_threads()


def wait_until_no_threads() -> None:
    """The kernel takes a removed namespace apart in its own time."""
    names = tuple(f"napi/{end}-" for end in ENDS)
    eventually(lambda: not any(name.startswith(names) for _, name in napi.kernel_threads()))


def make_link(number: int) -> None:
    """Link the calling namespace's h<number> with the router's end, and route by it."""
    mac, gateway = f"02:00:00:00:0{number}:01", f"10.{number}.0.1"
    peer = {"ifname": ENDS[number - 1], "address": mac, "net_ns_fd": ROUTER}
    here = f"02:00:00:00:0{number}:02"
    with IPRoute() as route:
        route.link("add", ifname=f"h{number}", kind="veth", address=here, peer=peer)
        index = bring_up(f"h{number}")
        route.addr("add", index=index, address=f"10.{number}.0.2", prefixlen=24)
        route.neigh("add", dst=gateway, lladdr=mac, ifindex=index, state="permanent")
        route.route("add", dst="default", gateway=gateway)


def make_router() -> None:
    with IPRoute() as route:
        for number in (1, 2):
            index = bring_up(ENDS[number - 1])
            route.addr("add", index=index, address=f"10.{number}.0.1", prefixlen=24)
        mac = "02:00:00:00:02:02"
        route.neigh("add", dst="10.2.0.99", lladdr=mac, ifindex=index, state="permanent")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def bring_up(name: str) -> int:
    return set_link(name, state="up")


def set_link(name: str, **changes: object) -> int:
    with IPRoute() as route:
        index = int(route.link_lookup(ifname=name)[0])
        route.link("set", index=index, **changes)
        return index


def delete_link(name: str) -> None:
    with IPRoute() as route:
        route.link("del", index=route.link_lookup(ifname=name)[0])


@pytest.fixture
def flood(router: DeadlineSpec, tmp_path: Path) -> Iterator[DeadlineSpec]:
    """A real-time sender, which other work slows little, of twice what the highest cap lets by."""
    paced = Paced(tmp_path / "sender")
    ends = ("", "10.2.0.99")
    with subprocess.Popen(paced.command(ends, FLOOD_PPS, netns=path(SOURCE))) as sender:
        while delivered() < 1000:
            assert sender.poll() is None
            time.sleep(0.05)
        yield router
        sender.kill()
        sender.wait()


def delivered() -> int:
    return counters(SINK, "h2")[RX_PACKETS]


def dropped() -> int:
    """Return what the router did not take: the link's near end counts it."""
    return counters(SOURCE, "h1")[TX_DROPPED]


def counters(name: str, interface: str) -> list[int]:
    text = inside(name, Path("/proc/thread-self/net/dev").read_text)
    line = next(line for line in text.splitlines() if f"{interface}:" in line)
    return [int(word) for word in line.partition(":")[2].split()]


def settle(actuator: DeadlineActuator, cap: float) -> None:
    for _ in range(4):
        actuator.apply(CapFraction(cap))
        time.sleep(0.25)


@dataclass(frozen=True)
class Seen:
    """What a flooded router did."""

    rate: float
    """Packets/s in the full slices of time."""
    share: float
    """The part of the offered packets that it forwarded."""
    cpu: Rate
    ended: float
    """When its CPU time was read last (monotonic seconds)."""
    full: float
    """The part of the slices in which it was offered at least one and a half times what it took."""

    def stalled(self, stalls: Stalls) -> float:
        """Return how long a CPU stood still at most meanwhile."""
        return stalls.longest(self.ended - self.cpu.seconds, self.ended)


def measure(actuator: DeadlineActuator, seconds: float) -> Seen:
    """Watch the router in short slices of time."""
    spent = partial(used, actuator)
    first, slices = read(spent), []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        start, packets, lost = time.monotonic(), delivered(), dropped()
        time.sleep(SLICE_S)
        slices.append((time.monotonic() - start, delivered() - packets, dropped() - lost))
    last = read(spent)
    full = [one for one in slices if 2 * one[2] >= one[1]]
    elapsed, forwarded, lost = (sum(column) for column in zip(*slices, strict=True))
    busy = [sum(column) for column in zip(*full, strict=True)] or [elapsed, forwarded, lost]
    rate, share = busy[1] / busy[0], forwarded / (forwarded + lost)
    return Seen(rate, share, between(first, last), last.before, len(full) / len(slices))


def steadiest(actuator: DeadlineActuator, cap: float) -> Seen:
    """Watch it for two seconds, up to three times, until it had its runtime.

    What the hypervisor takes of a CPU within a period of 1 ms is lost to the thread, runtime and
    all; nothing gives it more than its runtime.
    """
    for _ in range(2):
        seen = measure(actuator, 2)
        if seen.cpu.most >= 0.9 * due(seen, cap):
            return seen
    return measure(actuator, 2)


def used(actuator: DeadlineActuator) -> float:
    return actuator.usage().used or 0.0


def check_cpu(seen: Seen, cap: float, stalls: Stalls) -> None:
    """A deadline thread gets no more than its runtime; no less while there is work for it.

    The kernel ends its turn at a tick, so that it may overdraw by so much, once; while another
    deadline thread does so, such as that of a test beside this one, it loses turns.
    """
    most, stalled = cap * 1.1 + TICK_S / seen.cpu.seconds, seen.stalled(stalls)
    if most < seen.cpu.least <= most + stalled / seen.cpu.seconds:
        inconclusive(f"more than its runtime, and a CPU stood still for {stalled:.3g} s: {seen}")
    assert seen.cpu.least <= most, f"more than its runtime: {seen}"
    if seen.full < 0.5:
        inconclusive(f"the flood kept the router busy for {seen.full:.0%} of the time")
    if seen.cpu.most < 0.9 * due(seen, cap) and reserved(tids()) > 0:
        inconclusive(f"other deadline threads took some of its turns: {seen}")
    assert seen.cpu.most >= 0.9 * due(seen, cap), f"less than its runtime: {seen}"


def due(seen: Seen, cap: float) -> float:
    """Return what the busy direction's thread was due: the other one keeps its own share."""
    return (cap - least_share(CapFraction(cap), len(ENDS))) * seen.full


def tids(*names: str) -> tuple[int, ...]:
    found = inside(ROUTER, partial(forwarding.threads, names or ENDS))
    return tuple(tid for tids in found.values() for tid in tids)


def test_throughput_and_cpu_follow_the_cap(flood: DeadlineSpec, stalls: Stalls) -> None:
    actuator = DeadlineActuator(replace(flood, period_us=PERIOD_US))
    original = actuator.capture()
    seen = {}
    for cap in CAPS:
        settle(actuator, cap)
        assert actuator.applied() == pytest.approx(cap, rel=0.01)
        seen[cap] = steadiest(actuator, cap)
        check_cpu(seen[cap], cap, stalls)
    low, high = (seen[cap] for cap in CAPS)
    assert 1.4 <= high.rate / low.rate <= 3.5
    actuator.restore(original)
    assert measure(actuator, 1).share > 2 * low.share


def test_restore_leaves_everything_as_it_was_and_may_be_repeated(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    original = actuator.capture()
    assert [item.gro for item in original.interfaces] == [False, False]
    assert [item.threaded for item in original.interfaces] == [False, False]
    assert all(len(item.peer_tso) >= 2 for item in original.interfaces)
    assert all((item.peer_segments or 0) > 1 for item in original.interfaces)
    actuator.apply(CapFraction(0.1))
    assert inside(ROUTER, partial(gro, "vr1"))
    assert inside(ROUTER, partial(joining, "vr1")).size == SINGLE
    assert inside(SOURCE, partial(gso_segments, "h1")) == 1
    assert inside(SOURCE, partial(tso, "h1")) == ()
    for _ in range(2):
        actuator.restore(original)
        assert DeadlineActuator(router).capture() == original
        assert tids() == ()


def test_restore_keeps_threads_that_were_there_before(router: DeadlineSpec) -> None:
    before = inside(ROUTER, partial(forwarding.enable, ENDS))
    actuator = DeadlineActuator(router)
    original = actuator.capture()
    assert all(item.policy is not None for item in original.interfaces)
    actuator.apply(CapFraction(0.1))
    assert {get_policy(tid).policy for tid in tids()} == {SCHED_DEADLINE}
    release(router, original)
    assert inside(ROUTER, partial(forwarding.threads, ENDS)) == before
    assert {get_policy(tid).policy for tid in tids()} == {SCHED_OTHER}
    assert {get_policy(tid).nice for tid in tids()} == {0}


def test_capture_and_usage_change_nothing(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    assert actuator.applied() is None
    assert actuator.usage().used is None  # no thread of its own forwards for it yet
    actuator.capture()
    assert tids() == ()
    assert not inside(ROUTER, partial(gro, "vr1"))
    assert inside(SOURCE, partial(tso, "h1")) != ()


def test_the_journals_original_is_not_replaced_by_our_own_cap(router: DeadlineSpec) -> None:
    first = DeadlineActuator(router)
    original = first.capture()
    first.apply(CapFraction(0.1))
    restarted = DeadlineActuator(router, original)
    assert restarted.capture() == original
    assert restarted.applied() == pytest.approx(0.1, rel=0.01)
    less = DeadlineOriginal(interfaces=original.interfaces[:1])
    names = [item.interface for item in DeadlineActuator(router, less).capture().interfaces]
    assert names == list(ENDS)


def test_a_link_that_goes_down_and_up_is_capped_again(flood: DeadlineSpec, stalls: Stalls) -> None:
    actuator = DeadlineActuator(flood)
    settle(actuator, CAP)
    before, used = set(tids()), actuator.usage().used
    inside(ROUTER, partial(set_link, "vr1", state="down"))
    inside(ROUTER, partial(set_link, "vr1", state="up"))
    assert set(tids()) != before
    settle(actuator, CAP)
    assert {get_policy(tid).policy for tid in tids()} == {SCHED_DEADLINE}
    assert actuator.usage().used >= used
    check_cpu(steadiest(actuator, CAP), CAP, stalls)


def test_a_tenant_who_takes_a_link_down_and_up_ends_no_cap(router: DeadlineSpec) -> None:
    controller = CapController(router, lambda spec, _original: DeadlineActuator(spec))
    for period in range(3 * MAX_CONFLICTS):
        controller.begin_period()
        assert controller.prepare()
        controller.view(Seconds(float(period)))
        assert not controller.yielded
        controller.set(CapFraction(0.1))
        assert {get_policy(tid).policy for tid in tids()} == {SCHED_DEADLINE}
        inside(ROUTER, partial(set_link, "vr2", state="down" if period % 2 else "up"))
    assert controller.release()


def test_a_quiet_direction_waits_for_milliseconds_at_most(flood: DeadlineSpec) -> None:
    actuator = DeadlineActuator(flood)
    cap = 2 * CAP
    settle(actuator, cap)
    shares = sorted(share_of(get_policy(tid)) for tid in tids())
    assert shares[0] == pytest.approx(least_share(CapFraction(cap), len(ENDS)), rel=0.5)
    assert max(get_policy(tid).period_ns for tid in tids()) <= 4_000_000


def test_a_cap_is_divided_again_while_it_stands(flood: DeadlineSpec) -> None:
    """An operator's pause keeps the cap; the busy direction is not known when it is set."""
    actuator = DeadlineActuator(flood)
    actuator.apply(CapFraction(CAP))
    before = sorted(share_of(get_policy(tid)) for tid in tids())
    assert before[0] == pytest.approx(before[1])
    for _ in range(4):
        time.sleep(0.25)
        actuator.rebalance()
    low, high = sorted(share_of(get_policy(tid)) for tid in tids())
    assert high > 2 * low
    assert low + high == pytest.approx(CAP, rel=0.01)


def test_a_thread_that_somebody_else_set_free_is_capped_again_while_the_cap_stands(
    router: DeadlineSpec,
) -> None:
    actuator = DeadlineActuator(router)
    actuator.apply(CapFraction(CAP))
    for free in tids():
        set_policy(free, ThreadPolicy(SCHED_OTHER, 0, 0, 0, 0, 0))
        assert actuator.applied() is None
        assert actuator.rebalance() == pytest.approx(CAP, rel=0.01)
        assert {get_policy(tid).policy for tid in tids()} == {SCHED_DEADLINE}
        assert actuator.applied() == pytest.approx(CAP, rel=0.01)


def test_shares_that_do_are_left_alone(
    flood: DeadlineSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    actuator = DeadlineActuator(flood)
    settle(actuator, CAP)
    written: list[int] = []

    def noted(tid: int, policy: ThreadPolicy) -> None:
        written.append(tid)
        set_policy(tid, policy)

    monkeypatch.setattr(deadline, "set_policy", noted)
    for _ in range(10):
        time.sleep(0.1)
        actuator.applied()
        actuator.rebalance()
    assert len(written) <= 2 * len(ENDS)


def test_an_interface_that_comes_up_later_is_capped_then(router: DeadlineSpec) -> None:
    inside(ROUTER, partial(set_link, "vr2", state="down"))
    actuator = DeadlineActuator(router)
    actuator.apply(CapFraction(0.1))
    assert len(tids()) == 1
    inside(ROUTER, partial(set_link, "vr2", state="up"))
    assert actuator.apply(CapFraction(0.1)) == pytest.approx(0.1, rel=0.01)
    assert [get_policy(tid).policy for tid in tids()] == [SCHED_DEADLINE] * 2


def test_a_router_whose_links_are_all_down_is_worth_another_try(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    for name in router.interfaces:
        inside(ROUTER, partial(set_link, name, state="down"))
    with pytest.raises(Transient, match="none of vr1, vr2 is up"):
        actuator.apply(CapFraction(0.1))


def test_a_link_that_is_down_is_restored_as_far_as_it_matters(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    original = actuator.capture()
    actuator.apply(CapFraction(0.1))
    inside(ROUTER, partial(set_link, "vr1", state="down"))
    actuator.restore(original)
    inside(ROUTER, partial(set_link, "vr1", state="up"))
    assert tids() == ()
    actuator.restore(original)


def test_a_router_that_is_gone_is_said_to_be_and_counts_as_restored(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    original = actuator.capture()
    actuator.apply(CapFraction(0.1))
    for name in ENDS:
        inside(ROUTER, partial(delete_link, name))
    with pytest.raises(Gone, match="vr1"):
        actuator.apply(CapFraction(0.1))
    actuator.restore(original)
    remove_namespaces()
    with pytest.raises(Gone):
        actuator.apply(CapFraction(0.1))
    actuator.restore(original)
    release(router, original)


def test_an_interface_that_never_was_there_is_missed(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(DeadlineSpec(router.netns, (*ENDS, "vr3")))
    with pytest.raises(Gone, match="vr3"):
        actuator.capture()
    with pytest.raises(Gone, match="vr3"):
        actuator.apply(CapFraction(0.1))


def test_one_interface_that_goes_takes_no_cap_from_the_others(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    original = actuator.capture()
    actuator.apply(CapFraction(0.1))
    inside(ROUTER, partial(delete_link, "vr1"))
    assert actuator.apply(CapFraction(0.05)) == pytest.approx(0.05, rel=0.01)
    assert [share_of(get_policy(tid)) for tid in tids("vr2")] == pytest.approx([0.05], rel=0.01)
    inside(SOURCE, partial(make_link, 1))
    inside(ROUTER, partial(bring_up, "vr1"))
    actuator.apply(CapFraction(0.05))
    assert {get_policy(tid).policy for tid in tids()} == {SCHED_DEADLINE}
    actuator.restore(original)
    assert tids() == ()


RENAMED = ("eth7", "vr2")


def rename(**names: str) -> None:
    """Rename interfaces as their tenant may, up as they are (Linux 6.2), or down for it."""
    for old, new in names.items():
        set_link(old, state="down")
        set_link(old, ifname=new)
        set_link(new, state="up")


def test_a_tenant_who_renames_an_interface_gets_round_no_cap(router: DeadlineSpec) -> None:
    controller = CapController(router, lambda spec, _original: DeadlineActuator(spec))
    for period, cap in enumerate((0.1, 0.05, 0.2)):
        controller.begin_period()
        assert controller.prepare()
        controller.view(Seconds(float(period)))
        assert controller.set(CapFraction(cap))
        assert controller.problem is None
        now = ENDS if period == 0 else RENAMED
        assert sum(share_of(get_policy(tid)) for tid in tids(*now)) == pytest.approx(cap, rel=0.01)
        if period == 0:
            before = controller.original
            inside(ROUTER, partial(rename, vr1="eth7"))
    assert controller.original == before
    assert controller.release()
    assert_restored(RENAMED)


def assert_restored(now: tuple[str, ...]) -> None:
    """Nothing of xtc is left on the router's interfaces, called as they are now, or their peers."""
    found = inside(ROUTER, partial(forwarding.capture, now))
    assert tids(*now) == ()
    for item in found:
        assert not item.gro
        assert not item.threaded
        assert item.joining is None or item.joining.size > SINGLE
        assert len(item.peer_tso) >= 2
        assert item.peer_uso
        assert (item.peer_segments or 0) > 1


def test_a_daemon_that_starts_again_knows_interfaces_that_were_renamed(
    router: DeadlineSpec,
) -> None:
    first = DeadlineActuator(router)
    original = first.capture()
    first.apply(CapFraction(0.1))
    inside(ROUTER, partial(rename, vr1="eth7"))
    restarted = DeadlineActuator(router, original)
    assert restarted.capture() == original
    assert restarted.apply(CapFraction(0.05)) == pytest.approx(0.05, rel=0.01)
    assert {get_policy(tid).policy for tid in tids(*RENAMED)} == {SCHED_DEADLINE}
    release(router, original)
    assert_restored(RENAMED)


def test_names_that_a_tenant_exchanges_stay_with_their_interfaces(router: DeadlineSpec) -> None:
    inside(SOURCE, partial(set_gso_segments, "h1", 1000))
    actuator = DeadlineActuator(router)
    original = actuator.capture()
    actuator.apply(CapFraction(0.1))
    inside(ROUTER, lambda: [rename(vr1="vr0"), rename(vr2="vr1"), rename(vr0="vr2")])
    assert actuator.apply(CapFraction(0.1)) == pytest.approx(0.1, rel=0.01)
    assert {get_policy(tid).policy for tid in tids()} == {SCHED_DEADLINE}
    actuator.restore(original)
    assert_restored(ENDS)
    assert inside(SOURCE, partial(gso_segments, "h1")) == 1000


def test_another_interface_that_takes_an_index_is_not_the_routers(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    actuator.apply(CapFraction(0.1))
    inside(ROUTER, replace_by_a_bridge)
    assert actuator.apply(CapFraction(0.05)) == pytest.approx(0.05, rel=0.01)
    assert [share_of(get_policy(tid)) for tid in tids("vr2")] == pytest.approx([0.05], rel=0.01)


def replace_by_a_bridge() -> None:
    """Put an interface that has no NAPI in the place of vr1."""
    with IPRoute() as route:
        index = route.link_lookup(ifname="vr1")[0]
        route.link("del", index=index)
        route.link("add", ifname="vr1", index=index, kind="bridge")
    bring_up("vr1")


def test_threads_that_keep_ending_are_worth_another_try(
    router: DeadlineSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(tid: int, _policy: object) -> None:
        raise ProcessLookupError(tid)

    actuator = DeadlineActuator(router)
    with monkeypatch.context() as fault:
        fault.setattr("xtc.actuator.deadline.set_policy", ended)
        with pytest.raises(Transient, match="keep ending"):
            actuator.apply(CapFraction(0.1))
    assert actuator.apply(CapFraction(0.1)) == pytest.approx(0.1, rel=0.01)


JOINERS: dict[str, Callable[[], None]] = {
    "gro_max_size": partial(set_joining, "vr1", Joining(65536, 65536)),
    "gro_ipv4_max_size": partial(set_joining, "vr1", Joining(SINGLE, 65536)),
    "rx-gro-list": partial(set_gro_list, "vr1", on=True),
    "gro": partial(set_gro, "vr1", on=False),
}


@pytest.mark.parametrize("switch", JOINERS)
def test_what_a_tenant_undoes_stands_again_in_the_next_period(
    router: DeadlineSpec, switch: str
) -> None:
    clock = FakeClock()
    actuator = DeadlineActuator(router, clock=clock)
    actuator.apply(CapFraction(0.1))
    set_right = switches()
    inside(ROUTER, JOINERS[switch])
    assert switches() != set_right
    clock.sleep(Seconds(1.0))
    actuator.apply(CapFraction(0.1))
    assert switches() == set_right
    assert {get_policy(tid).policy for tid in tids()} == {SCHED_DEADLINE}


@pytest.mark.parametrize("switch", ["tso", "uso", "segments"])
def test_what_is_undone_at_the_other_end_stands_again_in_seconds(
    router: DeadlineSpec, switch: str
) -> None:
    undo = {
        "tso": partial(set_tso, "h1", inside(SOURCE, partial(tso, "h1"))),
        "uso": partial(set_uso, "h1", on=True),
        "segments": partial(set_gso_segments, "h1", 100),
    }
    clock = FakeClock()
    actuator = DeadlineActuator(router, clock=clock)
    actuator.apply(CapFraction(0.1))
    set_right = switches()
    inside(SOURCE, undo[switch])
    assert switches() != set_right
    clock.sleep(Seconds(5.0))
    actuator.apply(CapFraction(0.1))
    assert switches() == set_right


def switches() -> tuple[object, ...]:
    """Return what stands on the router's first interface, but for its thread's policy."""
    (found,) = inside(ROUTER, partial(forwarding.capture, ENDS[:1]))
    return tuple(value for name, value in asdict(found).items() if name != "policy")


def test_what_was_captured_is_released_whatever_its_name_stands_for(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    original = actuator.capture()
    actuator.apply(CapFraction(0.1))
    release(DeadlineSpec("container:xtc-no-such-container", ENDS), original)
    assert DeadlineActuator(router).applied() is None


def test_a_namespace_of_the_same_name_is_another_router(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    original = actuator.capture()
    remove_namespaces()
    netns.create(ROUTER)
    with pytest.raises(Gone, match="another network namespace"):
        actuator.apply(CapFraction(0.1))
    with pytest.raises(Gone, match="another network namespace"):
        DeadlineActuator(router, original)


@pytest.fixture
def promised() -> Iterator[None]:
    """60 % of a CPU promised to somebody else."""
    hog = "import time; from xtc.kernel.scheduling import *; "
    hog += "set_policy(0, deadline_policy(60_000_000, 100_000_000)); print(); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-uc", hog], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


@pytest.mark.usefixtures("promised")
def test_more_than_the_kernel_may_promise_is_refused(router: DeadlineSpec) -> None:
    actuator = DeadlineActuator(router)
    original = actuator.capture()
    with pytest.raises(Admission, match="95 %"):
        actuator.apply(actuator.limits.ceiling)
    undisturbed(partial(check_left, actuator))
    low = actuator.apply(CapFraction(0.1))
    assert actuator.applied() == pytest.approx(low)
    assert actuator.rebalance() == pytest.approx(low, rel=0.01)
    actuator.restore(original)


def check_left(actuator: DeadlineActuator) -> None:
    """A refusal says how much is left: so much is granted, and no more."""
    low = actuator.apply(CapFraction(0.1))
    with pytest.raises(Admission, match="95 %") as refused:
        actuator.apply(CapFraction(1.5))  # of two CPUs: there may be room for one thread's half
    assert actuator.applied() == pytest.approx(low)
    left = left_by(str(refused.value))
    assert left < 1.5
    assert actuator.apply(CapFraction(left - 0.01)) == pytest.approx(left - 0.01, rel=0.01)
    with pytest.raises(Admission, match="is left for this router"):
        actuator.apply(CapFraction(left + 0.02))


def undisturbed(check: Callable[[], None]) -> None:
    """Repeat a check that failed while other threads' reservations changed: the host shares them.

    Raises:
        AssertionError, Admission, Failed: the check failed although they did not change, or often.
    """
    for _ in range(TRIES - 1):
        before = reserved(tids())
        try:
            return check()
        except (AssertionError, Admission, pytest.fail.Exception):
            if reserved(tids()) == pytest.approx(before, abs=1e-4):
                raise
    return check()


def left_by(refusal: str) -> float:
    """Return the CPUs that a refusal says are left for the router."""
    found = re.search(r"150% is wanted, and ([0-9.]+)% of [0-9.]+% is left for this", refusal)
    assert found is not None, refusal
    return float(found[1]) / 100


def test_threads_are_found_by_name_as_by_netlink(router: DeadlineSpec) -> None:
    found = inside(ROUTER, partial(forwarding.enable, router.interfaces))
    assert all(len(threads) == 1 for threads in found.values())
    assert napi.threads_by_name(router.interfaces, napi.kernel_threads()) == found


@pytest.mark.usefixtures("router")
def test_the_other_end_of_a_link_is_found_in_its_namespace() -> None:
    peer = inside(ROUTER, partial(find_peer, "vr1"))
    assert peer is not None
    assert in_namespace(peer.netns, cookie) == inside(SOURCE, cookie)
    assert inside(ROUTER, partial(find_peer, "lo")) is None


@pytest.mark.usefixtures("router")
def test_entering_a_namespace_leaves_this_thread_where_it_was() -> None:
    before = cookie()
    assert inside(ROUTER, cookie) != before
    assert cookie() == before
    assert {"lo", *ENDS} <= inside(ROUTER, interfaces)


def interfaces() -> frozenset[str]:
    with namespace_sysfs() as sysfs:
        return sysfs.interfaces()


def test_this_host_says_that_it_can() -> None:
    assert probe().deadline is None
