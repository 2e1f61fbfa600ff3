"""A router as its operator has it, with OSPF, under floods and after them."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import pytest
from conftest import PREFIX, Daemon, Host
from support.edge import INNER, ROUTER, Echo, Pings, Site
from support.holding import check_held, of, watch
from support.inconclusive import inconclusive
from support.rates import Rate, between, read
from support.stalls import Stalls

from lab.routers.topology import Lab
from lab.system import requirements
from xtc.actuator.factory import probe
from xtc.wire import Report, Telemetry

PROGRAMS: Final = {"bird": "bird2", "trafgen": "netsniff-ng", "ping": "iputils-ping"}
PACKAGES: Final = " ".join(PROGRAMS[name] for name in PROGRAMS if shutil.which(name) is None)
pytestmark = [
    pytest.mark.root,
    pytest.mark.external,
    pytest.mark.skipif(bool(PACKAGES), reason=f"programs are missing: apt install {PACKAGES}"),
]

SETPOINT, FLOOD = 5e3, 40e3
PERIOD_S: Final = 0.5
SETTLING, FLOODED = 5, 110
"""Of the daemon's ticks: a minute of a flood, with the time until the router is held."""
QUIET: Final = 4
PINGS, PING_S = 1000, 0.01
SLOWEST_S: Final = 0.005


@dataclass(frozen=True)
class Story:
    """What was seen during a minute of a flood, and of pings after it."""

    ticks: Sequence[Telemetry]
    left: Rate
    lost: Sequence[str]
    """What birds logged of adjacencies that ended."""
    after: Sequence[Report]
    echoes: Pings
    shares: Sequence[float | None]
    """What the thread that forwards was capped at, before and while the other was renamed."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, _watched_cpus: Stalls) -> Iterator[Story]:
    reasons = [*requirements.missing(), probe().deadline]
    if found := [reason for reason in reasons if reason]:
        pytest.skip("; ".join(found))
    folder = tmp_path_factory.mktemp("operator")
    with Lab(PREFIX) as lab, ExitStack() as stack:
        host, site = Host(lab, folder, stack), Site(lab, folder)
        stack.enter_context(site.routing())
        host.configure(PERIOD_S, **{ROUTER: site.table})
        daemon = host.start()
        yield tell(site, daemon)
        daemon.stop()


def tell(site: Site, daemon: Daemon) -> Story:
    with site.flood(FLOOD):
        hold(daemon)
        daemon.wait_until_held(ROUTER)
        watch(daemon.runtime, SETTLING)
        first = read(site.left)
        ticks = watch(daemon.runtime, FLOODED)
        left = between(first, read(site.left))
        lost = site.adjacencies_lost()
    watch(daemon.runtime, QUIET)
    before = daemon.report(ROUTER)
    echoes = site.ping(PINGS, PING_S)
    after = before, daemon.report(ROUTER)
    return Story(ticks, left, lost, after, echoes, shares_while_renamed(site, daemon))


def shares_while_renamed(site: Site, daemon: Daemon) -> tuple[float | None, float | None]:
    flooded, other = INNER
    with site.flood(FLOOD):
        daemon.wait_until_held(ROUTER)
        before = site.share(flooded)
        site.rename(other, "renamed")
        watch(daemon.runtime, QUIET)
        after = site.share(flooded)
        site.rename("renamed", other)
        daemon.wait_until_held(ROUTER, without_problem=True)
    return before, after


def hold(daemon: Daemon) -> None:
    daemon.wait_for(ROUTER, lambda report: report.offered_pps is not None)
    daemon.hold(**{ROUTER: SETPOINT})


def test_a_flood_of_small_frames_leaves_at_the_setpoint(story: Story) -> None:
    sys.stdout.write(f"left, packets/s: {story.left}\n")
    check_held(story.ticks, {ROUTER: story.left}, 0.05, **{ROUTER: SETPOINT})


def test_a_flood_costs_no_adjacency(story: Story) -> None:
    offered = fmean(report.offered_pps or 0.0 for report in of(ROUTER, story.ticks))
    if offered < FLOOD / 2:
        inconclusive(f"trafgen sent only {offered:.0f} packets/s")
    assert not story.lost


def test_pings_cross_a_held_router_that_is_idle_without_delay(story: Story, stalls: Stalls) -> None:
    assert None not in [report.cap for report in story.after], "it is not held"
    took = sorted(echo.answered - echo.sent for echo in story.echoes.across)
    p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
    sys.stdout.write(f"pings, s: p50 {p50:.5f}, p99 {p99:.5f}\n")
    judged = [echo for echo in story.echoes.across if of_the_host(echo, story, stalls) < SLOWEST_S]
    missing = PINGS - len(story.echoes.across)
    if len(judged) + missing < PINGS / 2:
        inconclusive(f"the host delayed {PINGS - missing - len(judged)} pings")
    late = [echo for echo in judged if echo.answered - echo.sent > SLOWEST_S]
    told = [(*echo, of_the_host(echo, story, stalls)) for echo in late]
    assert len(late) + missing <= (len(judged) + missing) / 100, told


def test_a_tenant_who_renames_an_interface_raises_no_cap(story: Story) -> None:
    before, after = story.shares
    assert before is not None
    assert after is not None
    assert after <= 1.5 * before


def of_the_host(echo: Echo, story: Story, stalls: Stalls) -> float:
    """Return for how long the host delayed what was under way together with a ping, in seconds.

    After a delay the router has a queue to forward, so a ping that met one tells nothing of it.
    """
    beside = [
        other.answered - other.sent
        for other in story.echoes.beside
        if other.sent < echo.answered and echo.sent < other.answered
    ]
    return max([stalls.lost(*echo), *beside])
