"""History, reports and exports on the command line, against a real service on a real port."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from following_rig import follow
from history_filled import NOW, day, lead, seconds, told
from rest_rig import PROMISE, Rig

from policer.cli.shared.times import instant
from policer.errors import SettingsError
from policer.store import DayRow, Event

if TYPE_CHECKING:
    from policer_shell_rig import Shell

pytest_plugins = ["policer_shell_rig"]

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with told(tmp_path) as rig:
        yield rig


def test_the_history_of_a_router(rig: Rig, shell: "Shell") -> None:
    seconds(rig, NOW - 60, 6)
    times = ("--since", "2026-11-23T12:29:00Z", "--until", "2026-11-23T13:30:00+01:00")
    answer = shell.json("router", "history", "gold", "r1", *times, "--step", "30s")
    assert [point["at"] for point in answer["points"]] == [
        "2026-11-23T12:29:00Z",
        "2026-11-23T12:29:30Z",
    ]
    lines = shell("router", "history", "gold", "r1", *times, "--step", "30s").splitlines()
    assert len(lines) == 3
    assert "throughput" in lines[0]
    assert lines[1].startswith("2026-11-23 12:29:00Z")


def test_a_report(rig: Rig, shell: "Shell") -> None:
    day(rig, 23, data_s=3600.0, wanted=5e6, missing=70.0, breach_s=3661.0, punishments=2)
    (row,) = csv.DictReader(io.StringIO(shell("report", "2026-11", "--csv")))
    assert (row["vr"], row["breach_s"], row["punishments"]) == ("r1", "3661", "2")
    answer = shell.json("report", "2026-11", "--host", "gold")
    assert answer["items"][0]["missing_packets"] == 70.0
    (_, line) = shell("report", "2026-11").splitlines()
    assert "1:01:01" in line
    assert shell.json("report", "2026-11", "--host", "silver")["items"] == []


def test_a_report_names_all_hosts_of_a_contract_that_follows(rig: Rig, shell: "Shell") -> None:
    for name in ("r7", "r8"):
        follow(rig.store, name, PROMISE)
    rows = [DayRow(h, "x", NOON.date(), 1, data_s=1.0, follows="r7") for h in ("gold", "silver")]
    assert rig.store.sla.put(rows, lead(rig))
    _, first, second, third = shell("report", "2026-11").splitlines()
    assert first.startswith("(gold silver)  r7 ")
    assert second.startswith("(not seen)     r8 ")
    assert third.startswith("gold           r1 ")


def test_a_report_of_many_contracts_is_whole(
    rig: Rig, shell: "Shell", monkeypatch: pytest.MonkeyPatch
) -> None:
    from policer.contracts.contract import Contract  # noqa: PLC0415

    monkeypatch.setattr("policer.cli.report.PAGE", 4)
    for number in range(2, 12):
        rig.store.contracts.put("gold", f"r{number:02}", Contract(1.0), None, "test")
    assert len(shell.json("report", "2026-11")["items"]) == 11


def test_events_are_exported(rig: Rig, shell: "Shell") -> None:
    events = [Event("gold", "punished", str(n), "r1", at=NOON + n * timedelta(1)) for n in range(9)]
    rig.store.events.add(events)
    whole = [json.loads(line) for line in shell("events", "--jsonl").splitlines()]
    assert [row["words"] for row in whole] == list("012345678")
    since = ("--since", "2026-11-25T12:00:00Z", "--until", "2026-11-27T12:00:00Z")
    lines = shell("events", "--jsonl", *since, "--vr", "r1").splitlines()
    assert [json.loads(line)["words"] for line in lines] == ["2", "3"]
    assert [row["words"] for row in shell.json("events", *since, "--limit", "1")] == ["3"]


def test_changes_are_exported(rig: Rig, shell: "Shell") -> None:
    del rig
    whole = [json.loads(line) for line in shell("audit", "--jsonl").splitlines()]
    assert whole == shell.json("audit")
    assert shell("audit", "--jsonl", "--since", "2030-01-01T00:00:00Z") == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("events", "--jsonl", "--limit", "3"), "--limit"),
        (("events", "--jsonl", "--follow"), "--follow"),
        (("events", "--jsonl", "--json"), "--json"),
        (("events", "--follow", "--until", "1h"), "--until"),
        (("events", "--since", "yesterday"), "7d"),
        (("events", "--since", "2026-11-23T12:00:00"), "no zone"),
        (("audit", "--jsonl", "--json"), "--json"),
        (("report", "2026-11", "--csv", "--json"), "--csv"),
        (("router", "history", "gold", "r1", "--step", "ten"), "10s"),
    ],
)
def test_what_cannot_be_is_a_wrong_usage(alone: "Shell", words: tuple[str, ...], said: str) -> None:
    assert said in alone(*words, code=2)


def test_what_the_service_refuses_is_said(shell: "Shell") -> None:
    assert "to come" in shell("report", "2026-12", code=1)
    assert "whole minutes" in shell("router", "history", "gold", "r1", "--step", "90s", code=1)
    assert "no host" in shell("router", "history", "iron", "r1", code=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", "2026-11-23T11:58:30Z"),
        ("2h", "2026-11-23T10:00:00Z"),
        ("1w", "2026-11-16T12:00:00Z"),
        ("2026-11-23T12:00:00+01:00", "2026-11-23T11:00:00Z"),
        ("2026-11-23 12:00Z", "2026-11-23T12:00:00Z"),
        (None, None),
    ],
)
def test_times_are_written_as_people_do(text: str | None, expected: str | None) -> None:
    assert instant("--since", text, NOON) == expected


@pytest.mark.parametrize("text", ["", "-2h", "2y", "999999999w", "0001-01-01T00:00:00+12:00", "٢h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        instant("--since", text, NOON)
