"""The brake: a fleet of culprits is a mistake of the policer, for as long as they are that many."""

from collections.abc import Mapping

import pytest
from policer_plant import held_report

from policer.contracts.contract import Contract
from policer.contracts.ladder import Step
from policer.decide.brake import ALWAYS, OF_ONE_HOST, WINDOW_S, Brake, Routers, routers_of
from policer.decide.evidence import Evidence
from policer.decide.round import decide_round
from policer.decide.state import HostState, HostView, Policy, RouterState
from policer.decide.telemetry import HostTelemetry

HOSTS = 20


def fleet(routers: int, guilty: int = 0, hosts: int = HOSTS) -> dict[str, Routers]:
    """Return hosts that share routers, and those that are guilty, evenly."""
    return {
        f"h{n}": Routers(len(range(n, routers, hosts)), len(range(n, guilty, hosts)))
        for n in range(hosts)
    }


def after(brake: Brake, now: float, climbs: int) -> Brake:
    """Return the brake after convictions that the hosts share evenly."""
    for number in range(climbs):
        brake = brake.after(now, f"h{number % HOSTS}", 1)
    return brake


def braked(brake: Brake, now: float, routers: int, guilty: int = 0) -> bool:
    return brake.looked(now, fleet(routers, guilty)).on


def test_few_are_never_a_mistake() -> None:
    assert not braked(after(Brake(), 0.0, ALWAYS), 0.0, routers=3)


@pytest.mark.parametrize(("climbs", "on"), [(10, False), (11, True)])
def test_more_than_a_tenth_of_the_fleet_is(climbs: int, on: bool) -> None:
    assert braked(after(Brake(), 0.0, climbs), 0.0, routers=100) is on


def test_they_count_together_within_a_minute() -> None:
    brake = Brake()
    for at in range(4):
        brake = brake.after(10.0 * at, f"h{at}", 1)
    assert braked(brake, 30.0, routers=4)
    assert not braked(brake, 30.0 + WINDOW_S, routers=4)


def test_it_remembers_no_more_than_its_window() -> None:
    brake = Brake()
    for at in range(1000):
        brake = brake.after(float(at), "h0", 1)
    assert len(brake.climbs) == WINDOW_S


def test_it_stays_on_while_as_many_are_guilty() -> None:
    on = after(Brake(), 0.0, 11).looked(0.0, fleet(100, 11))
    for hour in range(1, 25):
        on = on.looked(3600.0 * hour, fleet(100, 11))
        assert on.on
    assert not on.looked(90_000.0, fleet(100, 10)).on


def test_it_is_let_go_within_no_less_than_its_window() -> None:
    on = after(Brake(), 0.0, 11).looked(0.0, fleet(100, 11))
    assert braked(on, WINDOW_S - 1, routers=100)
    assert not braked(on, WINDOW_S, routers=100)


def test_those_that_became_guilty_one_by_one_do_not_put_it_on() -> None:
    brake = Brake()
    for minute in range(50):
        now, host = WINDOW_S * minute, f"h{minute % HOSTS}"
        brake = brake.after(now, host, 1).looked(now, fleet(100, minute))
        assert not brake.on


def test_accomplices_on_one_host_stop_no_ladders_elsewhere() -> None:
    brake = Brake().after(0.0, "bad", 4)
    hosts = {"bad": Routers(12, 4), **fleet(30, hosts=5)}
    assert not brake.looked(0.0, hosts).on
    assert not brake.looked(0.0, hosts).stops("bad")  # nor their own: four of twelve are few


def test_most_of_a_hosts_routers_are_a_mistake_there_and_nowhere_else() -> None:
    hosts = {"wrong": Routers(12, 12), **fleet(30, hosts=5)}
    brake = Brake().after(0.0, "wrong", 12).looked(0.0, hosts)
    assert not brake.on
    assert brake.stops("wrong")
    assert not brake.stops("h0")
    assert brake.looked(10 * WINDOW_S, hosts).stops("wrong")
    assert not brake.looked(10 * WINDOW_S, hosts | {"wrong": Routers(12, 6)}).stops("wrong")


def test_a_host_that_claims_thousands_of_routers_keeps_the_brake_no_looser() -> None:
    reported = {f"claimed{n}" for n in range(4096)} | {"r0", "r1"}
    contracts = {"r0": Contract(1e3), "r1": Contract(1e3)}
    assert routers_of(contracts, reported, HostState()) == Routers(2, 0)
    hosts = {"liar": routers_of(contracts, reported, HostState()), **fleet(200)}
    assert after(Brake(), 0.0, 60).looked(0.0, hosts).on


def test_of_one_host_only_so_many_count_for_the_fleet() -> None:
    brake = Brake().after(0.0, "a", 50).after(0.0, "b", 50)
    hosts = dict.fromkeys("abcdefgh", Routers(200, 0))
    assert not brake.looked(0.0, hosts).on
    small = dict.fromkeys("ab", Routers(10, 0))
    assert brake.looked(0.0, small).on is (2 * OF_ONE_HOST > ALWAYS)


def test_a_culprit_is_reported_guilty_and_has_a_ladder() -> None:
    guilty = RouterState(Evidence(guilty=True))
    known = dict.fromkeys(("ours", "gone", "stranger", "free"), guilty)
    state = HostState(routers={**known, "acceptable": RouterState()})
    contracts = dict.fromkeys(("ours", "gone", "acceptable"), Contract(1e3))
    contracts["free"] = Contract(1e3, measures=())
    assert routers_of(contracts, {"ours", "stranger", "free", "acceptable"}, state) == Routers(2, 1)


def test_a_capacity_that_is_wrong_gets_nobody_beyond_the_first_step() -> None:
    """Twenty of twenty routers send twice and a half what the host is said to have for them."""
    heights = heights_of_all(seconds=1200)
    assert set(heights.values()) == {1}


def heights_of_all(seconds: int) -> Mapping[str, int]:
    """Play one host with the service's brake; return how high its routers climbed."""
    terms = {f"r{i}": Contract(5e3, measures=tuple(Step)) for i in range(20)}
    reports = {vr: held_report(vr, 5e3, offered_pps=12.5e3) for vr in terms}
    brake, state = Brake(), HostState()
    for second in range(seconds):
        now = float(second)
        brake = brake.looked(now, {"h": routers_of(terms, reports, state)})
        view = HostView(100e3, terms, HostTelemetry(now, now, second, reports))
        played = decide_round(now, view, state, Policy(may_climb=not brake.stops("h")))
        brake, state = brake.after(now, "h", len(played.convicted)), played.state
    return {vr: known.punishment.height for vr, known in state.routers.items()}
