"""The recorder: each second once, however ticks arrive; and how guarantees were kept in them."""

import math
from dataclasses import replace

import pytest
from history_rig import BEGAN, ToldHost, points, report

from policer.contracts.contract import Contract
from policer.contracts.ladder import Punishment, Step
from policer.decide.state import HostState, Order, RouterState
from policer.decide.telemetry import HostTelemetry
from policer.history.chunks import MOST_ROUTERS
from policer.history.point import Point, added
from policer.recording.recorder import Recorder

GUARANTEE = Contract(guarantee_pps=1000.0)
IN_BITS = Contract(guarantee_bps=8e6, packet_bytes=1000)
"""1000 packets/s as sold."""


@pytest.fixture
def recorder() -> Recorder:
    numbers = iter(range(1, 1000))
    return Recorder(lambda: next(numbers))


def test_every_second_is_told_once(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard)
    for second in range(30):
        host.hear(report("r1", 100.0 + second, 50.0))
    found = points([recorder.cut(math.inf)], "r1")
    assert list(found) == [int(BEGAN) + 1 + second for second in range(30)]
    assert [point.offered for point in found.values()] == [100.0 + n for n in range(30)]
    assert added(found.values()) == Point(30.0, sum(range(100, 130)), 1500.0)


def test_ticks_that_come_unevenly_leave_no_gap_and_no_second_twice(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard)
    for second in range(60):
        host.hear(report("r1", 100.0, 100.0), late_s=(0.0, 0.9, 0.3)[second % 3])
    found = points([recorder.cut(math.inf)], "r1")
    assert {point.data_s for point in found.values()} == {1.0}
    assert len(found) == 60


@pytest.mark.parametrize("period_s", [0.1, 0.25, 1.0, 2.5, 60.0])
def test_periods_of_any_length_fill_the_seconds_they_are_of(
    recorder: Recorder, period_s: float
) -> None:
    host = ToldHost(recorder.heard, period_s=period_s)
    cuts = []
    while host.wall < BEGAN + 300:
        host.hear(report("r1", 100.0, 70.0))
        cuts.append(recorder.cut(host.wall))
    cuts.append(recorder.cut(math.inf))
    seconds = points(cuts, "r1")
    whole = added(seconds.values())
    assert max(point.data_s for point in seconds.values()) <= 1.0 + 1e-6
    assert whole.data_s == pytest.approx(host.wall - BEGAN - period_s, abs=0.2)
    assert whole.offered == pytest.approx(100 * whole.data_s, rel=1e-2)
    minutes = added(points(cuts, "r1", 60).values())
    assert minutes.data_s == pytest.approx(whole.data_s, abs=0.2)
    assert minutes.delivered == pytest.approx(whole.delivered, rel=1e-2)


def test_of_ticks_that_were_lost_nothing_is_known(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard)
    host.hear(report("r1", 100.0, 100.0))
    host.hear(report("r1", 900.0, 900.0), lost=4)
    found = points([recorder.cut(math.inf)], "r1")
    assert [at - int(BEGAN) for at in found] == [1, 6]
    assert added(found.values()).offered == 1000.0


def test_what_a_daemon_does_not_know_is_no_data(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    host.hear(report("r1", None, 100.0))
    host.hear(report("r1", 100.0, None))
    host.hear(report("r1", 100.0, 100.0))
    cut = recorder.cut(math.inf)
    assert added(points([cut], "r1").values()).data_s == 1.0
    assert [row.data_s for row in cut.days] == [1.0]


def test_what_is_less_than_the_guarantee_beyond_the_burst_is_a_breach(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})  # its burst is 200 packets
    host.hear(report("r1", 1500.0, 900.0))  # lacks 100
    host.hear(report("r1", 1500.0, 900.0))  # lacks 200: the burst
    host.hear(report("r1", 1500.0, 900.0))  # 100 beyond it
    host.hear(report("r1", 600.0, 500.0))  # wanted 600, 100 beyond
    host.hear(report("r1", 1500.0, 1200.0))  # makes good for 200
    host.hear(report("r1", 1500.0, 800.0))  # lacks 200
    cut = recorder.cut(math.inf)
    assert [p.breach_s for p in points([cut], "r1").values()] == [0, 0, 1, 1, 0, 0]
    (day,) = cut.days
    assert (day.breach_s, day.missing, day.wanted, day.delivered, day.promised) == (
        2.0,
        200.0,
        5600.0,
        5200.0,
        6000.0,
    )


