"""Every cap gives a legal quota that says the same cap, whatever period was in force."""

from hypothesis import given
from hypothesis import strategies as st

from common.units import CapFraction
from xtc.kernel.quota import (
    FLOOR,
    MAX_PERIOD_US,
    MIN_QUOTA_US,
    Quota,
    format_cpu_max,
    ideal_period_us,
    parse_cpu_max,
    quota_for,
    v1_writes,
)

caps = st.floats(min_value=FLOOR, max_value=256.0).map(CapFraction)
tiny = st.floats(min_value=1e-9, max_value=256.0).map(CapFraction)
periods = st.integers(min_value=MIN_QUOTA_US, max_value=MAX_PERIOD_US)


def v1_states(old: Quota, new: Quota) -> list[Quota]:
    """What a v1 group holds after each write."""
    states, quota, period = [], old.quota_us, old.period_us
    for name, value in v1_writes(old, new):
        if name == "cpu.cfs_quota_us":
            quota = None if value < 0 else value
        else:
            period = value
        states.append(Quota(quota, period))
    return states


@st.composite
def quotas(draw: st.DrawFn) -> Quota:
    return quota_for(draw(caps), draw(periods))


@given(tiny, periods)
def test_every_cap_gives_a_legal_quota_and_never_zero(cap: CapFraction, period: int) -> None:
    quota = quota_for(cap, period)
    assert quota.quota_us is not None
    assert quota.quota_us >= MIN_QUOTA_US
    assert MIN_QUOTA_US <= quota.period_us <= MAX_PERIOD_US


@given(caps, periods)
def test_the_quota_says_the_cap_within_one_quantum(cap: CapFraction, period: int) -> None:
    quota = quota_for(cap, period)
    assert quota.cap is not None
    assert abs(quota.cap - cap) <= 1 / quota.period_us


@given(caps, caps, periods)
def test_the_quota_grows_with_the_cap_at_a_fixed_period(
    one: CapFraction, other: CapFraction, period: int
) -> None:
    low, high = (quota_for(cap, period) for cap in sorted((one, other)))
    if low.period_us == high.period_us:
        assert low.quota_us is not None
        assert high.quota_us is not None
        assert low.quota_us <= high.quota_us


@given(caps, st.floats(min_value=0.75, max_value=1.33))
def test_a_small_change_of_the_cap_keeps_the_period(cap: CapFraction, factor: float) -> None:
    first = quota_for(cap, ideal_period_us(cap))
    changed = CapFraction(max(FLOOR, cap * factor))
    second = quota_for(changed, first.period_us)
    still_legal = changed * first.period_us >= MIN_QUOTA_US
    assert second.period_us == first.period_us or not still_legal


@given(caps)
def test_caps_of_one_percent_and_more_have_periods_of_10_to_100_ms(cap: CapFraction) -> None:
    period = ideal_period_us(cap)
    if cap >= 0.01:
        assert 10_000 <= period <= 100_000
    else:
        assert 100_000 <= period <= MAX_PERIOD_US


@given(quotas(), quotas())
def test_no_write_on_the_way_exceeds_both_ends(old: Quota, new: Quota) -> None:
    assert old.cap is not None
    assert new.cap is not None
    states = v1_states(old, new)
    assert (states[-1] if states else old) == new
    for state in states:
        assert state.cap is not None
        assert state.cap <= max(old.cap, new.cap)
        assert state.quota_us is not None
        assert state.quota_us >= MIN_QUOTA_US


@given(quotas(), periods)
def test_the_way_to_and_from_uncapped_ends_where_it_should(quota: Quota, period: int) -> None:
    free = Quota(None, period)
    assert v1_states(free, quota)[-1] == quota
    assert v1_states(quota, free)[-1] == free


@given(quotas() | periods.map(lambda period: Quota(None, period)))
def test_cpu_max_reads_back_as_written(quota: Quota) -> None:
    assert parse_cpu_max(format_cpu_max(quota)) == quota
