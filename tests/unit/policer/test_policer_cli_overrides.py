"""Overrides on the command line, against a real service on a real port."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from rest_rig import Rig

from policer.contracts.overrides import standing

if TYPE_CHECKING:
    from policer_shell_rig import Shell

pytest_plugins = ["policer_shell_rig"]


def follow(rig: Rig) -> None:
    """Do what the service does: show what stands."""
    rig.fleet.overrides = standing(rig.store.overrides.all(), datetime.now(UTC))


def rows(text: str) -> dict[str, str]:
    lines = (line.split("  ", 1) for line in text.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, value in lines}


def test_the_brake_is_shown_put_on_and_released(rig: Rig, shell: "Shell") -> None:
    assert rows(shell("brake"))["brake"] == "automatic"
    on = rows(shell("brake", "on", "--until", "2h", "--reason", "a new model"))
    assert on["brake"].startswith("on until 20")
    assert on["brake"].endswith(": a new model")
    stored = rig.store.overrides.brake()
    assert stored.until is not None
    assert timedelta(hours=1) < stored.until - datetime.now(UTC) <= timedelta(hours=2)
    follow(rig)
    assert "on, by an operator" in shell("lead")
    assert shell.json("lead")["brake"] == "on"
    assert shell.json("brake")["reason"] == "a new model"
    assert rows(shell("brake", "automatic"))["brake"] == "automatic"
    assert shell.json("brake", "off")["mode"] == "off"
    assert "mode" in shell("brake", "loose", code=2)
    assert "say on, off or automatic" in shell("brake", "--until", "2h", code=2)


def test_what_the_count_stops_is_shown(rig: Rig, shell: "Shell") -> None:
    rig.fleet.counted = {"gold": datetime(2026, 3, 1, 12, tzinfo=UTC)}
    rig.fleet.braked_hosts = frozenset({"gold"})
    shown = rows(shell("brake"))
    assert shown["stopped on"] == "gold"
    assert shown["the count stops"] == "gold since 2026-03-01 12:00:00Z"


def test_control_of_a_host_is_suspended_shown_changed_and_resumed(rig: Rig, shell: "Shell") -> None:
    said = shell("host", "suspend", "gold", "--reason", "an update")
    assert said.startswith("gold: suspended until it is ended, by admin (")
    follow(rig)
    gold = shell("host", "list").splitlines()[1]
    assert gold.split()[1] == "suspended"
    assert "an update" in gold
    assert "control is suspended" in rows(shell("host", "status", "gold"))["control"]
    assert "gold" not in shell("fit", "1kpps")
    assert shell.json("host", "suspend", "gold", "--until", "1d")["version"] == 2
    assert shell.json("host", "resume", "gold") == {"resumed": "gold"}
    assert "no suspension gold" in shell("host", "resume", "gold", code=1)
    assert "no host iron" in shell("host", "suspend", "iron", code=1)
    follow(rig)
    assert shell("host", "list").splitlines()[1].split()[1] == "ok"


def test_a_router_is_exempt_shown_and_no_longer_exempt(rig: Rig, shell: "Shell") -> None:
    assert "--until" in shell("router", "exempt", "gold", "r1", code=2)
    said = shell("router", "exempt", "gold", "r1", "--until", "1d", "--reason", "a load test")
    assert said.startswith("gold r1: exempt until 20")
    follow(rig)
    assert "exempt until 20" in shell("router", "list").splitlines()[1]
    assert rows(shell("router", "show", "gold", "r1"))["exempt"].endswith(": a load test")
    assert "more than 30 days" in shell("router", "exempt", "gold", "r1", "--until", "31d", code=1)
    answer = shell.json("router", "unexempt", "gold", "r1")
    assert answer == {"unexempted": ["gold", "r1"]}
    assert "never punished" in shell("router", "exempt", "gold", "r2", "--until", "1d", code=1)


def test_all_overrides_are_listed(shell: "Shell") -> None:
    assert shell.json("override", "list") == []
    shell("brake", "off", "--reason", "a drill")
    shell("host", "suspend", "silver")
    shell("router", "exempt", "gold", "r1", "--until", "2h")
    shell("epoch", "raise", "--above", "1800000000")
    heading, *lines = shell("override", "list").splitlines()
    assert heading.split()[:4] == ["what", "host", "router", "is"]
    assert [line.split()[:4] for line in lines] == [
        ["brake", "-", "-", "off"],
        ["epoch", "-", "-", "above"],
        ["exemption", "gold", "r1", "exempt"],
        ["suspension", "silver", "-", "suspended"],
    ]
    assert [one["kind"] for one in shell.json("override", "list", "--host", "gold")] == [
        "exemption"
    ]


def test_an_epoch_is_raised_within_bounds_by_an_administrator(
    rig: Rig, shell: "Shell", monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "above 1800000000" in shell("epoch", "raise", "--above", "1800000000")
    assert shell.json("epoch", "raise", "--above", "1800000001")["above"] == 1_800_000_001
    far = shell("epoch", "raise", "--above", "99999999999", code=1)
    assert "years ahead of the clock" in far
    assert "xtc epoch reset" in far
    monkeypatch.setenv("POLICER_TOKEN", rig.secrets["operate"])
    assert "scope admin" in shell("epoch", "raise", "--above", "1800000002", code=1)


@pytest.mark.parametrize("until", ["2026-03-01T18:00:00", "soon", "2020-01-01T00:00:00Z"])
def test_an_end_that_is_none_is_refused_with_the_fix(shell: "Shell", until: str) -> None:
    code = 1 if until.endswith("Z") else 2
    said = shell("host", "suspend", "gold", "--until", until, code=code)
    assert "until" in said
    assert "(" in said
