"""The history of a router over REST: as coarse as is asked for, bounded, gaps as gaps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from history_filled import NOW, lead, minutes, seconds, told
from rest_rig import Rig

from policer.history.packing import packed
from policer.reports.history import MOST_POINTS
from policer.store import ChunkRow

PATH = "/v1/hosts/gold/routers/r1/history"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with told(tmp_path) as rig:
        yield rig


def asked(rig: Rig, **query: Any) -> Any:
    answer = rig.client("read").get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_last_hour_is_shown_where_nobody_says_more(rig: Rig) -> None:
    seconds(rig, NOW - 7200, 720)
    found = asked(rig)
    assert (found["begin"], found["end"]) == ("2026-11-23T11:30:00Z", "2026-11-23T12:30:00Z")
    assert found["step_s"] == 5
    assert len(found["points"]) == 720
    assert found["points"][0] == {
        "at": "2026-11-23T11:30:00Z",
        "data_s": 5.0,
        "offered_pps": 100.0,
        "throughput_pps": 90.0,
        "setpoint_pps": 95.0,
        "guarantee_pps": 80.0,
        "breach_s": 0.0,
        "punished_s": 0.0,
    }


def test_seconds_of_a_minute_are_each_shown(rig: Rig) -> None:
    seconds(rig, NOW - 60, 6)
    found = asked(rig, **{"from": "2026-11-23T12:29:05Z", "to": "2026-11-23T12:29:15Z", "step": 1})
    assert [point["at"][-3:-1] for point in found["points"]] == [f"{n:02}" for n in range(5, 15)]


def test_who_says_how_coarse_alone_gets_so_many_points(rig: Rig) -> None:
    seconds(rig, NOW - 3600, 360)
    found = asked(rig, step=1)["points"]
    assert (len(found), found[0]["at"]) == (720, "2026-11-23T12:18:00Z")


def test_what_is_not_known_has_no_point(rig: Rig) -> None:
    seconds(rig, NOW - 600, 6)
    seconds(rig, NOW - 60, 6)
    ats = [point["at"] for point in asked(rig, step=60)["points"]]
    assert ats == []  # of minutes, which nobody wrote
    ats = [point["at"] for point in asked(rig, step=30)["points"]]
    assert [at[11:19] for at in ats] == ["12:20:00", "12:20:30", "12:29:00", "12:29:30"]


def test_what_is_older_is_shown_by_the_minute_or_coarser(rig: Rig) -> None:
    minutes(rig, NOW - NOW % 3600 - 48 * 3600, 48)
    found = asked(rig, **{"from": "2026-11-21T12:30:00Z"})
    assert found["step_s"] == 300
    first = found["points"][0]
    assert (first["data_s"], first["offered_pps"], first["breach_s"]) == (150.0, 200.0, 15.0)
    assert first["setpoint_pps"] is None
    daily = asked(rig, **{"from": "2026-11-21T00:00:00Z", "step": 86400})["points"]
    assert [point["at"] for point in daily] == [f"2026-11-{day}T00:00:00Z" for day in (21, 22, 23)]
    assert sum(point["data_s"] for point in daily) == 48 * 1800


def test_what_two_leaders_saw_of_one_time_is_added(rig: Rig) -> None:
    half = [0.5, 10.0, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    rows = [ChunkRow("gold", 1, int(NOW) - 20, part, packed({"r1": half * 10})) for part in (1, 2)]
    rig.store.history.put(rows, lead(rig))
    (point, *_) = asked(rig, step=10)["points"]
    assert (point["data_s"], point["offered_pps"]) == (10.0, 20.0)


@pytest.mark.parametrize(
    ("query", "field", "fix"),
    [
        ({"from": "yesterday"}, "from", "2026-11-23T12:00:00Z"),
        ({"from": "2026-11-23T12:00:00"}, "from", "+01:00"),
        ({"from": "2026-11-23T12:00:00 01:00"}, "from", "%2B01:00"),
        ({"to": "0001-01-01T00:00:00+10:00"}, "to", "2026-11-23T12:00:00Z"),
        ({"to": "0001-01-01T00:30:00Z"}, "to", "later"),
        ({"to": "1970-01-01T00:00:00Z"}, "to", "later"),
        ({"from": "0001-01-01T00:00:00Z", "to": "0001-01-01T00:30:00Z"}, "to", "later"),
        ({"from": "2026-11-23T13:00:00Z", "to": "2026-11-23T12:00:00Z"}, "to", "after"),
        ({"step": "90"}, "step", "give 60"),
        ({"step": "1", "from": "2026-11-23T11:30:00Z"}, "step", "5 or more"),
        ({"step": "0"}, "step", ""),
    ],
)
def test_a_time_that_cannot_be_is_refused_in_words(
    rig: Rig, query: dict[str, str], field: str, fix: str
) -> None:
    answer = rig.client().get(PATH, params=query)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert fix in error["fix"]


def test_history_begins_in_1970(rig: Rig) -> None:
    found = asked(rig, **{"from": "0001-01-01T00:00:00Z", "to": "1970-01-01T00:30:00Z"})
    assert (found["begin"], found["points"]) == ("1970-01-01T00:00:00Z", [])
    assert asked(rig, to="1970-01-01T00:30:00Z")["begin"] == "1970-01-01T00:00:00Z"


def test_no_answer_has_more_points_than_it_may(rig: Rig) -> None:
    minutes(rig, NOW - NOW % 3600 - 30 * 86400, 30 * 24)
    for begin in ("2026-11-23T12:29:00Z", "2026-11-20T00:00:00Z", "2025-01-01T00:00:00Z"):
        assert len(asked(rig, **{"from": begin})["points"]) <= MOST_POINTS


def test_a_host_that_is_not_there_is_unknown(rig: Rig) -> None:
    assert rig.client().get("/v1/hosts/iron/routers/r1/history").status_code == 404
    assert rig.client().get("/v1/hosts/gold/routers/r9/history").json()["points"] == []


def test_history_that_cannot_be_read_is_said_to_be_the_stores(rig: Rig) -> None:
    rig.store.history.put([ChunkRow("gold", 1, int(NOW) - 60, 1, b"spoilt")], lead(rig))
    answer = rig.client().get(PATH)
    assert answer.status_code == 503
    assert "the history of gold" in answer.json()["detail"]
