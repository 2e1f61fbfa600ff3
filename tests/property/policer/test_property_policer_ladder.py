"""The ladder, for any verdicts and contracts: a step at a time, in the contract, with an end."""

from hypothesis import given
from hypothesis import strategies as st

from policer.contracts.ladder import Escalation, Punishment, Step, next_punishment

ESCALATION = Escalation()
contracts = st.sets(st.sampled_from(Step)).map(lambda steps: tuple(s for s in Step if s in steps))
rounds = st.lists(
    st.tuples(
        st.sampled_from([0.5, 1.0, 7.0, 60.0, 3600.0]),
        st.booleans(),
        st.booleans(),
        contracts,
    ),
    max_size=40,
)


def hardness(punishment: Punishment) -> int:
    return -1 if punishment.step is None else list(Step).index(punishment.step)


@given(rounds)
def test_one_step_at_a_time_and_never_beyond_the_contract(
    history: list[tuple[float, bool, bool, tuple[Step, ...]]],
) -> None:
    now, standing = 0.0, Punishment()
    before: tuple[Step, ...] = ()
    for passed, guilty, proven, allowed in history:
        now += passed
        proven_at = now if guilty and proven else None
        after = next_punishment(
            now,
            standing,
            guilty,
            allowed,
            ESCALATION,
            proven=proven and guilty,
            proven_at=proven_at,
        )
        assert after.height <= len(allowed)
        assert after.height <= standing.height + 1
        assert after.step == (allowed[after.height - 1] if after.height else None)
        if after.height > standing.height:
            assert guilty
            assert proven
        if allowed == before:
            assert after.height >= standing.height - 1
        if not (guilty and proven):
            assert hardness(after) <= hardness(standing)
        standing, before = after, allowed


@given(rounds, st.booleans(), contracts)
def test_it_always_ends_without_proof(
    history: list[tuple[float, bool, bool, tuple[Step, ...]]],
    guilty: bool,
    allowed: tuple[Step, ...],
) -> None:
    now, standing = 0.0, Punishment()
    for passed, was_guilty, proven, terms in history:
        now += passed
        standing = next_punishment(
            now, standing, was_guilty, terms, ESCALATION, proven=proven, proven_at=now
        )
    last, most = now, (len(Step) + 1) * ESCALATION.unproven_s
    while now <= last + most:
        now += 1.0
        standing = next_punishment(
            now, standing, guilty, allowed, ESCALATION, proven=False, proven_at=last
        )
    assert standing.height == 0
