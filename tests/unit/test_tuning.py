"""Each term of what the self-tuning law learns, by hand: on both sides of every bound."""

import math

import pytest
from msgspec.structs import replace

from xtc.tuning import (
    DOUBT,
    History,
    Tuning,
    _bounded,
    _doubt,
    _doubting,
    _miss,
    _move,
    _noise,
    _rises,
    _taught,
    _unexplained,
    _weighed,
    _with_delay,
    learned,
)

STEP = History((1.0, 1.0, 1.0), (math.e, 1.0, 1.0, 1.0))
"""One step of the cap by e, with this sample, that has not shown yet."""


@pytest.mark.parametrize(
    ("given", "bounded"),
    [
        ((0.05, 0.01, 0.5), (0.05, 0.01, 0.5)),
        ((0.4, 0.0, 2.0), (0.1, 0.0, 1.0)),
        ((0.4, 0.2, 2.0), (0.1, 0.2 * 0.5 * 0.5**0.5, 1.0)),
        ((0.1, 1.0, 1.0), (0.1, 0.999 * 0.1**0.5, 1.0)),
        ((0.1, -1.0, 1.0), (0.1, -0.999 * 0.1**0.5, 1.0)),
        ((-1.0, 0.0, -1.0), (1e-12, 0.0, 1e-12)),
    ],
)
def test_doubt_never_exceeds_that_of_the_start(
    given: tuple[float, float, float], bounded: tuple[float, float, float]
) -> None:
    assert _bounded(*given) == pytest.approx(bounded)


@pytest.mark.parametrize(
    ("noise", "seen", "after"),
    [(0.01, 0.01, 0.01), (0.01, 0.0, 0.009), (0.01, 1.0, 0.015), (4e-6, 0.0, 4e-6)],
)
def test_noise_remembers_nine_samples_of_ten(noise: float, seen: float, after: float) -> None:
    assert _noise(noise, seen) == pytest.approx(after)


def test_the_doubt_of_a_prediction() -> None:
    tuning = Tuning(var_lag=0.1, covariance=0.02, var_gain=0.5)
    assert _doubt(tuning, 0.5, 0.2) == pytest.approx(0.025 + 0.004 + 0.02)


@pytest.mark.parametrize(("before", "after"), [(0.2, 0.45), (0.9, 1.0)])
def test_a_move_along_a_curve_costs_certainty(before: float, after: float) -> None:
    assert _doubting(Tuning(var_gain=before), STEP).var_gain == pytest.approx(after)


@pytest.mark.parametrize(
    ("rates", "rises"),
    [((4.0, 2.0, 1.0), (0.5, 0.25)), ((1.0, 4.0, 2.0), (-0.75, 0.5)), ((4.0, 2.0), (0.5, 0.0))],
)
def test_changes_are_shares_of_the_largest_sample(
    rates: tuple[float, ...], rises: tuple[float, float]
) -> None:
    assert _rises(History(rates, (1.0,) * 4)) == pytest.approx(rises)


UP, DOWN = (0.2, 0.1, 0.1, 0.05), (0.1, 0.2, 0.2, 0.4)


@pytest.mark.parametrize(
    ("rates", "caps", "lag", "delay", "move"),
    [
        ((2.0, 1.0, 1.0), UP, 0.0, 0, 0.5),
        ((2.0, 1.0, 1.0), UP, 0.5, 0, 0.75),  # it is on its way to 3
        ((2.0, 1.0, 1.0), UP, 0.9, 0, 1.0),  # to 11, it seems: at most twice as much counts
        ((1.0, 2.0, 2.0), DOWN, 0.5, 0, -0.25),  # to nothing, it seems: at least half counts
        ((2.0, 1.0, 1.0), UP, 0.0, 1, 0.0),
        ((2.0, 1.0, 1.0), UP, 0.0, 2, 0.5),
        ((2.0, 1.0, 1.0), UP, 0.0, 9, 0.0),
    ],
)
def test_what_a_move_of_the_cap_makes_of_the_throughput(
    rates: tuple[float, ...], caps: tuple[float, ...], lag: float, delay: int, move: float
) -> None:
    assert _move(Tuning(lag=lag, delay=delay), History(rates, caps)) == pytest.approx(move)


def test_a_miss_is_what_lag_and_gain_leave_unexplained() -> None:
    """0.5 of the rise, less 0.2 of the 0.25 before, less 0.6 of the move."""
    tuning = Tuning(lag=0.2, gain=0.6)
    history = History((4.0, 2.0, 1.0), UP)
    move = (4.0 - 0.2 * 2.0) / 0.8 / 4.0 * 0.5
    assert _miss(tuning, history) == pytest.approx(0.5 - 0.2 * 0.25 - 0.6 * move)


