"""Algorithm 1, for any tree and any events: nothing above capacity, nothing left that fits."""

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from xco_schedule_rig import SLICE_NS, Event, Run, any_events, topologies

from xco.scheduler.grant import Grant
from xco.scheduler.reference import PublishedScheduler
from xco.topology.graph import Topology

thresholds = st.sampled_from([0, SLICE_NS // 2, SLICE_NS])


def run_of(topology: Topology, threshold_ns: int) -> Run:
    return Run(PublishedScheduler(topology, threshold_ns), topology)


@given(topologies(), thresholds, any_events)
def test_no_link_is_granted_more_than_it_carries(
    topology: Topology, threshold_ns: int, events: list[Event]
) -> None:
    run = run_of(topology, threshold_ns)
    for event in events:
        run.happen(event)
        assert run.overloaded() == []


@given(topologies(), thresholds, any_events)
def test_no_flow_of_an_idle_host_is_left_that_fits(
    topology: Topology, threshold_ns: int, events: list[Event]
) -> None:
    run = run_of(topology, threshold_ns)
    for event in events:
        run.happen(event)
        assert run.idle_that_fit(run.used_bps()) == []


@given(topologies(), any_events)
def test_a_flow_is_granted_twice_running_only_if_no_other_fits_in_its_place(
    topology: Topology, events: list[Event]
) -> None:
    run = run_of(topology, SLICE_NS)
    for event in events:
        run.happen(event)
    for _ in range(10):
        if not run.ends:
            return
        host, end = min(run.ends.items(), key=lambda item: item[1])
        run.now, before = end, run.sending[host]
        answer = run.expire(host)
        if answer == [before]:
            without = {k: v for k, v in run.sending.items() if k != host}
            rest = Run(run.scheduler, topology, backlog=run.backlog, sending=without)
            others = {x for x, _ in rest.idle_that_fit(rest.used_bps())}
            assert others <= {host}
            assert len(run.backlog[host]) == 1 or not rotates(rest, host, before)


def rotates(rest: Run, host: int, before: Grant) -> bool:
    """Whether another destination of the host fits, so that it should have come first."""
    used = rest.used_bps()
    return any(
        d != before.destination and rest.fits(used, host, d, before.rate_bps)
        for d in rest.backlog[host]
    )


def moved_after(run: Run, events: list[Event]) -> Iterator[int]:
    """Yield for how long each host had sent that another host's event moved elsewhere."""
    for event in events:
        run.pass_time(run.now + event.after_ns)
        began = {host: end - SLICE_NS for host, end in run.ends.items()}
        for answer in run.happen(replace(event, after_ns=0)):
            others = [grant.host for grant in answer if grant.host != event.host % run.hosts]
            yield from (run.now - began[host] for host in others if host in began)


@given(topologies(), thresholds, any_events)
def test_who_has_started_less_than_the_threshold_ago_is_left_alone(
    topology: Topology, threshold_ns: int, events: list[Event]
) -> None:
    assert all(ns >= threshold_ns for ns in moved_after(run_of(topology, threshold_ns), events))


def test_without_a_threshold_somebody_who_has_just_started_is_moved() -> None:
    """What the law above forbids does happen in its examples."""
    topology, events = find(
        st.tuples(topologies(), any_events),
        lambda drawn: any(ns < SLICE_NS // 2 for ns in moved_after(run_of(drawn[0], 0), drawn[1])),
        settings=settings(phases=[Phase.generate], max_examples=2000),
    )
    half = SLICE_NS // 2
    assert all(ns >= half for ns in moved_after(run_of(topology, half), events))


@given(topologies(), thresholds, any_events, st.integers(0, 7))
def test_nothing_remains_of_a_host_that_left(
    topology: Topology, threshold_ns: int, events: list[Event], gone: int
) -> None:
    run = run_of(topology, threshold_ns)
    for event in events:
        run.happen(event)
    gone %= run.hosts
    had = gone in run.sending
    answer = run.leave(gone)
    assert (Grant(gone, None, 0) in answer) == had
    for event in events:
        if event.host % run.hosts != gone:
            assert all(g.host != gone for answer in run.happen(event) for g in answer)
