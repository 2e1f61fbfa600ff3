"""The compiled scheduler, for any tree and events: the oracle's laws, and a bound on waiting."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import part
from xco_schedule_rig import MBPS, SLICE_NS, Event, Run, any_events, topologies

from xco.errors import ControllerError
from xco.scheduler.grant import Grant
from xco.scheduler.native import NativeScheduler
from xco.scheduler.reference import PublishedScheduler
from xco.topology.graph import Host, Link, Switch, Topology
from xco.topology.shapes import dumbbell, star_topology

CORE = Path(__file__).parents[3] / "xco" / "core"
PATIENCE_NS = 5 * SLICE_NS


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    subprocess.run(["make", "-s", "-C", CORE, "build/libxcosched.so"], check=True, timeout=60)


@st.composite
def options(draw: st.DrawFn) -> dict[str, object]:
    policy = draw(st.sampled_from(["published", "fair"]))
    threshold = draw(st.sampled_from([None, 0, SLICE_NS // 2]))
    return {
        "policy": policy,
        "threshold_ns": threshold if policy == "published" else None,
        "limit_rates": draw(st.booleans()),
        "patience_ns": draw(st.sampled_from([None, 0, PATIENCE_NS])),
        "memory_ns": 20 * SLICE_NS,
        "least_share": draw(st.sampled_from([0.3, 1.0])),
    }


def run_of(topology: Topology, chosen: dict[str, object]) -> Run:
    return Run(NativeScheduler(topology, **chosen), topology)


def native(run: Run) -> NativeScheduler:
    assert isinstance(run.scheduler, NativeScheduler)
    return run.scheduler


@given(topologies(), options(), any_events)
def test_no_link_is_granted_more_than_it_carries(
    topology: Topology, chosen: dict[str, object], events: list[Event]
) -> None:
    run = run_of(topology, chosen)
    for event in events:
        run.happen(event)
        assert run.overloaded() == []
        links = range(2 * len(topology.links))
        used = {k: rate for k in links if (rate := native(run).used_bps(k))}
        assert used == run.used_bps()
        assert native(run).check() is None


@given(topologies(), options(), any_events)
def test_no_flow_of_an_idle_host_is_left_that_fits_into_what_is_not_reserved(
    topology: Topology, chosen: dict[str, object], events: list[Event]
) -> None:
    run = run_of(topology, chosen)
    for event in events:
        run.happen(event)
        links = range(2 * len(topology.links))
        taken = run.used_bps()
        used = {k: taken.get(k, 0) + native(run).reserved_bps(k) for k in links}
        kept = {x for x in range(run.hosts) if native(run).reserved_for(x) is not None}
        assert {x for x, _ in run.idle_that_fit(used)} <= kept
        if chosen["patience_ns"] is None:
            assert not any(used[k] - taken.get(k, 0) for k in links)
            assert not kept


def overdue(run: Run, patience_ns: int) -> list[tuple[int, int]]:
    """Return flows that wait longer than schedule.h promises."""
    return [
        flow
        for flow, since in run.waits_since.items()
        if native(run).full_rate_bps(*flow)
        and run.now - since > patience_ns + (run.backlogged_then[flow] + 1) * SLICE_NS
    ]


@settings(max_examples=part(60))
@given(topologies(), options(), any_events)
def test_every_backlogged_flow_is_served_within_the_promised_time(
    topology: Topology, chosen: dict[str, object], events: list[Event]
) -> None:
    run = run_of(topology, chosen | {"patience_ns": PATIENCE_NS})
    for event in [*events, *([Event("wait", SLICE_NS // 3, 0, ())] * 60)]:
        run.happen(event)
        assert overdue(run, PATIENCE_NS) == []


@given(topologies(), any_events)
def test_a_flow_is_granted_twice_running_only_if_no_other_fits_in_its_place(
    topology: Topology, events: list[Event]
) -> None:
    run = run_of(topology, {"limit_rates": False, "patience_ns": None})
    for event in events:
        run.happen(event)
    for _ in range(10):
        if not run.ends:
            return
        host, end = min(run.ends.items(), key=lambda item: item[1])
        run.now, before = end, run.sending[host]
        if run.expire(host) == [before]:
            without = {k: v for k, v in run.sending.items() if k != host}
            rest = Run(run.scheduler, topology, backlog=run.backlog, sending=without)
            assert set(rest.idle_that_fit(rest.used_bps())) == {(host, before.destination)}


@given(topologies(), options(), any_events, st.integers(0, 7))
def test_nothing_remains_of_a_host_that_left(
    topology: Topology, chosen: dict[str, object], events: list[Event], gone: int
) -> None:
    run = run_of(topology, chosen)
    for event in events:
        run.happen(event)
    gone %= run.hosts
    had = gone in run.sending
    assert (Grant(gone, None, 0) in run.leave(gone)) == had
    assert native(run).backlog(gone) == 0
    assert native(run).reserved_for(gone) is None
    for event in events:
        if event.host % run.hosts != gone:
            assert all(g.host != gone for answer in run.happen(event) for g in answer)


@given(st.integers(2, 6), st.integers(1, 4), st.integers(1, 12))
def test_on_one_bottleneck_as_many_may_send_as_algorithm_1_lets(
    senders: int, room: int, slices: int
) -> None:
    """Incast: all to one receiver whose link carries so many of them at a time."""
    links = star_topology(senders + 1, "100Mbps")
    receiver = links.links[-1]
    wide = type(receiver)(receiver.a, receiver.b, room * receiver.capacity_bps)
    topology = Topology(links.switches, links.hosts, (*links.links[:-1], wide))
    runs = [
        Run(PublishedScheduler(topology, SLICE_NS), topology),
        run_of(topology, {}),
        run_of(topology, {"policy": "fair"}),
    ]
    for run in runs:
        for host in range(senders):
            run.report(host, [senders])
        for slice_ in range(1, slices + 1):
            run.pass_time(slice_ * SLICE_NS)
            assert len(run.sending) == min(senders, room)


@settings(max_examples=part(60))
@given(topologies(), any_events)
def test_both_reach_maximal_sets_of_the_same_flows(topology: Topology, events: list[Event]) -> None:
    """On what either grants, the other's laws hold: whatever fits is granted, nothing above."""
    oracle = Run(PublishedScheduler(topology, SLICE_NS), topology)
    compiled = run_of(topology, {"limit_rates": False, "patience_ns": None})
    for event in events:
        if event.kind == "gave_up":
            continue  # what is given up depends on what was granted
        for run in (oracle, compiled):
            run.happen(event)
            assert run.overloaded() == run.idle_that_fit(run.used_bps()) == []
        assert bool(oracle.sending) == bool(compiled.sending)


