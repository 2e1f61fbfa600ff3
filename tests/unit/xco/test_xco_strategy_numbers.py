"""The oracles of rates, turns and hybrids by hand: every term where it matters."""

from dataclasses import replace

import pytest
from xco_strategies.hybrid import leftover_rates
from xco_strategies.rate import Flow, capacities, equal_shares, max_min_shares, paced
from xco_strategies.timeslice import Calendar, Turn, congested

from xco.topology.graph import Host, Link, Switch, Topology

M = 10**6


def star(*rates: int) -> Topology:
    """Return hosts on one switch: host n sends over directed link 2n and hears over 2n + 1."""
    hosts = tuple(Host(f"h{n}") for n in range(len(rates)))
    links = tuple(Link(h.name, "s", rate) for h, rate in zip(hosts, rates, strict=True))
    return Topology((Switch("s"),), hosts, links)


UNEVEN = star(1000 * M, 100 * M, 100 * M, 1000 * M)

# ---- rates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "permille", "granted"), [(1000, 1000, 1000), (1000, 980, 980), (999, 500, 499)]
)
def test_a_pace_is_a_share_in_thousandths_rounded_down(
    rate: int, permille: int, granted: int
) -> None:
    assert paced(rate, permille) == granted


def test_both_ways_of_each_link_of_the_tree_have_its_capacity() -> None:
    small = star(1000, 100)
    assert capacities(small) == {0: 1000, 1: 1000, 2: 100, 3: 100}
    assert capacities(small, 980) == {0: 980, 1: 980, 2: 98, 3: 98}
    spare = replace(small, links=(*small.links, Link("h0", "s", 7)), tree=frozenset({0, 1}))
    assert capacities(spare) == {0: 1000, 1: 1000, 2: 100, 3: 100}


def test_equal_shares_divide_each_bottleneck_by_its_flows() -> None:
    flows = [Flow(0, 3), Flow(1, 3), Flow(2, 3)]
    third = 1000 * M // 3
    assert equal_shares(UNEVEN, flows, capacities(UNEVEN)) == {
        flows[0]: third,
        flows[1]: 100 * M,
        flows[2]: 100 * M,
    }
    more = [*flows, Flow(0, 1), Flow(0, 2), Flow(1, 2)]
    assert equal_shares(UNEVEN, more, capacities(UNEVEN)) == {
        flows[0]: third,
        flows[1]: 50 * M,
        flows[2]: 100 * M,
        more[3]: 100 * M,
        more[4]: 50 * M,
        more[5]: 50 * M,
    }


def test_max_min_gives_what_the_slow_leave_to_the_fast() -> None:
    flows = [Flow(0, 3), Flow(1, 3), Flow(2, 3)]
    assert max_min_shares(UNEVEN, flows, capacities(UNEVEN)) == {
        flows[0]: 800 * M,
        flows[1]: 100 * M,
        flows[2]: 100 * M,
    }
    assert max_min_shares(UNEVEN, [], capacities(UNEVEN)) == {}


def test_max_min_shares_are_as_the_weights() -> None:
    even = star(*[1000 * M] * 4)
    flows = [Flow(0, 3, 3), Flow(1, 3, 1), Flow(2, 0, 2), Flow(2, 1, 3)]
    assert max_min_shares(even, flows, capacities(even)) == {
        flows[0]: 750 * M,
        flows[1]: 250 * M,
        flows[2]: 400 * M,
        flows[3]: 600 * M,
    }


def test_a_weight_counts_only_where_the_flow_is_held_back() -> None:
    flows = [Flow(0, 3, 1), Flow(1, 3, 10)]
    assert max_min_shares(UNEVEN, flows, capacities(UNEVEN)) == {
        flows[0]: 900 * M,
        flows[1]: 100 * M,
    }


def test_levels_are_whole_bits() -> None:
    tiny = star(10, 10, 10, 10)
    flows = [Flow(0, 3, 2), Flow(1, 3, 1)]
    assert max_min_shares(tiny, flows, capacities(tiny)) == {flows[0]: 6, flows[1]: 3}


# ---- hybrid ----------------------------------------------------------------------------------

SIXTY_FOUR = star(*[64 * M] * 4)


