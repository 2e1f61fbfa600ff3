"""policer export, plan, apply and tenant against a real service: words, JSON, exit codes."""

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rest_rig import PROMISE, Rig

from policer.contracts.promised import ANYWHERE
from policer.history.packing import packed
from policer.store import ChunkRow

if TYPE_CHECKING:
    from policer_shell_rig import Shell

pytest_plugins = ["policer_shell_rig"]

ROOT = Path(__file__).parents[3]
MORE = """\
version = 1

[tenants.acme]
description = "Acme [red]Ltd.[/red]"

[hosts.gold.contracts.r1]
guarantee_pps = "30kpps"
tenant = "acme"
hours = [{ start = "08:00", end = "18:00", days = ["mon", "tue"] }]
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A file that changes one contract, and adds a tenant."""
    path = tmp_path / "fleet.toml"
    path.write_text(MORE)
    return path


def test_what_is_exported_changes_nothing_when_it_is_applied(
    rig: Rig, shell: "Shell", tmp_path: Path
) -> None:
    rig.store.contracts.put(ANYWHERE, "r9", PROMISE, None, "test")
    for options, name in (((), "fleet.toml"), (("--json",), "fleet.json")):
        exported = shell("export", *options)
        (tmp_path / name).write_text(exported)
        assert "nothing to do" in shell("plan", str(tmp_path / name))
        assert "nothing to do" in shell("apply", str(tmp_path / name))
        assert shell("export", *options) == exported
    assert "[contracts.r9]" in shell("export")
    assert set(shell.json("export")) == {"version", "hosts", "contracts"}
    for secret in rig.secrets.values():
        assert secret not in exported


def test_a_plan_shows_what_would_change_and_changes_nothing(
    rig: Rig, shell: "Shell", fleet: Path
) -> None:
    said = shell("plan", str(fleet), "--keep", code=4)
    assert said.splitlines() == [
        "+ tenant acme",
        "    description  Acme [red]Ltd.[/red]",
        "~ contract gold/r1",
        "    guarantee_pps  20kpps -> 30kpps",
        "    ceiling_pps    50kpps -> none",
        "    hours          none -> mon tue 08:00-18:00",
        "    tenant         none -> acme",
        "host  capacity  promised  would be  overcommit",
        "gold  100 kp/s   20 kp/s   30 kp/s  no        ",
        "1 to add, 1 to change, 0 to remove",
    ]
    assert rig.store.contracts.get("gold", "r1").value == PROMISE


def test_what_would_be_removed_is_loud(shell: "Shell", fleet: Path) -> None:
    said = shell("plan", str(fleet), code=4)
    assert "- REMOVE host silver" in said
    assert "- REMOVE contract silver/r1" in said
    assert said.splitlines()[-2:] == [
        "1 to add, 1 to change, 2 to REMOVE",
        "to apply it takes a token with the scope admin",
    ]
    assert said.index("~ contract") < said.index("- REMOVE host silver")


def test_without_a_terminal_applying_takes_yes(rig: Rig, shell: "Shell", fleet: Path) -> None:
    said = shell("apply", str(fleet), "--keep", code=2)
    assert "--yes: missing, and there is no terminal" in said
    assert rig.store.contracts.get("gold", "r1").value == PROMISE
    done = shell("apply", str(fleet), "--keep", "--yes")
    plan = done.splitlines()[-1].split()[2]
    assert rig.store.contracts.get("gold", "r1").value.tenant == "acme"
    assert {row["plan"] for row in shell.json("audit")[-2:]} == {plan}
    assert "nothing to do" in shell("plan", str(fleet), "--keep")


def test_json_is_the_plan(rig: Rig, shell: "Shell", fleet: Path) -> None:
    made = json.loads(shell("plan", str(fleet), "--keep", "--json", code=4))
    assert len(made["changes"]) == 2
    assert made["applied_at"] is None
    done = json.loads(shell("apply", str(fleet), "--keep", "--yes", "--json"))
    assert (done["version"], done["changes"]) == (2, made["changes"])
    assert shell.json("plan", str(fleet), "--keep")["changes"] == []
    del rig


def test_a_plan_is_applied_by_its_id(rig: Rig, shell: "Shell", fleet: Path) -> None:
    made = json.loads(shell("plan", str(fleet), "--keep", "--json", code=4))
    assert "applied: plan" in shell("apply", "--plan", made["id"], "--yes")
    assert rig.store.contracts.get("gold", "r1").version.number == 2
    assert "applied: plan" in shell("apply", "--plan", made["id"], "--yes")
    assert rig.store.contracts.get("gold", "r1").version.number == 2
    assert "plan again" in shell("apply", "--plan", 32 * "0", code=1)
    for words in ((), (str(fleet), "--plan", made["id"])):
        assert "one of FILE and --plan" in shell("apply", *words, code=2)
    assert "--keep: the plan says" in shell("apply", "--plan", made["id"], "--keep", code=2)


