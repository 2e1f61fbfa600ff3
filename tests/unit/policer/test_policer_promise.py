"""What daemons count of their promises is added up over restarts, and never falls."""

import pytest
from policer_plant import report_of

from policer.fleet.compliance import Counted, Kept, kept_after
from xtc.wire import Report


def counting(over: float, under: float, breach: float, **changed: object) -> Report:
    return report_of(
        over_promise_packets=over,
        under_promise_packets=under,
        breach_seconds=breach,
        **changed,
    )


class Context:
    """Adds up what one router's daemon counts."""

    def __init__(self, *contracts: str) -> None:
        self.kept: dict[str, Kept] = {}
        self.contracts = contracts
        self.now = 10.0

    def see(self, *reports: Report, restarted: bool = False) -> Counted | None:
        self.now += 1.0
        seen = {report.vr: report for report in reports}
        self.kept = kept_after(self.now, self.kept, seen, self.contracts, restarted=restarted)
        return self.kept["a"].total if "a" in self.kept else None


def test_what_was_counted_before_the_router_was_first_seen_is_left_out() -> None:
    context = Context()
    assert context.see(counting(500, 70, 3)) == Counted(0, 0, 0)
    assert context.see(counting(520, 75, 3.5)) == Counted(20, 5, 0.5)
    assert context.kept["a"].since == 11.0


def test_a_daemon_that_was_started_anew_begins_at_nothing() -> None:
    context = Context()
    context.see(counting(0, 0, 0))
    context.see(counting(100, 10, 2))
    assert context.see(counting(30, 4, 1)) == Counted(130, 14, 3)


def test_one_counter_that_fell_says_that_all_began_again() -> None:
    context = Context()
    context.see(counting(100, 10, 2))
    assert context.see(counting(150, 0, 0)) == Counted(150, 0, 0)


def test_a_restart_is_known_by_the_daemons_ticks_where_its_counters_are_above_the_last() -> None:
    context = Context()
    context.see(counting(1, 1, 1))
    assert context.see(counting(9, 8, 7), restarted=True) == Counted(9, 8, 7)


def test_an_older_daemon_has_no_sums() -> None:
    assert Context().see(report_of()) is None
    assert Context().see(report_of(over_promise_packets=1.0)) is None


def test_sums_wait_for_a_daemon_that_does_not_count_for_a_while() -> None:
    context = Context()
    context.see(counting(0, 0, 0))
    context.see(counting(5, 0, 0))
    assert context.see(report_of()) == Counted(5, 0, 0)
    assert context.see(counting(7, 0, 0)) == Counted(7, 0, 0)


def test_bits_have_sums_of_their_own() -> None:
    context = Context()
    context.see(counting(0, 0, 0))
    in_bits = {"over_promise_bits": 8e6, "under_promise_bits": 5e3}
    assert context.see(counting(3, 0, 1, **in_bits)) == Counted(3, 0, 1, 8e6, 5e3)
    assert context.see(counting(5, 0, 2, **in_bits)) == Counted(5, 0, 2, 8e6, 5e3)


def test_a_router_that_was_only_ever_held_in_bits_has_sums() -> None:
    context = Context()
    never = {"over_promise_packets": None, "under_promise_packets": None}
    in_bits = {"over_promise_bits": 10.0, "under_promise_bits": 0.0, "breach_seconds": 0.0}
    context.see(report_of(**never, **in_bits))
    more = in_bits | {"over_promise_bits": 14.0, "breach_seconds": 2.0}
    assert context.see(report_of(**never, **more)) == Counted(breach_s=2.0, over_bits=4.0)


def test_counters_in_bits_that_fell_say_that_all_began_again() -> None:
    context = Context()
    context.see(counting(9, 0, 5, over_promise_bits=100.0, under_promise_bits=0.0))
    after = counting(9, 0, 6, over_promise_bits=0.0, under_promise_bits=0.0)
    assert context.see(after) == Counted(9, 0, 6)


@pytest.mark.parametrize(("contracts", "kept"), [((), False), (("a",), True)])
def test_a_router_that_vanished_is_remembered_while_it_has_a_contract(
    contracts: tuple[str, ...], kept: bool
) -> None:
    context = Context(*contracts)
    context.see(counting(0, 0, 0))
    context.see(counting(5, 0, 0))
    assert (context.see() is not None) is kept
