"""What is taken for an order that was obeyed twice, too late, or of a lower epoch."""

from benchmarks.policer.alternate_hosts import Kept, Order
from benchmarks.policer.alternate_judged import (
    Turn,
    not_rising,
    of_lower_epochs,
    proof_of,
    repeated,
)

TURNS = [Turn("one", 5, 10.0, 11.0), Turn("two", 6, float("inf"), float("inf"))]


def order(
    epoch: int, sequence: int, *, vr: str = "a", host: str = "h", at: float = 1.0, refused: str = ""
) -> Order:
    return Order(at, host, vr, epoch, sequence, refused)


GOOD = [
    order(5, 1),
    order(5, 2, vr="b"),
    order(5, 3),
    order(6, 1, at=12.0),
    order(6, 2, vr="b", at=13.0),
]


def test_orders_that_rise_prove_it() -> None:
    proof = proof_of("x", TURNS, Kept([*GOOD, order(6, 9, host="g", at=14.0)], []))
    assert proof.holds
    assert proof.orders == 6
    (kill,) = proof.kills
    assert (kill.killed, kill.epoch) == ("one", 5)
    assert (kill.without_s, kill.obeyed_s, kill.all_obeyed_s) == (1.0, 2.0, 4.0)


def test_an_order_that_comes_twice_is_found_even_where_it_was_refused() -> None:
    again = order(5, 3, refused="stale_sequence")
    assert repeated([*GOOD, again]) == [again]
    assert repeated([*GOOD, order(5, 3, host="g"), order(5, 3, vr="b")]) == []
    assert not proof_of("x", TURNS, Kept([*GOOD, again], [])).holds


def test_an_order_that_is_obeyed_after_a_later_one_is_found() -> None:
    late = order(5, 2)
    assert not_rising([*GOOD[:3], late]) == [late]
    assert not_rising([*GOOD[:3], order(5, 2, refused="stale_sequence")]) == []
    assert not proof_of("x", TURNS, Kept([*GOOD[:3], late, *GOOD[3:]], [])).holds


def test_a_lower_epoch_is_found_on_any_router_of_a_host() -> None:
    late = order(5, 9, vr="c")
    assert not_rising([*GOOD, late]) == []
    assert of_lower_epochs([*GOOD, late]) == [late]
    assert of_lower_epochs([*GOOD, order(5, 9, vr="c", host="g")]) == []
    assert not proof_of("x", TURNS, Kept([*GOOD, late], [])).holds


def test_a_setpoint_that_ran_out_and_an_epoch_of_two_leads_prove_nothing() -> None:
    assert not proof_of("x", TURNS, Kept(GOOD, [12.0])).holds
    same = [Turn("one", 6, 10.0, 11.0), TURNS[1]]
    assert not proof_of("x", same, Kept(GOOD, [])).holds
    assert not proof_of("x", TURNS[1:], Kept([], [])).holds
