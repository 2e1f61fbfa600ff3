"""The ladder: one step at a time, within the contract, and always an end."""

from policer.contracts.ladder import Escalation, Punishment, Step, next_punishment

ALL = tuple(Step)
ESCALATION = Escalation()


def decide_round(
    standing: Punishment,
    seconds: range,
    *,
    guilty: bool,
    allowed: tuple[Step, ...] = ALL,
    proven: bool = True,
) -> tuple[Punishment, list[int]]:
    """Let a verdict stand for a while; return the heights that were passed."""
    heights, proven_at = [], None
    for second in seconds:
        proven_at = float(second) if guilty and proven else proven_at
        standing = next_punishment(
            float(second),
            standing,
            guilty,
            allowed,
            ESCALATION,
            proven=proven and guilty,
            proven_at=proven_at,
        )
        heights.append(standing.height)
    return standing, heights


def test_the_first_step_is_taken_at_once_and_the_next_after_patience() -> None:
    _, heights = decide_round(Punishment(), range(100, 145), guilty=True)
    assert heights == [1] * 10 + [2] * 10 + [3] * 10 + [4] * 10 + [5] * 5


def test_it_comes_down_step_by_step_when_innocent() -> None:
    top = Punishment(3, since=0.0, guilty=True, step=Step.LIMIT)
    _, heights = decide_round(top, range(1, 250), guilty=False)
    assert heights[59] == 3
    assert heights[60] == 2
    assert heights[120] == 1
    assert heights[180] == 0


def test_a_step_that_the_daemon_refuses_is_no_step_taken() -> None:
    """It is ordered again and again, and its time begins when it is taken."""
    standing = Punishment(1, 0.0, guilty=True, step=Step.WARN)
    for now in range(1, 1000):
        standing = next_punishment(now, standing, True, ALL, ESCALATION, refused=True)
        assert standing.height == 1
    climbed = next_punishment(999 + ESCALATION.climb_s - 0.1, standing, True, ALL, ESCALATION)
    assert climbed.height == 1
    climbed = next_punishment(999 + ESCALATION.climb_s, standing, True, ALL, ESCALATION)
    assert climbed.height == 2


def test_a_refused_step_ends_like_any_other() -> None:
    standing = Punishment(2, 0.0, guilty=False, step=Step.LOWER)
    after = next_punishment(ESCALATION.descend_s, standing, False, ALL, ESCALATION, refused=True)
    assert after.height == 1


def test_a_change_of_the_verdict_begins_the_wait_anew() -> None:
    standing, _ = decide_round(Punishment(), range(9), guilty=True)
    standing, _ = decide_round(standing, range(9, 20), guilty=False)
    _, heights = decide_round(standing, range(20, 29), guilty=True)
    assert heights == [1] * 9


def test_a_contract_that_allows_nothing_is_never_climbed() -> None:
    _, heights = decide_round(Punishment(), range(1000), guilty=True, allowed=())
    assert set(heights) == {0}


def test_nothing_is_climbed_without_proof() -> None:
    """Guilty by yesterday's evidence, and blind since."""
    standing = Punishment(1, since=0.0, guilty=True, step=Step.WARN)
    _, heights = decide_round(standing, range(1, 290), guilty=True, proven=False)
    assert set(heights) == {1}
    _, heights = decide_round(Punishment(), range(1000), guilty=True, proven=False)
    assert set(heights) == {0}


def test_a_punishment_that_nothing_bears_out_any_more_ends() -> None:
    """A meter that stays blind must not make a punishment last for ever."""
    standing = Punishment(3, since=0.0, guilty=True, step=Step.LIMIT)
    _, heights = decide_round(standing, range(1, 1000), guilty=True, proven=False)
    assert heights[-1] == 0
    assert heights[298] == 3


def test_one_that_evidence_bears_out_lasts() -> None:
    _, heights = decide_round(Punishment(), range(10_000), guilty=True)
    assert set(heights[50:]) == {5}


def test_a_shorter_contract_is_obeyed_at_once() -> None:
    standing = Punishment(3, since=0.0, guilty=True, step=Step.LIMIT)
    after = next_punishment(1.0, standing, True, (Step.WARN, Step.LOWER), ESCALATION)
    assert (after.height, after.step) == (2, Step.LOWER)
    after = next_punishment(1.0, standing, True, (), ESCALATION)
    assert (after.height, after.step) == (0, None)


def test_a_contract_with_harder_steps_makes_no_standing_harder() -> None:
    """Two steps up a mild ladder are not two steps up a hard one."""
    standing = Punishment(2, since=0.0, guilty=True, step=Step.LOWER)
    after = next_punishment(1.0, standing, True, (Step.PAUSE, Step.STOP), ESCALATION, proven=False)
    assert after.height == 0
    after = next_punishment(1.0, standing, True, (Step.WARN, Step.STOP), ESCALATION)
    assert (after.height, after.step) == (1, Step.WARN)


def test_a_standing_from_a_store_that_names_no_step_keeps_its_height() -> None:
    standing = Punishment(2, since=0.0, guilty=True)
    assert next_punishment(1.0, standing, True, ALL, ESCALATION).height == 2


def test_a_milder_contract_is_what_counts_from_then_on() -> None:
    """Found by search: lowered, then only warned by another contract, then lowered at once."""
    lowered = Punishment(1, since=0.0, guilty=True, step=Step.LOWER)
    warned = next_punishment(1.0, lowered, True, (Step.WARN,), ESCALATION)
    assert (warned.height, warned.step) == (1, Step.WARN)
    assert next_punishment(2.0, warned, True, (Step.LOWER,), ESCALATION, proven=False).height == 0


def test_a_clock_that_jumps_takes_one_step_and_no_more() -> None:
    standing = Punishment(3, since=0.0, guilty=False, step=Step.LIMIT)
    after = next_punishment(3600.0, standing, False, ALL, ESCALATION)
    assert after.height == 2
    assert next_punishment(3601.0, after, False, ALL, ESCALATION).height == 2
