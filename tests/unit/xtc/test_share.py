"""A cap split over threads, by hand: on both sides of every bound."""

import pytest

from xtc.actuator.share import fill, is_worth, split

FLOOR = 0.001


@pytest.mark.parametrize(
    ("used", "shares"),
    [
        (0.45, [0.875, 0.125]),  # 90 % of its share: it may double, and gets all that is left
        (0.44, [0.55 / 0.675, 0.125 / 0.675]),  # less: its use and a quarter, like the other
        (0.10, [0.5, 0.5]),
    ],
)
def test_a_thread_is_hungry_from_90_percent_of_its_share(used: float, shares: list[float]) -> None:
    assert split(1.0, [used, 0.1], [0.5, 0.5], FLOOR) == pytest.approx(shares)


def test_a_hungry_thread_doubles_and_a_full_one_gets_a_quarter_above_its_use() -> None:
    """Needs of 0.4 and 0.125; what is left of the cap goes in proportion to them."""
    shares = split(1.0, [0.2, 0.1], [0.2, 0.8], FLOOR)
    assert shares == pytest.approx([0.4 / 0.525, 0.125 / 0.525])


@pytest.mark.parametrize(
    ("cap", "ceiling", "shares"),
    [
        (1.0, 0.95, [0.875, 0.125]),
        (1.5, 0.95, [0.95, 0.55]),
        (1.5, 0.80, [0.80, 0.70]),
        (1.8, 0.95, [0.95, 0.85]),
        (1.9, 0.95, [0.95, 0.95]),
        (2.5, 0.95, [0.95, 0.95]),
    ],
)
def test_what_one_thread_may_not_take_goes_to_the_others(
    cap: float, ceiling: float, shares: list[float]
) -> None:
    assert split(cap, [0.9, 0.1], [0.9, 0.6], FLOOR, ceiling) == pytest.approx(shares)


def test_a_thread_gets_at_most_one_cpu() -> None:
    assert split(1.8, [1.0, 0.1], [1.0, 0.8], FLOOR) == pytest.approx([1.0, 0.8])


@pytest.mark.parametrize(
    ("floor", "shares"),
    [(0.0, [0.1, 0.0]), (0.01, [0.09, 0.01]), (0.05, [0.05, 0.05]), (0.2, [0.05, 0.05])],
)
def test_an_idle_thread_keeps_its_floor_or_an_equal_share_of_too_small_a_cap(
    floor: float, shares: list[float]
) -> None:
    assert split(0.1, [0.05, 0.0], [0.05, 0.05], floor) == pytest.approx(shares)


def test_threads_that_need_nothing_get_nothing_where_there_is_no_floor() -> None:
    assert split(1.0, [0.0, 0.0], [0.5, 0.5], 0.0) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("total", "wants", "given"),
    [
        (1.0, [0.2, 0.9, 0.3], [0.2, 0.5, 0.3]),
        (1.0, [0.9, 0.2, 0.9], [0.4, 0.2, 0.4]),
        (1.0, [0.2, 0.3], [0.2, 0.3]),
        (0.3, [0.5, 0.5, 0.5], [0.1, 0.1, 0.1]),
        (0.0, [0.5], [0.0]),
        (-1.0, [0.5], [0.0]),
        (1.0, [], []),
    ],
)
def test_filling_by_hand(total: float, wants: list[float], given: list[float]) -> None:
    assert fill(total, wants) == pytest.approx(given)


@pytest.mark.parametrize(
    ("shares", "usages", "previous", "worth"),
    [
        ([0.5, 0.1], [0.4, 0.0], [0.5, 0.1], False),
        ([0.52, 0.08], [0.4, 0.0], [0.5, 0.1], False),
        ([0.54, 0.06], [0.4, 0.0], [0.5, 0.1], True),
        ([0.598, 0.002], [0.4, 0.0010], [0.599, 0.0010], True),
        ([0.598, 0.002], [0.4, 0.0005], [0.599, 0.0010], False),
        ([0.6, 0.0], [0.59, 0.0], [0.59, 0.01], False),
    ],
    ids=["same", "little", "much", "a hungry one gets more", "no hungry one", "hungry, little"],
)
def test_shares_are_given_anew_where_that_is_worth_it(
    shares: list[float], usages: list[float], previous: list[float], worth: bool
) -> None:
    assert is_worth(shares, usages, previous) is worth
