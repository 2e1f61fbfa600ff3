"""Telemetry of a host: what a host says is believed in order, once, and where it is possible."""

import pytest
from policer_plant import held_report, report_of

from policer.decide.telemetry import GONE_AFTER_S, MOST_ROUTERS, HostTelemetry, seen
from xtc.wire import Report, Telemetry

CAPACITY = 1e5


def tick(at: float, *routers: Report, number: int = 7) -> Telemetry:
    return Telemetry(at, number, routers)


def heard(*ticks: tuple[float, Telemetry]) -> HostTelemetry:
    before = HostTelemetry()
    for now, telemetry in ticks:
        before = seen(before, telemetry, now, CAPACITY)
    return before


def test_the_first_word_is_believed() -> None:
    before = heard((5.0, tick(900.0, report_of("a"))))
    assert before.reachable(5.0)
    assert set(before.routers) == {"a"}
    assert before.distrust == ""


def test_silence_makes_a_host_gone_and_a_word_brings_it_back() -> None:
    before = heard((5.0, tick(900.0)))
    assert before.reachable(5.0 + GONE_AFTER_S - 0.01)
    assert not before.reachable(5.0 + GONE_AFTER_S)
    assert seen(before, tick(930.0), 35.0, CAPACITY).reachable(35.0)
    assert not HostTelemetry().reachable(0.0)


@pytest.mark.parametrize("at", [900.0, 899.0, 0.0, -1.0])
def test_what_was_said_before_counts_for_nothing(at: float) -> None:
    before = heard((5.0, tick(900.0, held_report("a", setpoint=1e4))))
    after = seen(before, tick(at, held_report("a", setpoint=9e4)), 6.0, CAPACITY)
    assert after.routers == before.routers
    assert (after.heard_at, after.host_clock) == (before.heard_at, before.host_clock)
    assert after.dropped == 1


def test_replays_do_not_make_a_dead_host_look_alive() -> None:
    before = heard((5.0, tick(900.0)), *((now, tick(900.0)) for now in (6.0, 7.0, 8.0, 9.0, 9.9)))
    assert not before.reachable(10.0)


def test_a_host_that_rebooted_begins_a_new_clock() -> None:
    before = heard((5.0, tick(900.0)), (45.0, tick(12.0, report_of("a"))))
    assert (before.host_clock, set(before.routers)) == (12.0, {"a"})


def test_a_daemon_that_restarted_counts_its_ticks_anew() -> None:
    before = heard((5.0, tick(900.0, number=900)), (6.0, tick(901.0, number=1)))
    assert (before.tick, before.dropped) == (1, 0)


def test_a_message_from_the_future_blinds_for_no_longer_than_silence_does() -> None:
    before = heard((5.0, tick(1e12)), (6.0, tick(901.0)), (9.0, tick(904.0)))
    assert before.host_clock == 1e12
    before = seen(before, tick(906.0), 11.0, CAPACITY)
    assert before.host_clock == 906.0


@pytest.mark.parametrize("at", [float("nan"), float("inf")])
def test_a_clock_that_is_no_number_is_not_taken_over(at: float) -> None:
    before = heard((5.0, tick(900.0)), (6.0, tick(at)))
    assert before.distrust
    assert before.host_clock == 900.0
    assert seen(before, tick(902.0), 7.0, CAPACITY).distrust == ""


@pytest.mark.parametrize(
    "routers",
    [
        (report_of("a"), report_of("a")),
        (report_of("a", throughput_pps=-1.0),),
        (report_of("a", offered_pps=float("nan")),),
        (report_of("a", offered_pps=1.1e9),),
        (report_of("a", setpoint_pps=float("inf")),),
        (report_of("a", cap=-0.1),),
        (report_of("a", throughput_bps=1.1e12),),
        (report_of("a", offered_bps=-1.0),),
        (report_of("a", setpoint_bps=float("nan")),),
        (report_of("a", throughput_pps=1.5e5), report_of("b", throughput_pps=0.6e5)),
        tuple(report_of(f"r{i}") for i in range(MOST_ROUTERS + 1)),
    ],
)
def test_what_cannot_be_makes_a_host_distrusted(routers: tuple[Report, ...]) -> None:
    before = heard((5.0, tick(900.0, held_report("a", setpoint=1e4))))
    after = seen(before, tick(901.0, *routers), 6.0, CAPACITY)
    assert after.distrust
    assert after.routers == before.routers
    assert after.reachable(6.0)


def test_cheap_packets_are_counted_at_their_cost() -> None:
    told = tick(1.0, *(report_of(f"r{n}", throughput_pps=98e3) for n in range(3)))
    plain = seen(HostTelemetry(), told, 1.0, 130e3)
    assert "294000 packets/s forwarded" in plain.distrust
    cheap = seen(HostTelemetry(), told, 1.0, 130e3, {f"r{n}": 0.1 for n in range(3)})
    assert cheap.distrust == ""
    dear = seen(HostTelemetry(), told, 1.0, 1e6, {f"r{n}": 10.0 for n in range(3)})
    assert "2940000 packets/s forwarded (counted at their costs)" in dear.distrust


def test_more_bits_than_packets_can_be_are_believed() -> None:
    before = heard((5.0, tick(900.0, report_of("a", throughput_bps=4e10, offered_bps=1e12))))
    assert before.distrust == ""


def test_one_believable_word_restores_trust() -> None:
    before = heard((5.0, tick(900.0, report_of("a", cap=-1.0))), (6.0, tick(901.0, report_of("a"))))
    assert before.distrust == ""
    assert set(before.routers) == {"a"}


def test_a_host_of_4096_routers_is_believed() -> None:
    before = heard((5.0, tick(900.0, *(report_of(f"r{i}") for i in range(MOST_ROUTERS)))))
    assert len(before.routers) == MOST_ROUTERS
    assert before.distrust == ""
