"""Days of contracts that follow their routers: each instant once, wherever it was told."""

import math
from dataclasses import replace

import pytest
from following_rig import UUID
from history_rig import BEGAN, ToldHost, report

from policer.contracts.contract import Contract
from policer.contracts.ladder import Punishment
from policer.decide.state import HostState, RouterState
from policer.recording.counted import LATEST_S, Counted
from policer.recording.recorder import Recorder
from policer.recording.stretch import BACK_S, Stretch
from policer.store import DayRow

GUARANTEE = Contract(guarantee_pps=1000.0)
PUNISHED = HostState(routers={"r1": RouterState(punishment=Punishment(1, 0.0, guilty=True))})


@pytest.fixture
def recorder() -> Recorder:
    numbers = iter(range(1, 1000))
    return Recorder(lambda: next(numbers))


def come(host: ToldHost, vr: str = "r1") -> None:
    """Have the contract follow its router to a host."""
    host.live = replace(host.live, contracts={vr: GUARANTEE}, follows={vr: UUID})


def leave(host: ToldHost) -> None:
    """Have it go on elsewhere."""
    host.live = replace(host.live, contracts={}, follows={}, state=HostState())


def added(rows: list[DayRow]) -> dict[str, float]:
    """Return the sums over rows, and see that none takes the place of another."""
    assert len({row.key for row in rows}) == len(rows)
    names = ("data_s", "promised", "wanted", "delivered", "missing", "breach_s", "punished_s")
    return {name: sum(getattr(row, name) for row in rows) for name in names}


def test_rows_of_both_hosts_name_the_contract(recorder: Recorder) -> None:
    for name, vr, wall in (("gold", "r1", BEGAN), ("iron", "r2", BEGAN + 1.0)):
        host = ToldHost(recorder.heard, name=name, wall=wall)
        come(host, vr)
        host.hear(report(vr, 100.0, 100.0))
        leave(host)
    rows = recorder.cut(math.inf).days
    assert [(row.follows, row.host, row.vr) for row in rows] == [
        (UUID, "gold", "r1"),
        (UUID, "iron", "r2"),
    ]
    assert len({row.key for row in rows}) == 2


def test_what_two_hosts_tell_of_one_instant_counts_once(recorder: Recorder) -> None:
    """The new host's first tick begins 0.5 s before the end of the old one's last."""
    source = ToldHost(recorder.heard, name="gold")
    target = ToldHost(recorder.heard, name="iron", wall=BEGAN + 9.5)
    come(source)
    for _ in range(10):
        source.hear(report("r1", 2000.0, 400.0))
    leave(source)
    come(target)
    target.hear(report("r1", 2000.0, 400.0))
    sums = added(recorder.cut(math.inf).days)
    assert sums["data_s"] == 10.5
    assert (sums["promised"], sums["wanted"], sums["delivered"]) == (10_500, 10_500, 4200)
    assert sums["breach_s"] == 10.5


def test_what_was_told_already_adds_nothing(recorder: Recorder) -> None:
    source, target = ToldHost(recorder.heard, name="gold"), ToldHost(recorder.heard, name="iron")
    for host in (source, target):  # which no policer does: both have it
        come(host)
        for _ in range(10):
            host.hear(report("r1", 100.0, 100.0))
    (row,) = recorder.cut(math.inf).days
    assert (row.host, row.data_s, row.delivered) == ("gold", 10.0, 1000.0)


def test_contracts_of_hosts_alone_are_not_compared(recorder: Recorder) -> None:
    for name in ("gold", "iron"):
        host = ToldHost(recorder.heard, {"r1": GUARANTEE}, name=name)
        host.hear(report("r1", 100.0, 100.0))
    assert [row.data_s for row in recorder.cut(math.inf).days] == [1.0, 1.0]


def test_a_punishment_that_came_with_the_router_is_counted_once(recorder: Recorder) -> None:
    source, target = ToldHost(recorder.heard, name="gold"), ToldHost(recorder.heard, name="iron")
    come(source)
    source.hear(report("r1", 100.0, 100.0))
    source.live = replace(source.live, state=PUNISHED)
    source.hear(report("r1", 100.0, 100.0))
    leave(source)
    for _ in range(3):  # the copy is there before the source goes
        target.hear(report("r1", 0.0, 0.0))
    come(target)
    target.live = replace(target.live, state=PUNISHED)
    target.hear(report("r1", 100.0, 100.0))
    rows = recorder.cut(math.inf).days
    assert [row.punishments for row in rows] == [1, 0]
    assert added(rows)["punished_s"] == 2.0


def test_a_contract_that_begins_to_follow_has_days_of_its_own(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard, {"r1": GUARANTEE})
    for _ in range(5):
        host.hear(report("r1", 100.0, 100.0))
    come(host)
    for _ in range(3):
        host.hear(report("r1", 100.0, 100.0))
    host.live = replace(host.live, follows={})
    host.hear(report("r1", 100.0, 100.0))
    rows = {row.follows: row for row in recorder.cut(math.inf).days}
    assert (rows[""].data_s, rows[UUID].data_s) == (6.0, 3.0)


def test_a_router_with_another_name_on_its_host_loses_nothing(recorder: Recorder) -> None:
    host = ToldHost(recorder.heard)
    for vr in ("r1", "r2"):
        come(host, vr)
        host.hear(report(vr, 100.0, 100.0))
    assert added(recorder.cut(math.inf).days)["data_s"] == 2.0


# --- what was counted


def test_a_stretch_counts_as_far_as_it_is_new() -> None:
    counted = Counted()
    assert counted.share("r", Stretch(100.0, 101.0, follows=False)) == 1.0
    assert counted.share("r", Stretch(100.0, 101.0, follows=False)) == 0.0
    assert counted.share("r", Stretch(100.5, 102.5, follows=False)) == 0.75
    assert counted.share("r", Stretch(102.5, 103.5, follows=True)) == 1.0
    assert counted.share("other", Stretch(102.5, 103.5, follows=True)) == 1.0


def test_a_time_of_day_that_was_far_ahead_keeps_nothing_from_counting() -> None:
    counted = Counted()
    counted.share("r", Stretch(9999.0, 10_000.0, follows=False))
    assert counted.share("r", Stretch(100.0, 101.0, follows=False)) == 1.0
    assert counted.share("r", Stretch(101.0 - BACK_S, 100.0, follows=False)) == 0.0


def test_what_no_tick_can_tell_of_is_forgotten() -> None:
    counted = Counted()
    counted.share("r", Stretch(100.0, 101.0, follows=False))
    counted.forget_old(101.0 + LATEST_S - 1.0)
    assert counted.share("r", Stretch(100.0, 101.0, follows=False)) == 0.0
    counted.forget_old(101.0 + LATEST_S)
    assert counted.share("r", Stretch(100.0, 101.0, follows=False)) == 1.0
