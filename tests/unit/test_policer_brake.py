"""The brake: a fleet of culprits is a mistake of the policer, for as long as they are that many."""

from collections.abc import Mapping

import pytest
from policer_plant import held_report

from policer.brake import ALWAYS, WINDOW_S, Brake, culprits
from policer.contract import Contract
from policer.evidence import Evidence
from policer.ladder import Step
from policer.round import play
from policer.sight import Sight
from policer.state import HostState, HostView, Policy, RouterState


def braked(brake: Brake, now: float, routers: int, guilty: int = 0) -> bool:
    return brake.looked(now, routers, guilty).on


def test_few_are_never_a_mistake() -> None:
    assert not braked(Brake().after(0.0, ALWAYS), 0.0, routers=3)


@pytest.mark.parametrize(("climbs", "on"), [(10, False), (11, True)])
def test_more_than_a_tenth_of_the_fleet_is(climbs: int, on: bool) -> None:
    assert braked(Brake().after(0.0, climbs), 0.0, routers=100) is on


def test_they_count_together_within_a_minute() -> None:
    brake = Brake()
    for at in range(4):
        brake = brake.after(10.0 * at, 1)
    assert braked(brake, 30.0, routers=4)
    assert not braked(brake, 30.0 + WINDOW_S, routers=4)


def test_it_remembers_no_more_than_its_window() -> None:
    brake = Brake()
    for at in range(1000):
        brake = brake.after(float(at), 1)
    assert len(brake.climbs) == WINDOW_S


def test_it_stays_on_while_as_many_are_guilty() -> None:
    on = Brake().after(0.0, 11).looked(0.0, 100, 11)
    for hour in range(1, 25):
        on = on.looked(3600.0 * hour, 100, 11)
        assert on.on
    assert not on.looked(90_000.0, 100, 10).on


def test_it_is_let_go_within_no_less_than_its_window() -> None:
    on = Brake().after(0.0, 11).looked(0.0, 100, 11)
    assert braked(on, WINDOW_S - 1, routers=100)
    assert not braked(on, WINDOW_S, routers=100)


def test_those_that_became_guilty_one_by_one_do_not_put_it_on() -> None:
    brake = Brake()
    for minute in range(50):
        brake = brake.after(WINDOW_S * minute, 1).looked(WINDOW_S * minute, 100, minute)
        assert not brake.on


def test_a_culprit_is_reported_guilty_and_has_a_ladder() -> None:
    guilty = RouterState(Evidence(guilty=True))
    known = dict.fromkeys(("ours", "gone", "stranger", "free"), guilty)
    state = HostState(routers={**known, "decent": RouterState()})
    contracts = dict.fromkeys(("ours", "gone", "decent"), Contract(1e3))
    contracts["free"] = Contract(1e3, measures=())
    assert culprits(contracts, {"ours", "stranger", "free", "decent"}, state) == 1


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
        brake = brake.looked(now, len(reports), culprits(terms, reports, state))
        view = HostView(100e3, terms, Sight(now, now, second, reports))
        played = play(now, view, state, Policy(may_climb=not brake.on))
        brake, state = brake.after(now, len(played.convicted)), played.state
    return {vr: known.punishment.height for vr, known in state.routers.items()}