def record(rig: Rig, vr: str, offered_pps: float) -> None:
    """Keep a minute of traffic, by seconds, which ended some minutes ago."""
    leadership = rig.store.leadership("test")
    epoch = leadership.acquire()
    assert epoch is not None
    begin = int(time.time()) // 60 * 60 - 600
    second = [1.0, offered_pps, 100.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    points = packed({vr: second * 10})
    rows = [ChunkRow("gold", 1, begin + at, 1, points) for at in range(0, 60, 10)]
    assert rig.store.history.put(rows, epoch)


def test_a_plan_is_held_against_recorded_traffic(rig: Rig, shell: "Shell", fleet: Path) -> None:
    fleet.write_text("version = 1\n[hosts.gold.contracts.r1]\nceiling_pps = '1kpps'\n")
    command = ("plan", str(fleet), "--keep", "--replay")
    assert "nothing is recorded of these hosts in this time" in shell(*command, "30m", code=4)
    record(rig, "r1", 1500.0)
    said = shell(*command, "30m", code=4).splitlines()
    [title] = [line for line in said if line.startswith("replay of ")]
    assert title.endswith(", a point each second:")
    assert [" ".join(line.split()) for line in said[-4:]] == [
        "host capacity most wanted at overloaded recorded",
        "gold 100 kp/s 0 p/s - 0:00:00 0:01:00",
        "host router held back newly lost time",
        "gold r1 30000 0 0:01:00",
    ]
    found = json.loads(shell(*command, "30m", "--json", code=4))["replay"]
    assert found["routers"][0]["held_back_packets"] == 30_000
    assert "a point each minute" in shell(*command, "24h", code=4)


def test_traffic_that_no_ceiling_touches_is_said_to_be_so(
    rig: Rig, shell: "Shell", fleet: Path
) -> None:
    record(rig, "r1", 1500.0)
    said = shell("plan", str(fleet), "--keep", "--replay", "1h", code=4)
    assert "no ceiling would have held anything back" in said
    fleet.write_text("version = 1\n")
    said = shell("plan", str(fleet), "--keep", "--replay", "1h")
    assert "no host is concerned: there is nothing to replay" in said


@pytest.mark.parametrize(
    ("length", "words"),
    [
        ("1 day", "'1 day' is no length of time (write 30m, 24h or 7d)"),
        ("59s", "59s is not between 1m and 400d"),
        ("401d", "401d is not between"),
    ],
)
def test_a_length_of_replay_that_cannot_be_is_refused(
    alone: "Shell", fleet: Path, length: str, words: str
) -> None:
    assert f"--replay: {words}" in alone("plan", str(fleet), "--replay", length, code=2)


def test_more_than_is_kept_is_refused_by_the_service(shell: "Shell", fleet: Path) -> None:
    said = shell("plan", str(fleet), "--replay", "60d", code=1)
    assert "replay_s: 5184000 s: history is kept for 2592000 s (30 days)" in said


def test_problems_are_told_with_the_lines_of_the_file(shell: "Shell", fleet: Path) -> None:
    fleet.write_text(MORE.replace("30kpps", "101kpps").replace('tenant = "acme"', 'tenant = "x"'))
    for command in (("plan",), ("apply", "--yes")):
        said = shell(*command, str(fleet), "--keep", code=1)
        assert f"policer: {fleet}:8: hosts.gold.contracts.r1.tenant: there is no tenant 'x'" in said
        assert f"policer: {fleet}:6: hosts.gold.capacity_pps: 100000 is less than" in said
    assert json.loads(shell("plan", str(fleet), "--keep", "--json", code=1).partition("\npol")[0])


def test_mistakes_of_the_file_are_told_before_anything_is_asked(
    alone: "Shell", fleet: Path
) -> None:
    fleet.write_text("version = 1\n[hosts.gold]\nrequest = 1\ncapacity_pps = '1k pps'\n")
    said = alone("plan", str(fleet), code=2)
    assert f"policer: {fleet}:3: hosts.gold.request: no such key (did you mean requests?)" in said
    assert f"policer: {fleet}:4: hosts.gold.capacity_pps: '1k pps' is not a packet rate" in said
    assert "/nowhere: No such file" in alone("apply", "/nowhere", code=2)


def test_a_document_comes_from_standard_input(
    shell: "Shell", monkeypatch: pytest.MonkeyPatch, fleet: Path
) -> None:
    with fleet.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert "1 to add, 1 to change" in shell("plan", "-", "--keep", code=4)


@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_at_a_terminal_an_operator_is_asked(
    rig: Rig, shell: "Shell", fleet: Path, typed: str, code: int
) -> None:
    del shell  # its service and token are in the environment
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    process = subprocess.Popen(
        [sys.executable, "-m", "policer", "apply", str(fleet)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    os.write(ours, f"{typed}\n".encode())
    out, err = process.communicate(timeout=60)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == code, out + err
    assert "Apply these changes, which REMOVE 2? [y/N]" in err
    assert (len(rig.store.hosts.all()) == 1) is (code == 0)


def test_the_life_of_a_tenant(shell: "Shell") -> None:
    shell("tenant", "set", "acme", "--description", "Acme Ltd.")
    assert shell("tenant", "list").splitlines()[1].split()[:4] == ["acme", "Acme", "Ltd.", "1"]
    shell("tenant", "set", "acme", "--description", "Acme & Sons")
    assert shell.json("tenant", "show", "acme")["entry"] == {"description": "Acme & Sons"}
    assert "nothing is to be changed" in shell("tenant", "set", "acme", code=2)
    assert "Acme & Sons" in shell("tenant", "show", "acme")
    assert shell.json("tenant", "remove", "acme") == {"removed": "acme"}
    assert "no tenant acme" in shell("tenant", "show", "acme", code=1)
    shell("tenant", "set", "bare")
    assert shell.json("tenant", "list")[0]["entry"] == {"description": ""}
    assert "bare: removed" in shell("tenant", "remove", "bare")
