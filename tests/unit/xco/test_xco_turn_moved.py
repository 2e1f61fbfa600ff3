"""A turn whose end the controller moves while it runs, as its host takes that."""

import ctypes

import pytest
from xco_coordinator_rig import HYSTERESIS, MS, NOW, PACED, REPORT, SLICE, US, Core, build

LONG = 25 * MS
FRAMES = 100 * 1514


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("moved"))


@pytest.fixture(params=[0, -(10**11), 10**11])
def core(shim: ctypes.CDLL, request: pytest.FixtureRequest) -> Core:
    """A host whose turn has begun; its clock differs from the controller's."""
    core = Core(shim, request.param)
    core.add(NOW, 1)
    core.look(NOW, 0, FRAMES)
    core.direct(NOW, SLICE, NOW, NOW + 2 * MS)
    core.decide(NOW)
    assert core.rates[0] == PACED
    return core


def test_it_goes_on_to_the_later_end(core: Core) -> None:
    core.direct(NOW + MS, SLICE, NOW, NOW + LONG)
    core.decide(NOW + 20 * MS)
    assert core.rates[0] == PACED


def test_an_earlier_end_is_acknowledged_at_once(core: Core) -> None:
    core.direct(NOW + MS, SLICE, NOW, NOW + LONG)
    core.decide(NOW + MS)
    assert not core.decide(NOW + MS + 10 * US) & REPORT
    core.direct(NOW + 2 * MS, SLICE, NOW, NOW + 4 * MS)
    assert core.decide(NOW + 2 * MS) & REPORT
    core.decide(NOW + 4 * MS)
    assert core.rates[0] == 0


def test_a_later_end_needs_no_answer(core: Core) -> None:
    assert not core.decide(NOW + 500 * US) & REPORT
    core.direct(NOW + 500 * US, SLICE, NOW, NOW + LONG)
    assert not core.decide(NOW + 500 * US) & REPORT


def test_one_that_was_given_up_stays_so(core: Core) -> None:
    empty = NOW + 500 * US
    core.look(empty, 0, 0, FRAMES)
    core.decide(empty + HYSTERESIS)
    assert core.gave_up == 1
    core.direct(empty + MS, SLICE, NOW, NOW + LONG)
    core.decide(empty + MS)
    assert core.rates[0] == 0


def test_another_turn_begins_whatever_was_given_up_before(core: Core) -> None:
    empty = NOW + 500 * US
    core.look(empty, 0, 0, FRAMES)
    core.decide(empty + HYSTERESIS)
    core.direct(empty + MS, SLICE, empty + MS, NOW + LONG)
    core.decide(empty + MS)
    assert core.rates[0] == PACED