@settings(max_examples=part(40))
@given(st.lists(st.integers(1, 8), min_size=2, max_size=4))
def test_fair_shares_of_a_bottleneck_are_as_the_weights(weights: list[int]) -> None:
    receiver = len(weights)
    topology = star_topology(receiver + 1, "100Mbps")
    given_weights = {(x, receiver): float(w) for x, w in enumerate(weights)}
    memory_ns = 10_000 * SLICE_NS
    scheduler = NativeScheduler(
        topology, "fair", weights=given_weights, patience_ns=None, memory_ns=memory_ns
    )
    run = Run(scheduler, topology)
    for host in range(receiver):
        run.report(host, [receiver])
    rounds = 60
    run.pass_time(rounds * sum(weights) * SLICE_NS)
    for host, weight in enumerate(weights):
        assert abs(run.served[host, receiver] / rounds / weight - 1) < 0.1


@pytest.mark.parametrize(("weight", "share"), [(1.0, 1 / 2), (2.0, 2 / 3)])
def test_weights_are_of_hosts_however_many_destinations_they_have(
    weight: float, share: float
) -> None:
    """Two hosts share an uplink of one host's rate; the first has ten destinations behind it."""
    topology = dumbbell(2, 11, "1Gbps", "1Gbps")
    weights = {(0, destination): weight for destination in range(2, 12)}
    scheduler = NativeScheduler(
        topology, "fair", weights=weights, patience_ns=None, memory_ns=10_000 * SLICE_NS
    )
    run = Run(scheduler, topology)
    run.report(0, range(2, 12))
    run.report(1, [12])
    run.pass_time(600 * SLICE_NS)
    served = {x: sum(n for (host, _), n in run.served.items() if host == x) for x in (0, 1)}
    assert served[0] / sum(served.values()) == pytest.approx(share, abs=0.02)


