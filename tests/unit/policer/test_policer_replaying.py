"""Contracts held against the history that a store has: seconds, minutes, leaders, bounds."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from history_filled import NOW, lead, minutes, seconds, told
from rest_rig import GOLD, SILVER, Rig

from policer.contracts.contract import Contract
from policer.contracts.replay import Fleet, HostReplay, Replayed, RouterReplay
from policer.errors import Invalid, StoreGone
from policer.history.packing import packed
from policer.history.retention import Retention
from policer.history.window import Window, window
from policer.reports import replay as replaying
from policer.reports.replay import replayed
from policer.store import ChunkRow

HOUR = NOW - NOW % 3600
DAY = window(86_400, NOW, Retention())
HELD = Fleet({"gold": GOLD, "silver": SILVER}, {}, {("gold", "r1"): Contract(ceiling_pps=150.0)})


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with told(tmp_path) as rig:
        yield rig


def held_against(rig: Rig, *hosts: str, wanted: Window = DAY, fleet: Fleet = HELD) -> Replayed:
    now = datetime.fromtimestamp(NOW, UTC)
    return replayed(rig.store.history, hosts or ("gold",), wanted, fleet, now)


def test_a_day_is_read_by_minutes_of_which_what_is_known_counts(rig: Rig) -> None:
    minutes(rig, HOUR - 2 * 3600, 2)
    found = held_against(rig)
    assert (found.begin.isoformat(), found.end.isoformat(), found.span_s) == (
        "2026-11-22T12:30:00+00:00",
        "2026-11-23T12:30:00+00:00",
        60,
    )
    # Each minute has 30 s of data, in which 200 packets/s were offered and 100 forwarded.
    assert found.hosts == (HostReplay("gold", GOLD.capacity_pps, 3600.0),)
    assert found.routers == (RouterReplay("gold", "r1", 3600 * 50.0, 0.0, 3600.0),)


def test_the_last_hour_is_read_by_seconds(rig: Rig) -> None:
    minutes(rig, HOUR, 1)
    seconds(rig, NOW - 20, 2, offered=160.0)
    found = held_against(rig, wanted=window(3600, NOW, Retention()))
    assert (found.span_s, found.hosts[0].known_s) == (1, 20.0)
    assert found.routers == (RouterReplay("gold", "r1", 200.0, 0.0, 20.0),)


def test_a_guarantee_that_is_wanted_is_weighed_against_the_capacity(rig: Rig) -> None:
    minutes(rig, HOUR - 3600, 1)
    guaranteed = HELD._replace(contracts={("gold", "r1"): Contract(guarantee_pps=300.0, cost=10.0)})
    [host] = held_against(rig, fleet=guaranteed).hosts
    began = datetime.fromtimestamp(HOUR - 3600, UTC)
    assert host == HostReplay("gold", GOLD.capacity_pps, 1800.0, 0.0, 2000.0, began)


def test_only_the_time_that_was_asked_for_is_read(rig: Rig) -> None:
    minutes(rig, HOUR - 5 * 3600, 6)
    found = held_against(rig, wanted=window(2 * 3600, NOW, Retention()))
    assert found.hosts[0].known_s == 3600.0


def test_what_two_leaders_wrote_of_one_time_adds_up(rig: Rig) -> None:
    for part, routers in ((1, ("r1", "r2")), (2, ("r1",))):
        half = [15.0, 3000.0, 1500.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        raw = packed(dict.fromkeys(routers, half * 60))
        rig.store.history.put([ChunkRow("gold", 60, int(HOUR) - 3600, part, raw)], lead(rig))
    found = held_against(rig)
    assert found.hosts[0].known_s == 1800.0
    assert found.routers == (RouterReplay("gold", "r1", 1800 * 50.0, 0.0, 1800.0),)


def test_hosts_without_history_are_said_to_have_none(rig: Rig) -> None:
    found = held_against(rig, "gold", "silver", "gone")
    assert [(host.host, host.known_s) for host in found.hosts] == [("gold", 0.0), ("silver", 0.0)]
    assert (found.routers, found.left_out) == ((), ())


def test_what_is_too_much_to_read_is_left_out_and_said(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutes(rig, HOUR - 2 * 3600, 2)
    monkeypatch.setattr(replaying, "MOST_SAMPLES", 120)
    assert held_against(rig, "gold", "silver").left_out == ()
    monkeypatch.setattr(replaying, "MOST_SAMPLES", 119)
    found = held_against(rig, "silver", "gold", "tin")
    assert [host.host for host in found.hosts] == ["silver"]
    assert (found.routers, found.left_out) == ((), ("gold", "tin"))


def test_of_many_routers_those_with_most_held_back_are_shown(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "MOST_SHOWN", 2)
    raw = packed({f"r{n}": [60.0, 6000.0 * n, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0] * 60 for n in range(5)})
    rig.store.history.put([ChunkRow("gold", 60, int(HOUR) - 3600, 1, raw)], lead(rig))
    held = HELD._replace(contracts={("gold", f"r{n}"): Contract(ceiling_pps=50) for n in range(5)})
    assert [router.vr for router in held_against(rig, fleet=held).routers] == ["r4", "r3"]


def test_damaged_history_is_said_to_be_damaged(rig: Rig) -> None:
    row = ChunkRow("gold", 60, int(HOUR) - 3600, 1, b"nonsense")
    rig.store.history.put([row], lead(rig))
    with pytest.raises(StoreGone, match="the history of gold at"):
        held_against(rig)


def test_time_of_which_nothing_is_kept_is_refused_with_what_is() -> None:
    short = Retention(seconds_s=0, minutes_days=2)
    assert window(60, NOW + 7, short) == Window(int(NOW) - 60, int(NOW), 60)
    assert window(90, NOW + 7, Retention()) == Window(int(NOW) - 83, int(NOW) + 7, 1)
    with pytest.raises(Invalid, match=r"replay_s: 172801 s: history is kept for 172800 s \(2 days"):
        window(172_801, NOW, short)
    with pytest.raises(Invalid, match=r"keeps no history.*minutes_days"):
        window(60, NOW, Retention(seconds_s=0, minutes_days=0))