def test_a_router_that_wants_less_than_its_guarantee_is_owed_no_more(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    for _ in range(20):
        host.hear(report("r1", 10.0, 10.0))
    (day,) = recorder.cut(math.inf).days
    assert (day.breach_s, day.missing, day.wanted) == (0.0, 0.0, 200.0)


def test_what_was_lacking_before_a_gap_is_not_owed_after_it(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    host.hear(report("r1", 1500.0, 850.0))
    host.hear(report("r1", 1500.0, 850.0), lost=3)
    (day,) = recorder.cut(math.inf).days
    assert day.breach_s == 0.0


def test_a_contracts_own_burst_counts(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": replaced(GUARANTEE, burst=50.0)})
    host.hear(report("r1", 1500.0, 940.0))
    (day,) = recorder.cut(math.inf).days
    assert (day.breach_s, day.missing) == (1.0, 10.0)


def test_a_guarantee_in_bits_is_judged_by_the_packets_that_were_sold(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": IN_BITS})
    for _ in range(3):  # each lacks 600; the burst is 200
        host.hear(report("r1", 1500.0, 400.0, throughput_bps=400 * 8000.0))
    cut = recorder.cut(math.inf)
    assert [point.guaranteed for point in points([cut], "r1").values()] == [1000.0] * 3
    (day,) = cut.days
    assert (day.promised, day.missing, day.breach_s) == (3000.0, 1600.0, 3.0)


def test_larger_packets_keep_a_guarantee_in_bits_by_fewer_of_them(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": IN_BITS})
    for _ in range(5):
        host.hear(report("r1", 900.0, 500.0, throughput_bps=500 * 16_000.0))
    (day,) = recorder.cut(math.inf).days
    assert (day.promised, day.breach_s) == (2500.0, 0.0)


@pytest.mark.parametrize("seen", [{}, {"throughput_bps": 400 * 4000.0}], ids=["unknown", "smaller"])
def test_packets_that_are_not_larger_are_owed_as_they_were_sold(
    recorder: Recorder, seen: dict[str, float]
) -> None:
    host = ToldHost(recorder.heard, {"r1": IN_BITS})
    host.hear(report("r1", 1500.0, 400.0, **seen))
    (day,) = recorder.cut(math.inf).days
    assert (day.promised, day.missing) == (1000.0, 400.0)


def test_a_punishment_lowers_the_guarantee_in_force_and_is_counted_once(
    recorder: Recorder,
) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    host.hear(report("r1", 5000.0, 1000.0))
    punish(host, Punishment(1, 0.0, guilty=True, step=Step.PAUSE), Order(1.0, punishment=True))
    for _ in range(3):
        host.hear(report("r1", 5000.0, 1.0))
    cut = recorder.cut(math.inf)
    assert [p.guaranteed for p in points([cut], "r1").values()] == [1000.0, 1.0, 1.0, 1.0]
    (day,) = cut.days
    assert (day.breach_s, day.punished_s, day.punishments) == (0.0, 3.0, 1)
    assert (day.promised, day.wanted) == (4000.0, 1003.0)


def test_a_dry_run_is_no_punishment(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    host.hear(report("r1", 5000.0, 1000.0))
    punish(host, Punishment(1, 0.0, guilty=True, dry=True), Order(2000.0))
    host.hear(report("r1", 5000.0, 1000.0))
    (day,) = recorder.cut(math.inf).days
    assert (day.punished_s, day.punishments) == (0.0, 0)


def test_who_was_punished_before_this_leader_is_not_counted_again(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    punish(host, Punishment(1, 0.0, guilty=True), Order(900.0, punishment=True))
    host.hear(report("r1", 5000.0, 900.0))
    host.hear(report("r1", 5000.0, 900.0))
    (day,) = recorder.cut(math.inf).days
    assert (day.punished_s, day.punishments) == (2.0, 0)


def test_a_setpoint_is_kept_while_there_is_one(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard)
    host.hear(report("r1", 100.0, 100.0, active=True, setpoint_pps=300.0))
    host.hear(report("r1", 100.0, 100.0))
    first, second = points([recorder.cut(math.inf)], "r1").values()
    assert (first.held_s, first.setpoint) == (1.0, 300.0)
    assert (second.held_s, second.setpoint) == (0.0, 0.0)


def test_what_is_complete_is_given_once_and_what_grows_as_a_whole(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    cuts = []
    for _ in range(200):
        host.hear(report("r1", 100.0, 100.0))
        cuts.append(recorder.cut(host.wall))
    seconds = [chunk for cut in cuts for chunk in cut.chunks if chunk.span == 1]
    assert len({chunk.key for chunk in seconds}) == len(seconds) >= 19
    rows = [row for cut in cuts for row in cut.days]
    assert 3 <= len(rows) <= 5
    assert {row.key for row in rows} == {rows[0].key}
    assert sorted(row.data_s for row in rows) == [row.data_s for row in rows]


def test_of_a_host_that_falls_silent_all_that_was_seen_is_given_soon(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard)
    for _ in range(5):
        host.hear(report("r1", 100.0, 100.0))
    assert points([recorder.cut(host.wall)], "r1") == {}
    assert len(points([recorder.cut(host.wall + 80.0)], "r1")) == 5


def test_a_time_of_day_that_falls_loses_nothing_and_overwrites_nothing(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    for _ in range(30):
        host.hear(report("r1", 100.0, 100.0))
    host.wall -= 3600.0
    for _ in range(30):
        host.hear(report("r1", 100.0, 100.0))
    cut = recorder.cut(math.inf)
    assert added(points([cut], "r1").values()).data_s == pytest.approx(59.0, abs=1.0)
    assert sum(row.data_s for row in cut.days) == pytest.approx(59.0, abs=1.0)
    assert len({row.part for row in cut.days}) == 2


def test_a_host_that_was_removed_is_given_to_the_end(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    host.hear(report("r1", 100.0, 100.0))
    recorder.end("gold")
    cut = recorder.cut(host.wall)
    assert [row.data_s for row in cut.days] == [1.0]
    assert recorder.cut(math.inf).days == []


def test_a_host_that_invents_routers_fills_no_chunk(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    for second in range(9):
        invented = [report(f"x{second}-{n}", 1.0, 1.0) for n in range(300)]
        host.hear(*invented, report("r1", 1.0, 1.0))
    cut = recorder.cut(math.inf)
    assert max(len(chunk.routers) for chunk in cut.chunks) <= MOST_ROUTERS + 1
    assert len(points([cut], "r1")) == 9


def test_a_daemon_that_starts_anew_tells_of_no_period_before_it(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard)
    host.hear(report("r1", 100.0, 100.0))
    again = HostTelemetry(heard_at=host.clock, host_clock=host.clock + 9.0, tick=0, routers={})
    recorder.heard(host.live, again, host.wall + 9.0)
    assert added(points([recorder.cut(math.inf)], "r1").values()).data_s == 1.0


def punish(host: ToldHost, punishment: Punishment, order: Order) -> None:
    """Let the round before the next tick have decided this of r1."""
    state = HostState(routers={"r1": RouterState(punishment=punishment)})
    host.live = replace(host.live, state=state, orders={"r1": order})


def replaced(contract: Contract, **terms: float) -> Contract:
    return Contract(guarantee_pps=contract.guarantee_pps, **terms)  # type: ignore[arg-type]
