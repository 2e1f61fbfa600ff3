"""Room for promises, and where routers go when hosts are lost."""

from hypothesis import given
from hypothesis import strategies as st

from policer.contracts.placement import Guaranteed, Room, fitting, moved, rooms_after

RATES = st.floats(0, 2e5).map(lambda rate: round(rate, 1))
ROOMS = st.lists(st.builds(Room, st.just(""), st.just(1e5), RATES), min_size=1, max_size=8).map(
    lambda rooms: [room._replace(host=f"h{n}") for n, room in enumerate(rooms)]
)
ROUTERS = st.lists(st.tuples(st.integers(0, 7), RATES), max_size=20).map(
    lambda given: [Guaranteed(f"h{host}", f"r{n}", pps) for n, (host, pps) in enumerate(given)]
)


def room(host: str, capacity: float, promised: float) -> Room:
    return Room(host, capacity, promised)


def test_the_fullest_host_that_has_room_comes_first() -> None:
    rooms = [room("wide", 100e3, 0.0), room("full", 100e3, 90e3), room("tight", 100e3, 70e3)]
    assert [one.host for one in fitting(rooms, 20e3)] == ["tight", "wide"]


def test_a_guarantee_that_just_fits_fits() -> None:
    assert fitting([room("a", 0.3, 0.1)], 0.2)
    assert not fitting([room("a", 0.3, 0.1)], 0.2001)


def test_routers_of_a_lost_host_go_where_they_fit_the_largest_first() -> None:
    rooms = [room("lost", 1e5, 6e4), room("a", 1e5, 7e4), room("b", 1e5, 6e4)]
    routers = [
        Guaranteed("lost", "small", 2e4),
        Guaranteed("lost", "large", 4e4),
        Guaranteed("lost", "free", 0.0),
        Guaranteed("a", "stays", 7e4),
    ]
    moves = moved(rooms, routers, {"lost"})
    assert [(move.router.vr, move.to) for move in moves] == [("large", "b"), ("small", "a")]
    left = {one.host: one.free_pps for one in rooms_after(rooms, moves, {"lost"})}
    assert left == {"a": 1e4, "b": 0.0}


def test_what_fits_nowhere_is_said() -> None:
    rooms = [room("lost", 1e5, 9e4), room("a", 1e5, 5e4)]
    routers = [Guaranteed("lost", "r1", 6e4), Guaranteed("lost", "r2", 3e4)]
    moves = moved(rooms, routers, {"lost"})
    assert [(move.router.vr, move.to) for move in moves] == [("r1", None), ("r2", "a")]


@given(ROOMS, ROUTERS, st.sets(st.sampled_from([f"h{n}" for n in range(8)])))
def test_no_host_is_filled_beyond_what_it_can_keep(
    rooms: list[Room], routers: list[Guaranteed], lost: set[str]
) -> None:
    moves = moved(rooms, routers, lost)
    assert {move.router for move in moves} == {r for r in routers if r.host in lost and r.pps > 0}
    before = {one.host: one for one in rooms}
    for after in rooms_after(rooms, moves, lost):
        full = max(before[after.host].promised_pps, after.capacity_pps)
        assert after.promised_pps <= full * (1 + 1e-8)
        nowhere = [move.router.pps for move in moves if move.to is None]
        assert not any(after.takes(pps) for pps in nowhere)
