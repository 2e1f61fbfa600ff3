"""A lab with one router of each kind carries real packets, at the rate asked for."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import namespaces
from lab.errors import BadRequestError
from lab.plan import DOM0, namespace
from lab.router import Router
from lab.topology import Lab

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(f"t{os.getpid()}") as running:
        running.add_router("vr1", "user-space")
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


def rates(lab: Lab, router: Router, seconds: float = 1.0) -> tuple[float, float, float]:
    """Packets/s of (offered towards the router, forwarded, back on the source's side)."""
    before, start = counters(lab), time.monotonic()
    time.sleep(seconds)
    after, elapsed = counters(lab), time.monotonic() - start
    near, far = router.host_interfaces
    return (
        (after[near][1] - before[near][1]) / elapsed,
        (after[far][0] - before[far][0]) / elapsed,
        (after[near][0] - before[near][0] + after[far][1] - before[far][1]) / elapsed,
    )


def cpu_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_flood_is_exact_forwarded_whole_and_unanswered(lab: Lab, router: Router) -> None:
    with router.flood(40_000):
        offered, forwarded, backwards = rates(lab, router)
    assert offered == pytest.approx(40_000, rel=0.03)
    assert forwarded == pytest.approx(40_000, rel=0.03)
    assert backwards == 0


def test_rate_changes_while_the_source_runs(lab: Lab, router: Router) -> None:
    with router.flood(2_000) as source:
        source.set_rate(20_000)
        time.sleep(0.05)
        assert rates(lab, router)[0] == pytest.approx(20_000, rel=0.03)
        source.set_rate(0)
        time.sleep(0.05)
        assert rates(lab, router, 0.2)[0] == 0


def test_tcp_passes_through_the_router_both_ways(lab: Lab, router: Router) -> None:
    flow = router.tcp()
    offered, forwarded, backwards = rates(lab, router)
    flow.source.set_rate(2_000)
    time.sleep(1.0)  # what the socket had queued goes out first
    held = rates(lab, router)[0]
    flow.stop()
    assert min(offered, forwarded) > 5_000
    assert backwards > 500
    assert held == pytest.approx(2_000, rel=0.1)


def test_hog_burns_its_share_inside_the_router_s_group(lab: Lab) -> None:
    router = lab.routers["vr1"]
    assert router.cgroup is not None
    with router.hog(0.05) as hog:
        assert str(hog.pid) in (router.cgroup / "cgroup.procs").read_text().split()
        start, before = time.monotonic(), cpu_seconds(hog.pid)
        time.sleep(1.0)
        used = (cpu_seconds(hog.pid) - before) / (time.monotonic() - start)
    assert used == pytest.approx(0.05, abs=0.01)


def test_a_kernel_router_has_no_group_to_hog(lab: Lab) -> None:
    assert lab.routers["vr2"].cgroup is None
    with pytest.raises(BadRequestError, match="user-space"):
        lab.routers["vr2"].hog(0.1)


def test_heavier_path_costs_throughput_and_can_be_taken_back(lab: Lab) -> None:
    router = lab.routers["vr2"]
    with router.flood(20_000_000):
        time.sleep(0.2)
        light = rates(lab, router, 0.5)[1]
        router.set_path_weight(200)
        heavy = rates(lab, router, 0.5)[1]
        router.set_path_weight(0)
        light_again = rates(lab, router, 0.5)[1]
    assert heavy < 0.85 * light
    assert heavy < 0.85 * light_again


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