def after_two(rise: float) -> History:
    return History((math.exp(rise), 1.0), (1.0,) * 4)


@pytest.mark.parametrize(
    ("rise", "move", "slope", "unexplained"),
    [
        (0.5, 0.5, 1.0, 0.0),
        (0.1, 0.5, 1.0, 0.1),
        (0.2, 0.5, 1.0, 0.0),
        (0.75, 0.5, 1.0, 0.0),
        (1.0, 0.5, 1.0, 0.25),
        (1.0, 0.5, 2.0, 0.0),
        (1.2, 0.5, 2.0, 0.2),
        (0.0, -1.0, 1.0, 0.4),
        (-0.4, -1.0, 1.0, 0.0),
        (-1.6, -1.0, 1.0, 0.1),
        (-0.4, -2.0, 1.0, -math.log(0.6) - 0.4 if -math.log(0.6) > 0.4 else 0.0),
        (-0.6, -2.0, 1.0, 0.0),  # with lag it falls slowly, however deep the cap fell
        (0.3, 0.0, 1.0, 0.3),
    ],
)
def test_what_a_move_cannot_explain(
    rise: float, move: float, slope: float, unexplained: float
) -> None:
    assert _unexplained(after_two(rise), move, slope) == pytest.approx(unexplained, abs=1e-12)


@pytest.mark.parametrize(
    ("rates", "unexplained"),
    [
        ((1.5, 1.0, 0.5), math.log(1.5) - math.log(1.3)),  # it goes on as it went: up,
        ((1.2, 1.0, 0.5), 0.0),
        ((0.5, 1.0, 1.5), math.log(0.7) - math.log(0.5)),  # down,
        ((0.8, 1.0, 1.5), 0.0),
        ((0.05, 1.0, 9.0), math.log(0.6**5) - math.log(0.05)),  # but never to nothing
    ],
)
def test_a_router_with_lag_goes_on_where_it_was_going(
    rates: tuple[float, ...], unexplained: float
) -> None:
    history = History(rates, (1.0,) * 4)
    assert _unexplained(history, 0.0, 1.0) == pytest.approx(unexplained, abs=1e-12)


@pytest.mark.parametrize(
    ("misfits", "delay"),
    [
        ((0.0, 0.0, 0.0), 1),
        ((0.5, 0.2, 0.9), 1),
        ((0.5, 0.25, 0.9), 0),  # 0.175 is not less than 0.3 of 0.51
    ],
)
def test_a_step_that_did_not_show_is_a_delay(misfits: tuple[float, ...], delay: int) -> None:
    known = Tuning(lag=0.3, gain=0.7, noise=0.01, misfits=misfits, lessons=7)
    found = _with_delay(known, STEP)
    assert found.misfits[0] == pytest.approx(0.7 * misfits[0] + 0.16)
    assert found.misfits[1:] == pytest.approx((0.7 * misfits[1], 0.7 * misfits[2]))
    assert found.delay == delay
    if delay:  # what was learned at another delay is forgotten, but for noise and count
        assert found == Tuning(noise=0.01, lessons=7, delay=delay, misfits=found.misfits)


@pytest.mark.parametrize(
    ("log_move", "rise", "tells"),
    [(0.29, 0.0, False), (0.31, 0.0, True), (0.0, 0.29, False), (0.0, -0.31, True)],
)
def test_only_a_clear_change_tells_delays_apart(
    log_move: float, rise: float, *, tells: bool
) -> None:
    known = Tuning(misfits=(0.5, 0.5, 0.5))
    history = History((math.exp(rise), 1.0, 1.0), (math.exp(log_move), 1.0, 1.0, 1.0))
    assert (_with_delay(known, history).misfits != known.misfits) is tells


@pytest.mark.parametrize(("missed", "doubted"), [(0.09, False), (0.12, True)])
def test_a_sample_that_was_foretold_raises_no_doubt_about_the_delay(
    missed: float, *, doubted: bool
) -> None:
    """A move of the cap by 0.4 of itself, which shows but for some of it."""
    history = History((1.0, 0.6 + missed, 0.6 + missed), (1.0, 0.6, 0.6, 0.6))
    assert any(learned(Tuning(), history).misfits) is doubted


@pytest.mark.parametrize(
    ("noise", "move", "lessons"),
    [(0.0025, 0.21, 0), (0.0025, 0.22, 1), (1e-6, 0.019, 0), (1e-6, 0.021, 1)],
)
def test_a_move_teaches_when_it_exceeds_the_noise(noise: float, move: float, lessons: int) -> None:
    """Three times the noise of a difference, 0.2121 here, and 2 % at least."""
    history = History((1.0, 1.0 - move, 1.0 - move), (1.0, 1.0 - move, 1.0 - move))
    assert _weighed(Tuning(noise=noise), history, 0.0).lessons == lessons


