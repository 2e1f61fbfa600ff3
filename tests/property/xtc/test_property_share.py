"""A cap split over threads is spent wholly, fairly, and follows the need within a few steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xtc.actuator.share import fill, split

FLOOR = 0.0005
fractions = st.floats(min_value=0.0, max_value=1.0)
caps = st.floats(min_value=0.001, max_value=1.0)
threads = st.lists(st.tuples(fractions, fractions), min_size=1, max_size=8)


@given(caps, threads)
def test_the_shares_add_up_to_the_cap(cap: float, pairs: list[tuple[float, float]]) -> None:
    usages, previous = map(list, zip(*pairs, strict=True))
    shares = split(cap, usages, previous, FLOOR)
    assert sum(shares) == pytest.approx(cap, rel=1e-9)


@given(caps, threads)
def test_every_thread_keeps_its_floor(cap: float, pairs: list[tuple[float, float]]) -> None:
    usages, previous = map(list, zip(*pairs, strict=True))
    shares = split(cap, usages, previous, FLOOR)
    assert min(shares) >= min(FLOOR, cap / len(pairs)) * (1 - 1e-9)


@given(st.floats(min_value=0.001, max_value=8.0), threads)
def test_no_thread_gets_more_than_the_ceiling(cap: float, pairs: list[tuple[float, float]]) -> None:
    usages, previous = map(list, zip(*pairs, strict=True))
    shares = split(cap, usages, previous, FLOOR, 0.95)
    assert max(shares) <= 0.95 * (1 + 1e-9)
    assert sum(shares) == pytest.approx(min(cap, 0.95 * len(pairs)), rel=1e-9)


@given(caps, threads, st.randoms(use_true_random=False))
def test_threads_are_treated_alike(
    cap: float, pairs: list[tuple[float, float]], random: object
) -> None:
    order = list(range(len(pairs)))
    random.shuffle(order)  # type: ignore[attr-defined]
    usages, previous = map(list, zip(*pairs, strict=True))
    shares = split(cap, usages, previous, FLOOR)
    moved = split(cap, [usages[i] for i in order], [previous[i] for i in order], FLOOR)
    assert moved == pytest.approx([shares[i] for i in order], rel=1e-9, abs=1e-12)


@given(caps, st.integers(min_value=2, max_value=8), st.data())
def test_an_idle_threads_share_goes_to_the_busy_one_within_three_steps(
    cap: float, count: int, data: st.DataObject
) -> None:
    busy = data.draw(st.integers(0, count - 1))
    was_busy = data.draw(st.integers(0, count - 1))
    least = min(FLOOR, cap / count)
    shares = [least] * count
    shares[was_busy] = cap - least * (count - 1)
    for _ in range(3):
        used = [share if index == busy else 0.0 for index, share in enumerate(shares)]
        shares = split(cap, used, shares, FLOOR)
    assert shares[busy] >= 0.9 * (cap - least * (count - 1))


@given(
    st.floats(min_value=0.02, max_value=1.0),
    st.floats(min_value=0.6, max_value=1.0),
    st.floats(min_value=0.0, max_value=1.0),
)
def test_a_bursty_thread_keeps_its_share_beside_one_with_a_packet_now_and_then(
    cap: float, burst: float, packet: float
) -> None:
    busy = cap - FLOOR
    shares = split(cap, [burst * busy, packet * FLOOR], [busy, FLOOR], FLOOR)
    assert shares[0] >= 0.9 * busy


@given(caps, st.integers(min_value=1, max_value=8))
def test_threads_that_are_all_busy_share_alike(cap: float, count: int) -> None:
    equal = [cap / count] * count
    assert split(cap, equal, equal, FLOOR) == pytest.approx(equal)


@given(fractions, st.lists(fractions, max_size=8))
def test_filling_gives_nobody_more_than_wanted_nor_more_than_there_is(
    total: float, wants: list[float]
) -> None:
    given_out = fill(total, wants)
    assert all(got <= want for got, want in zip(given_out, wants, strict=True))
    assert sum(given_out) == pytest.approx(min(total, sum(wants)), rel=1e-9, abs=1e-12)


def test_no_threads_have_no_shares() -> None:
    assert split(0.5, [], [], FLOOR) == []