def test_a_sanitized_build_survives_random_events() -> None:
    subprocess.run(["make", "-s", "-C", CORE, "sanitize"], check=True, timeout=120)
    fuzz = CORE / "build" / "xco-fuzz-schedule"
    done = subprocess.run([fuzz, "3", "7"], check=False, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert int(done.stdout.split()[0]) > 10


@pytest.mark.parametrize("policy", ["published", "fair"])
def test_who_starves_under_algorithm_1_is_served_by_reservation(policy: str) -> None:
    """The counterexample of tests/unit/xco/test_xco_schedule.py; patience makes the difference."""
    served = {}
    for patience_ns in (None, PATIENCE_NS):
        topology = two_sides()
        run = run_of(topology, {"policy": policy, "patience_ns": patience_ns})
        run.report(2, [3])
        run.pass_time(SLICE_NS // 2)
        run.report(1, [4])
        run.report(0, [4])
        run.pass_time(100 * SLICE_NS)
        served[patience_ns] = run.served.get((0, 4), 0)
    assert served[None] == 0
    assert served[PATIENCE_NS] >= 100 * SLICE_NS // (PATIENCE_NS + 4 * SLICE_NS) - 1


def two_sides() -> Topology:
    """Hosts 0, 2 on one switch and 1, 3, 4 on another, all links alike."""
    hosts = tuple(Host(f"h{n}") for n in range(5))
    sides = ["left", "right", "left", "right", "right"]
    links = [Link(h.name, side, 100 * MBPS) for h, side in zip(hosts, sides, strict=True)]
    uplink = Link("left", "right", 100 * MBPS)
    return Topology((Switch("left"), Switch("right")), hosts, (*links, uplink))


def test_a_sender_faster_than_its_path_is_granted_the_paths_rate() -> None:
    """What the paper leaves open (section 7)."""
    topology = dumbbell(1, 1, "10Gbps", "1Gbps")
    assert NativeScheduler(topology).backlogged(0, 0, [1]) == [Grant(0, 1, 1_000_000_000)]
    assert NativeScheduler(topology, limit_rates=False).backlogged(0, 0, [1]) == []


@pytest.mark.parametrize(("least_share", "granted"), [(0.5, 500_000_000), (0.51, 0)])
def test_what_a_link_has_left_is_granted_from_the_least_share_on(
    least_share: float, granted: int
) -> None:
    scheduler = NativeScheduler(dumbbell(2, 2, "1Gbps", "1500Mbps"), least_share=least_share)
    assert scheduler.backlogged(0, 0, [2]) == [Grant(0, 2, 1_000_000_000)]
    assert [grant.rate_bps for grant in scheduler.backlogged(0, 1, [3])] == [granted][: granted > 0]


@pytest.mark.parametrize(
    ("threshold_ns", "turned"),
    [(0, [Grant(0, 4, 10**9), Grant(2, 3, 10**9)]), (10, []), (None, [])],
)
def test_an_active_host_turns_to_another_destination_where_that_helps_others(
    threshold_ns: int | None, turned: list[Grant]
) -> None:
    """Lines 40 to 46, as the oracle has it: what host 0 stops to use is host 2's at once."""
    scheduler = NativeScheduler(star_topology(5, "1Gbps"), threshold_ns=threshold_ns)
    scheduler.backlogged(0, 1, [4])
    scheduler.backlogged(0, 0, [4])
    assert scheduler.backlogged(0, 0, [4, 3]) == [Grant(0, 3, 10**9)]
    assert scheduler.backlogged(2, 2, [3]) == []
    assert scheduler.gave_up(3, 1) == [*turned, Grant(1, None, 0)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"policy": "random"}, "policy: 'random' is unknown"),
        ({"least_share": 0.0}, "least_share: must be above 0"),
        ({"threshold_ns": -1}, "threshold_ns: -1 is no duration"),
        ({"policy": "fair", "memory_ns": 0}, "memory above 0"),
        ({"policy": "fair", "weights": {(0, 1): -2.0}}, "weight: -2.0 is none"),
        ({"weights": {(0, 9): 2.0}}, "destination: 9 is no host"),
    ],
)
def test_an_option_out_of_range_is_refused_by_name(
    options: dict[str, object], problem: str
) -> None:
    with pytest.raises(ControllerError, match=problem):
        NativeScheduler(star_topology(3, "1Gbps"), **options)


def test_hundreds_of_destinations_a_host_are_remembered_and_forgotten() -> None:
    """The table of flows grows while flows wait in it, and shrinks to nothing but room."""
    topology = star_topology(300, "1Gbps")
    scheduler = NativeScheduler(topology)
    for host in range(40):
        scheduler.backlogged(0, host, [d for d in range(300) if d != host])
    assert scheduler.check() is None
    assert [scheduler.backlog(host) for host in range(40)] == [299] * 40
    for host in range(40):
        scheduler.leave(1, host)
    assert scheduler.check() is None
    assert [scheduler.backlog(host) for host in range(40)] == [0] * 40
