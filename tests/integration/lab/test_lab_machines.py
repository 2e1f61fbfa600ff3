"""A lab with machines beside its host: Dom0 carries every packet, on one CPU, and pays for each."""

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Self

import pytest
from support.pacing import Pace
from support.schedstat import turns
from support.waiting import eventually
from support.weights import make_punctual, prefer

from lab.errors import BadRequestError, LabError
from lab.plan import DOM0, namespace
from lab.routers import receive
from lab.routers.machines import machine_names
from lab.routers.router import Router
from lab.routers.topology import Cpus, Lab, cpus_beside
from lab.system import namespaces
from xtc.measure.meter import Counters, parse

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(600),
]

INTERFACES = ("eth0", "eth1", "vif1.0", "vif1.1", "vif2.0", "vif2.1")
"""Of Dom0."""
CPUS = sorted(os.sched_getaffinity(0))
COST_NS = 50_000
"""Of a packet; without it Dom0 takes 10 to 20 us."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(f"m{os.getpid()}", beside=True) as running:
        group = running.add_router("vr1", "user-space").cgroup
        assert group is not None
        prefer(group.parent)
        running.add_router("vr2", "kernel")
        for interface in INTERFACES:
            make_punctual(
                receive.on_cpu(namespace(running.prefix, DOM0), interface, cpus_beside().dom0)
            )
        yield running


@pytest.fixture(params=["vr1", "vr2"])
def router(lab: Lab, request: pytest.FixtureRequest) -> Router:
    return lab.routers[request.param]


def counters(netns: str) -> dict[str, Counters]:
    return parse(namespaces.inside(netns, Path("/proc/thread-self/net/dev").read_bytes))


class Watch:
    """What Dom0's interfaces and the machine of sinks counted meanwhile."""

    def __init__(self, lab: Lab, seconds: float = 1.0) -> None:
        self._places = namespace(lab.prefix, DOM0), machine_names(lab.prefix)[1]
        self._before = [counters(place) for place in self._places]
        time.sleep(seconds)
        self.look()

    def look(self) -> Self:
        """Read what has come until now; Dom0 last, for what reached the sinks went through it."""
        after = [counters(place) for place in reversed(self._places)]
        self._dom0, self._sinks = zip(self._before, reversed(after), strict=True)
        return self

    def received(self, interface: str) -> int:
        before, after = self._dom0
        return after[interface].rx_packets - before[interface].rx_packets

    def sent(self, interface: str, counter: str = "tx_packets") -> int:
        before, after = self._dom0
        return int(getattr(after[interface], counter) - getattr(before[interface], counter))

    def sunk(self) -> int:
        before, after = self._sinks
        return after["nic"].rx_packets - before["nic"].rx_packets


def test_a_flood_crosses_the_host_twice_and_reaches_the_other_machine(
    lab: Lab, router: Router
) -> None:
    near, far = router.host_interfaces
    with router.flood(5_000) as source:
        make_punctual(source.pid)
        pace = Pace(source.pid, lambda: counters(namespace(lab.prefix, DOM0))["eth0"].rx_packets)
        seen = Watch(lab)
        pace.check(5_000, 0.1)
    arrived = seen.received("eth0")
    for count in (seen.sent(near), seen.received(far), seen.sunk()):
        assert arrived / 2 < count < 1.03 * arrived + 64  # a busy machine loses some on the way
    assert max(seen.sent("eth0"), seen.received(near), seen.sent(far)) < 5


def test_tcp_goes_through_the_router_both_ways_a_segment_a_packet(lab: Lab, router: Router) -> None:
    near, far = router.host_interfaces
    dom0, before = namespace(lab.prefix, DOM0), counters(namespace(lab.prefix, DOM0))
    flow = router.tcp(rate_pps=1_000)
    eventually(lambda: counters(dom0)[near].rx_packets > before[near].rx_packets + 10)
    seen = Watch(lab, 0.0)
    eventually(lambda: seen.look().received(far) > 300)
    flow.stop()
    # Answers that the sink has sent may still be on their way.
    eventually(lambda: seen.look().received(near) == pytest.approx(seen.sent(far), rel=0.1))
    assert seen.received(near) > 10  # answers
    # 524 bytes of data, 66 of headers: joined segments would be more
    assert seen.sent(near, "tx_bytes") / seen.sent(near) < 600


