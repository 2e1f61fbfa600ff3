"""Plans that are held against recorded traffic, over REST; with a store that has history."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from history_filled import NOW, minutes, seconds, told
from rest_rig import GOLD, PROMISE, Rig, report

from policer.contracts.contract import Contract
from policer.contracts.promised import ANYWHERE
from policer.history.retention import Retention

UUID = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with told(tmp_path, plans_burst=1e6) as rig:
        minutes(rig, NOW - NOW % 3600 - 4 * 3600, 4)
        yield rig


def make(rig: Rig, fleet: dict[str, Any], replay_s: Any = 86_400, status: int = 201) -> Any:
    body = {"fleet": {"version": 1, **fleet}, "keep": True, "replay_s": replay_s}
    answer = rig.client("operate").post("/v1/plans", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def on_gold(**contracts: Any) -> dict[str, Any]:
    return {"hosts": {"gold": {"contracts": contracts}}}


def test_a_plan_says_what_it_would_have_meant_for_the_last_day(rig: Rig) -> None:
    made = make(rig, on_gold(r1={"ceiling_pps": 150.0}))
    assert made["replay"] == {
        "begin": "2026-11-22T12:30:00Z",
        "end": "2026-11-23T12:30:00Z",
        "span_s": 60,
        "hosts": [
            {
                "host": "gold",
                "capacity_pps": GOLD.capacity_pps,
                "known_s": 7200.0,
                "overloaded_s": 0.0,
                "most_pps": 0.0,
                "most_at": None,
            }
        ],
        "routers": [
            {
                "host": "gold",
                "vr": "r1",
                "held_back_packets": 7200 * 50.0,
                "lost_packets": 0.0,
                "held_back_s": 7200.0,
            }
        ],
        "left_out": [],
    }
    assert rig.client("read").get(f"/v1/plans/{made['id']}").json() == made
    assert rig.store.contracts.get("gold", "r1").value == PROMISE


def test_it_is_applied_as_any_other(rig: Rig) -> None:
    made = make(rig, on_gold(r1={"ceiling_pps": 150.0}))
    path = f"/v1/plans/{made['id']}/apply"
    done = rig.client("operate").post(path, headers={"If-Match": '"v1"'})
    assert (done.status_code, done.json()["replay"]) == (200, made["replay"])
    assert rig.store.contracts.get("gold", "r1").value == Contract(ceiling_pps=150.0)


def test_rates_in_bits_count_as_packets_of_the_size_sold(rig: Rig) -> None:
    sold = {"ceiling_bps": 8 * 500 * 120.0, "packet_bytes": 500}
    [router] = make(rig, on_gold(r1=sold))["replay"]["routers"]
    assert router["held_back_packets"] == pytest.approx(7200 * 80.0)


def test_a_contract_that_follows_a_router_by_its_uuid_counts(rig: Rig) -> None:
    rig.store.contracts.remove("gold", "r1", 1, "test")
    rig.show(GOLD, msgspec.structs.replace(report("r1", 1.0), uuid=UUID))
    followed = make(rig, {"contracts": {UUID: {"ceiling_pps": 150.0}}})["replay"]
    assert [(one["host"], one["vr"]) for one in followed["routers"]] == [("gold", "r1")]
    rig.store.contracts.put(ANYWHERE, "r1", Contract(), None, "test", seen_on="gold")
    named = make(rig, {"contracts": {"r1": {"ceiling_pps": 150.0}}})["replay"]
    assert named["routers"] == followed["routers"]


def test_where_nothing_would_change_there_is_nothing_to_replay(rig: Rig) -> None:
    replay = make(rig, {})["replay"]
    assert (replay["hosts"], replay["routers"], replay["left_out"]) == ([], [], [])
    body = {"fleet": {"version": 1}, "keep": True}
    assert rig.client().post("/v1/plans", json=body).json()["replay"] is None


def test_the_last_hour_is_replayed_by_seconds(rig: Rig) -> None:
    seconds(rig, NOW - 20, 2, offered=160.0)
    replay = make(rig, on_gold(r1={"ceiling_pps": 150.0}), 600)["replay"]
    assert (replay["span_s"], replay["routers"][0]["held_back_packets"]) == (1, 200.0)


def test_a_plan_with_problems_is_replayed_without_what_makes_no_sense(rig: Rig) -> None:
    odd = on_gold(r1={"class": "none"}, r2={"ceiling_pps": 1.0, "zone": "Nowhere/None"})
    made = make(rig, odd)
    assert made["admissible"] is False
    assert made["replay"]["routers"] == []


@pytest.mark.parametrize(
    ("length", "words"),
    [(59, ">= 60"), (31 * 86_400, "give at most 2592000"), ("24h", "`int"), (1e9, "")],
)
def test_a_time_that_cannot_be_is_refused_by_field(rig: Rig, length: Any, words: str) -> None:
    [error] = make(rig, {}, length, status=422)["errors"]
    assert error["field"] == "replay_s"
    assert words in error["problem"] + error["fix"]


def test_a_policer_without_history_says_so(tmp_path: Path) -> None:
    none = Retention(seconds_s=0, minutes_days=0)
    with told(tmp_path, retention=lambda: none) as rig:
        [error] = make(rig, {}, status=422)["errors"]
        assert (error["field"], error["problem"]) == ("replay_s", "this policer keeps no history")
        assert "history.minutes_days" in error["fix"]
