"""A lab with one router of each kind carries real packets, at the rate asked for."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.pacing import Pace
from support.rates import between, read
from support.schedstat import turns
from support.stalls import Stalls
from support.waiting import eventually
from support.weights import make_punctual, prefer

from lab.errors import BadRequestError
from lab.plan import DOM0, namespace
from lab.routers.router import Router
from lab.routers.topology import Lab
from lab.system import cgroups, namespaces

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(600),
]


MANY = 20_000
"""Packets: enough to tell what one costs."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(f"t{os.getpid()}") as running:
        group = running.add_router("vr1", "user-space").cgroup
        assert group is not None
        prefer(group.parent)
        running.add_router("vr2", "kernel")
        yield running


@pytest.fixture(params=["vr1", "vr2"])
def router(lab: Lab, request: pytest.FixtureRequest) -> Router:
    return lab.routers[request.param]


def counters(lab: Lab) -> dict[str, tuple[int, int]]:
    def read() -> dict[str, tuple[int, int]]:
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
        fields = {name.strip(): rest.split() for name, rest in (ln.split(":") for ln in lines)}
        return {name: (int(row[1]), int(row[9])) for name, row in fields.items()}

    return namespaces.inside(namespace(lab.prefix, DOM0), read)


@dataclass(frozen=True)
class Crossed:
    """Packets that were counted at a router's host interfaces."""

    offered: int
    """Towards the router."""
    forwarded: int
    backwards: int
    """Back on the source's side."""

    def since(self, earlier: "Crossed") -> "Crossed":
        """Return what was added since an earlier count."""
        return Crossed(
            self.offered - earlier.offered,
            self.forwarded - earlier.forwarded,
            self.backwards - earlier.backwards,
        )


def crossed(lab: Lab, router: Router) -> Crossed:
    """Return what was counted until now."""
    seen = counters(lab)
    near, far = router.host_interfaces
    return Crossed(seen[near][1], seen[far][0], seen[near][0] + seen[far][1])


def crossing(lab: Lab, router: Router, seconds: float = 1.0) -> Crossed:
    """Return what is counted within so long."""
    before = crossed(lab, router)
    time.sleep(seconds)
    return crossed(lab, router).since(before)


def offered(lab: Lab, router: Router) -> Callable[[], int]:
    """Return a counter of what is sent towards a router."""
    return lambda: crossed(lab, router).offered


def workers(router: Router) -> list[int]:
    """Return the processes that forward; none where the kernel does."""
    return [] if router.cgroup is None else sorted(cgroups.processes(router.cgroup))


def test_flood_is_exact_forwarded_whole_and_unanswered(
    lab: Lab, router: Router, stalls: Stalls
) -> None:
    """What is lost is lost while the source or a forwarder, be it the kernel, waits for a CPU."""
    with router.flood(40_000) as source:
        make_punctual(source.pid)
        pace = Pace(source.pid, offered(lab, router))
        waits = [pace, *(Pace(pid, lambda: 0) for pid in workers(router))]
        begun, seen = time.monotonic(), crossing(lab, router)
        stalled = stalls.lost(begun)
        pace.check(40_000)
        waited = sum(one.waited() for one in waits)
    assert seen.forwarded <= 1.01 * seen.offered
    assert seen.forwarded >= 0.97 * seen.offered - 40_000 * (waited + stalled)
    assert seen.backwards == 0


def test_rate_changes_while_the_source_runs(lab: Lab, router: Router) -> None:
    with router.flood(2_000) as source:
        make_punctual(source.pid)
        source.set_rate(20_000)
        eventually(lambda: crossing(lab, router, 0.1).offered > 1_000)
        pace = Pace(source.pid, offered(lab, router))
        time.sleep(1.0)
        pace.check(20_000)
        source.set_rate(0)
        eventually(lambda: crossing(lab, router, 0.2).offered == 0)


def test_tcp_passes_through_the_router_both_ways(lab: Lab, router: Router, stalls: Stalls) -> None:
    before, flow = crossed(lab, router), router.tcp()
    eventually(lambda: crossed(lab, router).since(before).forwarded > 5_000)
    eventually(lambda: crossed(lab, router).since(before).backwards > 500)
    flow.source.set_rate(2_000)
    eventually(lambda: crossing(lab, router, 0.5).offered < 0.5 * 2_200)  # the socket had queued
    begun, first = time.monotonic(), read(offered(lab, router))
    time.sleep(1.0)
    rate = between(first, read(offered(lab, router)))
    flow.stop()
    assert rate.least < 2_200
    assert rate.most > 1_800 * (1 - stalls.lost(begun) / rate.seconds)


def test_hog_burns_its_share_inside_the_router_s_group(lab: Lab) -> None:
    router = lab.routers["vr1"]
    assert router.cgroup is not None
    with router.hog(0.05) as hog:
        assert hog.pid in cgroups.processes(router.cgroup)
        pace = Pace(hog.pid, lambda: turns(hog.pid).ran)
        time.sleep(1.0)
        pace.check(0.05, 0.2)


def test_a_kernel_router_has_no_group_to_hog(lab: Lab) -> None:
    assert lab.routers["vr2"].cgroup is None
    with pytest.raises(BadRequestError, match="user-space"):
        lab.routers["vr2"].hog(0.1)


def test_heavier_path_costs_throughput_and_can_be_taken_back(lab: Lab) -> None:
    router = lab.routers["vr2"]
    costs = {0: 0.0, 200: 0.0}
    with router.flood(20_000_000) as source:
        for filters in [0, 200] * 3:
            router.set_path_weight(filters)
            before = crossed(lab, router), turns(source.pid)
            eventually(lambda first=before[0]: crossed(lab, router).since(first).forwarded > MANY)
            spent = turns(source.pid).since(before[1]).ran
            costs[filters] += spent / crossed(lab, router).since(before[0]).forwarded
        router.set_path_weight(0)
    assert costs[200] > costs[0] / 0.85


def test_programs_in_dom0_see_its_interfaces_and_the_control_groups(lab: Lab) -> None:
    group = lab.routers["vr1"].cgroup
    script = f"cat /proc/net/dev; ls {group}/cgroup.procs"
    process = lab.run_in_dom0(["sh", "-c", script], stdout=-1, text=True)
    output = process.communicate()[0]
    assert process.returncode == 0
    assert "vif1.0:" in output
    assert "vif2.1:" in output


def test_a_name_is_taken_once(lab: Lab) -> None:
    with pytest.raises(BadRequestError, match="name"):
        lab.add_router("vr1", "kernel")


def test_no_program_died(lab: Lab) -> None:
    assert lab.died() == []