def test_packets_may_be_larger(lab: Lab) -> None:
    router = lab.routers["vr1"]
    near = router.host_interfaces[0]
    with router.flood(5_000, payload=524) as source:
        make_punctual(source.pid)
        seen = Watch(lab, 0.5)
    assert seen.sent(near) > 500
    assert seen.sent(near, "tx_bytes") / seen.sent(near) == pytest.approx(524 + 42, rel=0.01)


@pytest.mark.parametrize("payload", [0, 1473, -1])
def test_a_payload_that_no_batch_can_hold_is_refused(lab: Lab, payload: int) -> None:
    with pytest.raises(BadRequestError, match="payload"):
        lab.routers["vr1"].flood(1.0, payload=payload)


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
def test_what_dom0_receives_is_done_by_threads_on_its_own_cpu(lab: Lab) -> None:
    dom0 = namespace(lab.prefix, DOM0)
    expected = cpus_beside().dom0
    for interface in INTERFACES:
        pid = receive.on_cpu(dom0, interface, expected)  # again, which changes nothing
        assert os.sched_getaffinity(pid) == {expected}
        assert Path(f"/proc/{pid}/comm").read_text().startswith(f"napi/{interface}-")


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
def test_dom0_pays_for_packets_that_the_router_drops(lab: Lab) -> None:
    """The forwarder stands still, so that every packet is dropped in the router."""
    router = lab.routers["vr1"]
    forwarder = _forwarder(router)
    thread = receive.on_cpu(namespace(lab.prefix, DOM0), "eth0", cpus_beside().dom0)
    paid: dict[tuple[int, int], list[float]] = {(0, 0): [], (COST_NS, 0): [], (0, COST_NS): []}
    os.kill(forwarder, signal.SIGSTOP)
    try:
        with router.flood(5_000) as source:
            make_punctual(source.pid)
            for cost, seconds in 3 * list(paid.items()):
                router.set_packet_cost(*cost)
                seconds.append(_paid(lab, thread))
    finally:
        os.kill(forwarder, signal.SIGCONT)
        router.set_packet_cost(0, 0)
    # What else runs makes a packet dearer, and never cheaper: the least tell of the filters.
    light, heavy, behind = (min(seconds) for seconds in paid.values())
    assert heavy - light > COST_NS * 1e-9 / 2
    assert heavy - behind > COST_NS * 1e-9 / 2  # nothing comes back


def _paid(lab: Lab, thread: int) -> float:
    """Return the CPU seconds that a packet costs."""
    time.sleep(0.1)
    before = turns(thread)
    seen = Watch(lab, 0.5)
    return turns(thread).since(before).ran / seen.received("eth0")


def _forwarder(router: Router) -> int:
    assert router.cgroup is not None
    (pid,) = (int(line) for line in (router.cgroup / "cgroup.procs").read_text().split())
    return pid


def test_a_negative_cost_is_refused(lab: Lab) -> None:
    with pytest.raises(BadRequestError, match="comparisons"):
        lab.routers["vr1"].set_packet_cost(into=-1, back=0)


def test_an_interface_without_napi_is_told_so(lab: Lab) -> None:
    with pytest.raises(LabError, match="lo: its receiving cannot be given a thread"):
        receive.on_cpu(namespace(lab.prefix, DOM0), "lo", None)


def test_one_cpu_is_enough_to_build_it() -> None:
    with Lab(f"n{os.getpid()}", Cpus(), beside=True) as small:
        small.add_router("vr1", "kernel").flood(1_000)
        sunk = partial(counters, machine_names(small.prefix)[1])
        eventually(lambda: sunk()["nic"].rx_packets > 500)


def test_no_program_died(lab: Lab) -> None:
    assert lab.died() == []