def test_what_does_not_teach_is_noise() -> None:
    """The square of a miss, over what a difference of samples with lag has of it."""
    still = History((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    found = _weighed(Tuning(noise=0.01, lag=0.5), still, 0.1)
    assert found.noise == pytest.approx(0.009 + 0.1 * 0.01 / (2 * 1.75))
    assert found.lessons == 0


TAUGHT = Tuning(lag=0.2, gain=0.8, var_lag=0.1, covariance=0.0, var_gain=1.0)


def test_a_lesson_by_hand() -> None:
    """Weights 0.01 and 0.2 over a share of 0.9 x 0.01 + 0.041 = 0.05."""
    found = _taught(TAUGHT, 0.1, 0.2, 0.05, 0.01)
    assert (found.lag, found.gain) == pytest.approx((0.21, 1.0))
    assert found.var_gain == pytest.approx((1.0 - 0.04 / 0.05) / 0.9)
    assert found.var_lag == pytest.approx(0.1)  # 0.098/0.9, brought back to that of the start
    shrunk = (0.1 / (0.098 / 0.9)) ** 0.5
    assert found.covariance == pytest.approx(-0.002 / 0.05 / 0.9 * shrunk)
    assert found.lessons == 1


def test_a_lesson_weighs_what_lag_and_gain_share() -> None:
    found = _taught(replace(TAUGHT, var_lag=0.05, covariance=0.1), 0.1, 0.2, 0.05, 0.01)
    of_lag, of_gain = 0.005 + 0.02, 0.01 + 0.2
    share = 0.009 + 0.0005 + 0.004 + 0.04
    assert found.lag == pytest.approx(0.2 + of_lag * 0.05 / share)
    assert found.gain == pytest.approx(0.8 + of_gain * 0.05 / share)
    assert found.var_lag == pytest.approx((0.05 - of_lag**2 / share) / 0.9)


@pytest.mark.parametrize(("miss", "lag", "gain"), [(-50.0, 0.0, 0.015), (50.0, 0.95, 6.0)])
def test_what_is_learned_stays_within_what_hosts_can_be(
    miss: float, lag: float, gain: float
) -> None:
    found = _taught(TAUGHT, 0.1, 0.2, miss, 0.01)
    assert (found.lag, found.gain) == pytest.approx((lag, gain))


@pytest.mark.parametrize(
    ("lag", "gain", "slope"), [(0.5, 0.5, 1.0), (0.5, 0.1, 0.3), (0.9, 0.9, 6.0)]
)
def test_the_slope_is_that_of_the_settled_router(lag: float, gain: float, slope: float) -> None:
    assert Tuning(lag=lag, gain=gain).slope == pytest.approx(slope)


def test_a_surprise_brings_all_doubt_back_and_teaches_no_more_than_four_deviations() -> None:
    sure = Tuning(noise=1e-4, var_lag=1e-6, covariance=0.0, var_gain=1e-6)
    history = History((1.0, 0.9, 0.9), (1.0, 0.9, 0.9))
    found = _weighed(sure, history, 0.5)
    spread = 2e-4
    most = 4 * math.sqrt(spread + DOUBT[1] * 0.1**2)
    by_hand = _taught(
        replace(sure, var_lag=DOUBT[0], var_gain=DOUBT[1]), 0.0, 0.1, min(0.5, most), spread
    )
    small = _weighed(sure, history, 0.02)
    expected = _taught(_doubting(sure, history), 0.0, 0.1, 0.02, spread)
    for one, other in ((found, by_hand), (small, expected)):
        assert (one.lag, one.gain) == pytest.approx((other.lag, other.gain))
        assert one.var_gain == pytest.approx(other.var_gain)


@pytest.mark.parametrize("rates", [(), (1.0,)])
def test_one_sample_teaches_nothing(rates: tuple[float, ...]) -> None:
    tuning = Tuning()
    assert learned(tuning, History(rates, (1.0,))) is tuning


def test_a_history_is_three_samples_and_the_caps_before() -> None:
    history = History()
    for k in range(1, 8):
        history = history.with_sample(float(k), 0.1 * k)
    assert history.rates == (7.0, 6.0, 5.0)
    assert history.caps == pytest.approx((0.7, 0.6, 0.5, 0.4))
    assert [history.acting(delay) for delay in (0, 3, 9)] == pytest.approx([0.7, 0.4, 0.4])
