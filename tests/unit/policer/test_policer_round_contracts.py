"""A round on a contract that is not there, or is another: no punishment comes of that."""

import msgspec
import pytest
from policer_plant import report_of
from round_rig import GOLD, LADDER, Context, flood, full

from policer.contracts.contract import Contract
from policer.contracts.ladder import Step
from policer.decide.state import UNPROMISED, Order


def test_another_contract_makes_no_punishment_harder() -> None:
    context = Context(a=GOLD, b=LADDER)
    context.decide_round(full(), flood(), rounds=15)
    assert context.height("b") == 2
    context.contracts = {"a": GOLD, "b": Contract(10e3, measures=(Step.PAUSE, Step.STOP))}
    played = context.decide_round(full(), report_of("b"))
    assert context.height("b") == 0
    assert not played.orders["b"].punishment


def test_a_contract_that_is_removed_ends_its_punishment() -> None:
    context = Context(a=GOLD, b=LADDER)
    context.punish("b", 4)
    context.contracts = {"a": GOLD}
    assert not context.decide_round(full(), flood()).orders["b"].punishment


def test_a_router_without_a_contract_climbs_no_ladder() -> None:
    context = Context(a=GOLD)
    played = [context.decide_round(full(), flood()) for _ in range(100)]
    assert context.state.routers["b"].evidence.guilty
    assert {one.state.routers["b"].punishment.height for one in played} == {0}
    assert not any(one.convicted or one.orders["b"].punishment for one in played)
    assert played[-1].orders["b"].limit_pps is not None  # the shield, which takes nothing
    assert "punished" not in [note.kind for one in played for note in one.notes]


def test_one_whose_contract_has_the_same_terms_does() -> None:
    context = Context(a=GOLD, b=msgspec.structs.replace(UNPROMISED))
    context.decide_round(full(), flood(), rounds=5)
    assert context.height("b") == 1


@pytest.mark.parametrize(
    ("measures", "setpoint"),
    [((Step.LOWER, Step.LIMIT, Step.PAUSE, Step.STOP), 10e3), ((Step.PAUSE, Step.STOP), None)],
)
def test_another_contract_on_a_host_that_is_not_believed_makes_none_harder(
    measures: tuple[Step, ...], setpoint: float | None
) -> None:
    """It was lowered, by the second step: the second of the new ladder is another."""
    context = Context(a=GOLD, b=LADDER)
    context.punish("b", 2)
    context.contracts = {"a": GOLD, "b": Contract(10e3, measures=measures)}
    order = context.decide_round(full(), flood(), distrust="it lies").orders["b"]
    assert order == Order(setpoint, punishment=setpoint is not None)


def test_a_contract_that_is_removed_on_a_host_that_is_not_believed_pardons() -> None:
    context = Context(a=GOLD, b=LADDER)
    context.punish("b", 5)
    context.contracts = {"a": GOLD}
    assert context.decide_round(full(), flood(), distrust="it lies").orders["b"] == Order()


def test_the_end_of_a_dry_run_on_a_host_that_is_not_believed_punishes_nobody() -> None:
    context = Context(a=GOLD, b=Contract(10e3, measures=tuple(Step), dry_run=True))
    context.decide_round(full(), flood(), rounds=60)
    assert context.height("b") == 5
    context.contracts = {"a": GOLD, "b": LADDER}
    order = context.decide_round(full(), flood(), distrust="it lies").orders["b"]
    assert not order.punishment
