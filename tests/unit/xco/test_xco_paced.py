"""Gates that only pace: they never close, keep rates, and obey no controller of timeslices."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import (
    CLOSED,
    LINE,
    MS,
    NOW,
    OPEN,
    PACED,
    RATE,
    SILENCE,
    SLICE,
    Core,
    build,
)

SECOND = 1000 * MS
SAFE = LINE // 4 // 100 * 98


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("paced"))


def begun(shim: ctypes.CDLL) -> Core:
    """Return a core with one destination, of which a quarter of the line is safe."""
    core = Core(shim)
    core.only_pace()
    core.add(NOW, 1)
    return core


@given(st.integers(8000, LINE))
def test_a_rate_is_obeyed(shim: ctypes.CDLL, rate: int) -> None:
    core = begun(shim)
    core.direct(NOW, RATE, 0, 0, rate=rate)
    core.decide(NOW)
    assert core.rates[0] == pytest.approx(max(8000, rate * 0.98), abs=2000)


@pytest.mark.parametrize(("mode", "expected"), [(CLOSED, SAFE), (OPEN, PACED)])
def test_what_is_granted_nothing_has_its_safe_share(
    shim: ctypes.CDLL, mode: int, expected: int
) -> None:
    core = begun(shim)
    core.direct(NOW, mode, 0, 0)
    core.decide(NOW)
    assert core.rates[0] == pytest.approx(expected, rel=0.001)


def test_a_destination_without_a_permit_has_its_safe_share(shim: ctypes.CDLL) -> None:
    core = begun(shim)
    core.direct(NOW, RATE, 0, 0, to=2, rate=LINE // 2)
    core.decide(NOW)
    assert core.rates[0] == pytest.approx(SAFE, rel=0.001)


def test_slices_are_refused_and_silence_leads_to_safe_shares(shim: ctypes.CDLL) -> None:
    core = begun(shim)
    core.direct(NOW, RATE, 0, 0, rate=LINE)
    core.decide(NOW)
    for at in range(NOW + MS, NOW + SILENCE + 5 * MS, 5 * MS):
        core.direct(at, SLICE, at, at + 2 * MS)
        core.decide(at)
    assert core.rates[0] == pytest.approx(SAFE, rel=0.001)


def test_what_comes_between_slices_is_refused_too(shim: ctypes.CDLL) -> None:
    core = begun(shim)
    core.direct(NOW, SLICE, NOW, NOW + 2 * MS)
    core.direct(NOW + MS, RATE, 0, 0, rate=LINE)
    core.decide(NOW + MS)
    assert core.rates[0] == pytest.approx(SAFE, rel=0.001)


def test_a_controller_that_grants_slices_no_more_is_obeyed_after_a_while(shim: ctypes.CDLL) -> None:
    core = begun(shim)
    core.direct(NOW, SLICE, NOW, NOW + 2 * MS)
    core.direct(NOW + 11 * SECOND, RATE, 0, 0, rate=LINE)
    core.decide(NOW + 11 * SECOND)
    assert core.rates[0] == pytest.approx(PACED, rel=0.001)


def test_token_buckets_obey_slices_as_before(shim: ctypes.CDLL) -> None:
    core = Core(shim)
    core.add(NOW, 1)
    core.direct(NOW, SLICE, NOW, NOW + 2 * MS)
    core.decide(NOW)
    assert core.rates[0] == pytest.approx(PACED, rel=0.001)
    core.direct(NOW + MS, CLOSED, 0, 0)
    core.decide(NOW + MS)
    assert core.rates[0] == 0