def left(taken_bps: int, *waiting: Flow, pace: int = 1000) -> dict[Flow, int]:
    turn = Turn(0, 3, taken_bps, 0, 1)
    return leftover_rates(SIXTY_FOUR, [turn], waiting, pace)


def test_what_a_turn_leaves_is_shared_by_those_who_wait() -> None:
    flows = Flow(1, 3), Flow(2, 3)
    assert left(24 * M, *flows) == {flows[0]: 20 * M, flows[1]: 20 * M}
    assert left(24 * M, *flows, pace=500) == {flows[0]: 10 * M, flows[1]: 10 * M}


def test_less_than_a_64th_of_a_hosts_rate_is_left_out() -> None:
    flow = Flow(1, 3)
    assert left(63 * M, flow) == {flow: M}
    assert left(63 * M + 1, flow) == {}


def test_who_has_a_turn_needs_no_rate_there_but_may_have_one_elsewhere() -> None:
    assert left(24 * M, Flow(0, 3)) == {}
    assert left(24 * M, Flow(0, 2)) == {Flow(0, 2): 40 * M}
    assert left(24 * M, Flow(0, 3), Flow(1, 3)) == {Flow(1, 3): 40 * M}
    assert left(24 * M, Flow(3, 0)) == {Flow(3, 0): 64 * M}


# ---- turns -----------------------------------------------------------------------------------


def calendar() -> Calendar:
    return Calendar(star(*[1000 * M] * 4), slice_ns=1000, guard_ns=30)


@pytest.mark.parametrize("at", [0, 400])
def test_a_first_turn_starts_when_it_is_granted_and_lasts_a_slice(at: int) -> None:
    assert calendar().starts(0, 3, 5, at) == Turn(0, 3, 5, at, at + 1000)


def test_another_host_starts_a_guard_time_after_the_end() -> None:
    turns = calendar()
    turns.ends(turns.starts(0, 3, 5, 400), 1400)
    assert turns.starts(1, 3, 5, 500).start_ns == 1430
    assert turns.starts(1, 3, 5, 1430).start_ns == 1430
    assert turns.starts(1, 3, 5, 1431).start_ns == 1431
    assert turns.starts(0, 3, 5, 500).start_ns == 1400
    assert turns.starts(0, 2, 5, 500).start_ns == 1400
    assert turns.starts(1, 2, 5, 500).start_ns == 500


def test_the_last_of_all_links_of_a_path_decides() -> None:
    turns = calendar()
    turns.ends(Turn(0, 3, 5, 0, 1000), 1000)
    turns.ends(Turn(1, 2, 5, 0, 2000), 2000)
    assert turns.starts(1, 3, 5, 0).start_ns == 2000
    assert turns.starts(0, 2, 5, 0).start_ns == 2030


def test_an_end_before_a_later_one_changes_nothing() -> None:
    turns = calendar()
    turns.ends(Turn(0, 3, 5, 0, 1000), 1000)
    turns.ends(Turn(1, 3, 5, 0, 900), 900)
    turns.ends(Turn(2, 3, 5, 0, 1000), 1000)
    assert turns.starts(0, 3, 5, 0).start_ns == 1000
    assert turns.starts(1, 3, 5, 0).start_ns == 1030


@pytest.mark.parametrize(
    ("rate", "start", "end", "links"),
    [
        (400 * M, 0, 100, set()),  # together just the capacity
        (400 * M + 1, 0, 100, {7}),
        (1000 * M, 100, 200, set()),  # one ends as the other starts
        (1000 * M, 99, 200, {7}),
        (1000 * M, 20, 30, {7}),
    ],
)
def test_turns_congest_a_link_that_they_overload_at_any_instant(
    rate: int, start: int, end: int, links: set[int]
) -> None:
    topology = star(*[1000 * M] * 4)
    first = Turn(0, 3, 600 * M, 0, 100)
    assert congested(topology, [first, Turn(1, 3, rate, start, end)]) == links
    assert congested(topology, [Turn(1, 3, rate, start, end), first]) == links


def test_a_host_that_sends_twice_congests_its_own_link() -> None:
    topology = star(*[1000 * M] * 4)
    turns = [Turn(0, 3, 600 * M, 0, 100), Turn(0, 2, 600 * M, 50, 150)]
    assert congested(topology, turns) == {0}
    assert congested(topology, []) == set()
