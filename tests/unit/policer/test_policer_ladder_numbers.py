"""The ladder, number by number: every wait from both sides."""

import pytest

from policer.contracts.ladder import Escalation, Punishment, Step, kept_height, next_punishment

ALL = tuple(Step)
ESCALATION = Escalation()


def at(height: int, since: float, *, guilty: bool = True) -> Punishment:
    return Punishment(height, since, guilty, ALL[height - 1] if height else None)


def step(
    standing: Punishment,
    *,
    guilty: bool = True,
    proven: bool = True,
    proven_at: float | None = 100.0,
) -> Punishment:
    """Judge at second 100, and on the whole ladder."""
    return next_punishment(
        100.0, standing, guilty, ALL, ESCALATION, proven=proven, proven_at=proven_at
    )


def test_the_patience_is_this() -> None:
    assert Escalation() == Escalation(climb_s=10.0, descend_s=60.0, unproven_s=300.0)


def test_ten_seconds_on_a_step_lead_to_the_next() -> None:
    waiting = at(2, 90.1)
    assert step(waiting) is waiting
    assert step(at(2, 90.0)) == Punishment(3, 100.0, guilty=True, step=Step.LIMIT)
    top = at(5, 0.0)
    assert step(top) is top
    unproven = at(2, 90.0)
    assert step(unproven, proven=False) is unproven


def test_sixty_innocent_seconds_lead_a_step_down_whatever_was_proven() -> None:
    waiting = at(2, 40.1, guilty=False)
    assert step(waiting, guilty=False) is waiting
    down = Punishment(1, 100.0, guilty=False, step=Step.WARN)
    assert step(at(2, 40.0, guilty=False), guilty=False) == down
    assert step(at(1, 40.0, guilty=False), guilty=False) == Punishment(0, 100.0)


@pytest.mark.parametrize(
    ("since", "proven_at", "height"),
    [
        (-200.0, None, 1),
        (-200.0, -200.0, 1),
        (-200.0, -199.9, 2),
        (-199.9, None, 2),
        (-199.9, -300.0, 2),
    ],
)
def test_three_hundred_unproven_seconds_do_too(
    since: float, proven_at: float | None, height: int
) -> None:
    found = step(at(2, since), proven=False, proven_at=proven_at)
    assert found.height == height


def test_on_the_ground_nothing_changes() -> None:
    ground = Punishment(0, 0.0)
    assert step(ground, guilty=False) is ground
    assert step(ground, proven=False) == Punishment(0, 100.0, guilty=True)
    assert step(ground) == Punishment(1, 100.0, guilty=True, step=Step.WARN)


def test_a_change_of_the_verdict_begins_the_wait_and_takes_no_step() -> None:
    assert step(at(2, 0.0), guilty=False) == Punishment(2, 100.0, False, Step.LOWER)
    assert step(at(2, 0.0, guilty=False)) == Punishment(2, 100.0, True, Step.LOWER)


def test_a_ladder_that_was_shortened_begins_the_wait() -> None:
    found = next_punishment(100.0, at(3, 0.0), True, ALL[:2], ESCALATION)
    assert found == Punishment(2, 100.0, guilty=True, step=Step.LOWER)


def test_a_standing_without_a_step_gets_its_own_and_keeps_its_time() -> None:
    assert step(Punishment(2, 95.0, guilty=True)) == Punishment(2, 95.0, True, Step.LOWER)


@pytest.mark.parametrize(
    ("standing", "allowed", "kept"),
    [
        (Punishment(3, step=Step.LIMIT), ALL, 3),
        (Punishment(1, step=Step.LIMIT), ALL, 1),
        (Punishment(3, step=Step.LIMIT), (Step.WARN, Step.LIMIT, Step.STOP), 2),
        (Punishment(3, step=Step.LIMIT), (Step.PAUSE, Step.STOP), 0),
        (Punishment(3), (Step.PAUSE, Step.STOP), 2),
        (Punishment(1), (Step.PAUSE, Step.STOP), 1),
    ],
)
def test_of_another_ladder_what_is_no_harder_is_kept(
    standing: Punishment, allowed: tuple[Step, ...], kept: int
) -> None:
    assert kept_height(standing, allowed) == kept
