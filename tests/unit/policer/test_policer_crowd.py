"""Too many connections: who only waits makes room for who asks, and no address takes all."""

import pytest

from policer.daemon.connection_limits import Crowd, CrowdLimits

LIMITS = CrowdLimits(most=10, each=4, idle_s=10.0)


@pytest.fixture
def crowd() -> Crowd[str]:
    return Crowd(LIMITS)


def test_as_many_as_are_allowed_stay(crowd: Crowd[str]) -> None:
    for number in range(10):
        assert crowd.opened(f"c{number}", f"a{number}", 0.0) is None
    assert len(crowd) == 10


def test_who_has_waited_longest_makes_room(crowd: Crowd[str]) -> None:
    for number in range(10):
        crowd.opened(f"c{number}", f"a{number}", float(number))
    crowd.busy("c0")
    assert crowd.opened("new", "b", 20.0) == "c1"
    assert len(crowd) == 10


def test_an_address_that_has_its_share_makes_room_by_itself(crowd: Crowd[str]) -> None:
    crowd.opened("other", "b", 0.0)
    for number in range(4):
        crowd.opened(f"c{number}", "a", 1.0 + number)
    assert crowd.opened("c4", "a", 9.0) == "c0"
    for number in range(1, 5):
        crowd.busy(f"c{number}")
    assert crowd.opened("c5", "a", 9.0) == "c5"  # all are answered: the new one is turned away
    assert len(crowd) == 5


def test_idle_clients_never_keep_another_address_out(crowd: Crowd[str]) -> None:
    for number in range(1000):
        crowd.opened(f"c{number}", f"a{number % 3}", float(number))
    for number in range(20):
        assert crowd.opened(f"n{number}", f"b{number}", 2000.0) != f"n{number}"


def test_who_is_not_done_in_time_is_overdue_unless_he_is_answered(crowd: Crowd[str]) -> None:
    for name in ("silent", "slow answer", "keeps asking"):
        crowd.opened(name, name, 0.0)
    crowd.busy("slow answer")
    crowd.busy("keeps asking")
    crowd.idle("keeps asking", 5.0)
    assert crowd.overdue(9.9) == []
    assert crowd.overdue(10.0) == ["silent"]
    crowd.closed("silent")
    assert crowd.overdue(15.0) == ["keeps asking"]


def test_whoever_is_gone_is_forgotten_once(crowd: Crowd[str]) -> None:
    crowd.opened("c", "a", 0.0)
    for _ in range(2):
        crowd.closed("c")
        crowd.busy("c")
        crowd.idle("c", 1.0)
    assert (len(crowd), crowd.overdue(99.0)) == (0, [])
