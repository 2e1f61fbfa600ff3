"""The policer's command line against a real service on a real port: words, JSON, exit codes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zmq.auth
from rest_rig import GOLD, Rig, opened, serving

from common import __version__
from common.units import Seconds
from models import Uncertainty, dump_host, load_host
from policer.cli import watch as cli_watch
from policer.cli.router import _report_rows
from policer.cli.shared.client import Client
from policer.contracts.ladder import Step
from policer.decide.state import Order
from policer.fleet.compliance import Counted, Kept
from policer.store import Event

if TYPE_CHECKING:
    from policer_shell_rig import Shell

pytest_plugins = ["policer_shell_rig"]

MODELS = Path(__file__).parents[3] / "models" / "hosts"

# --- hosts


def test_the_life_of_a_host(shell: "Shell", tmp_path: Path) -> None:
    public, _ = zmq.auth.create_certificates(tmp_path, "host7")
    key, _ = zmq.auth.load_certificate(public)
    where = ("--requests", "tcp://10.0.0.7:7077", "--telemetry", "tcp://10.0.0.7:7078")
    shell("host", "add", "host7", *where, "--key", str(public), "--capacity", "130kpps")
    entry = shell.json("host", "show", "host7")["entry"]
    assert entry["capacity_pps"] == 130e3
    assert entry["server_key"] == key.decode()
    shell("host", "set", "host7", "--capacity", "140kpps", "--overcommit")
    changed = shell.json("host", "show", "host7")
    assert changed["entry"] == entry | {"capacity_pps": 140e3, "overcommit": True}
    assert changed["version"] == 2
    assert shell.json("host", "remove", "host7") == {"removed": "host7"}
    assert "no host host7" in shell("host", "show", "host7", code=1)


def test_the_capacity_of_a_model_is_its_curves_top_and_is_said(shell: "Shell") -> None:
    where = ("--requests", "ipc:///run/a", "--telemetry", "ipc:///run/b")
    shell("host", "add", "host8", *where, "--model", str(MODELS / "paper.toml"))
    assert "the top of the curve in" in shell.err
    entry = shell.json("host", "show", "host8")["entry"]
    assert entry["capacity_pps"] == load_host(MODELS / "paper.toml").curve.top
    assert entry["capacity_source"] == "model"


def test_the_capacity_of_a_model_that_knows_its_errors_is_what_can_be_promised(
    shell: "Shell", tmp_path: Path
) -> None:
    known = Uncertainty(0.02, 0.05, 0.0, ((0.1, 9e3, 11e3),), (95e3, 99e3), "host")
    host = replace(load_host(MODELS / "paper.toml"), uncertainty=known)
    (tmp_path / "host.toml").write_text(dump_host(host))
    where = ("--requests", "ipc:///run/a", "--telemetry", "ipc:///run/b")
    shell("host", "add", "host8", *where, "--model", str(tmp_path / "host.toml"))
    assert "97.5 % of all times; the top of the curve in" in shell.err
    assert shell.json("host", "show", "host8")["entry"]["capacity_pps"] == host.promise < 95e3
    wild = replace(host, uncertainty=replace(known, speed_sd=0.9))
    (tmp_path / "wild.toml").write_text(dump_host(wild))
    arguments = ("host", "set", "host8", "--model", str(tmp_path / "wild.toml"))
    assert "sweep again on a quiet host" in shell(*arguments, code=2)


def test_who_leads_and_which_brakes_are_on_are_shown(rig: Rig, shell: "Shell") -> None:
    rows = dict(line.split("  ", 1) for line in shell("lead").splitlines() if line.strip())
    assert rows["who leads"].strip() == "here"
    assert rows["epoch"].strip() == "7"
    assert rows["brakes of hosts"].strip() == "off"
    rig.fleet.braked_hosts = frozenset({"gold"})
    assert "on: gold" in shell("lead")
    assert shell.json("lead")["braked_hosts"] == ["gold"]
    assert "the brake is on" in shell("host", "list")


def test_what_can_still_be_promised_is_shown_by_host_and_in_all(shell: "Shell") -> None:
    heading, *rows = shell("capacity").splitlines()
    assert heading.split()[:4] == ["host", "capacity", "promised", "free"]
    assert [row.split()[0] for row in rows] == ["gold", "silver", "all"]
    found = shell.json("capacity")
    assert found["capacity_pps"] == sum(host["capacity_pps"] for host in found["hosts"])


@pytest.mark.parametrize("name", ["a/../b", "..", "a/b", "."])
def test_what_is_no_name_is_refused_before_anything_is_asked(shell: "Shell", name: str) -> None:
    said = shell("contract", "set", "gold", name, "--guarantee", "1kpps", code=2)
    assert f"name: {name!r} is none (give a name of letters" in said


def test_the_audit_log_is_shown_the_latest_last(shell: "Shell") -> None:
    shell("contract", "set", "gold", "r2", "--guarantee", "1kpps")
    lines = shell("audit", "--limit", "2").splitlines()
    assert len(lines) == 3
    assert lines[-1].split()[-2:] == ["contract", "gold/r2"]
    assert [row["target"] for row in shell.json("audit", "--limit", "1")] == ["contract gold/r2"]


def test_hosts_are_a_table_for_people(shell: "Shell") -> None:
    heading, gold, silver = shell("host", "list").splitlines()
    assert heading.split()[:3] == ["host", "state", "routers"]
    assert gold.split()[:3] == ["gold", "ok", "2"]
    assert silver.split()[:2] == ["silver", "ok"]


def test_a_host_that_refuses_orders_is_shown_as_such(rig: Rig, shell: "Shell") -> None:
    live = rig.fleet.host("gold")
    rig.fleet.put(replace(live, refusals={"r1": "epoch: 7 is lower than 9", "r2": "no"}))
    row = shell("host", "list").splitlines()[1]
    assert row.split()[1] == "refuses"
    assert "2 orders are refused: r1: epoch: 7 is lower than 9" in row
    assert "2 orders are refused" in shell("host", "status", "gold")
    assert shell.json("host", "status", "gold")["refused"] == 2


def test_a_host_that_falls_silent_is_shown_as_gone(rig: Rig, shell: "Shell") -> None:
    rig.clock.sleep(Seconds(60.0))
    rows = shell("host", "list").splitlines()
    assert [row.split()[1] for row in rows[1:]] == ["gone", "gone"]
    assert shell.json("host", "status", "gold")["reachable"] is False
    assert "gone" in shell("host", "status", "gold")


def test_a_host_with_contracts_stays(shell: "Shell") -> None:
    assert "contract" in shell("host", "remove", "gold", code=1)


# --- contracts


def test_the_life_of_a_contract(shell: "Shell") -> None:
    shell("contract", "set", "gold", "r2", "--guarantee", "10kpps", "--measures", "warn,pause")
    made = shell.json("contract", "get", "gold", "r2")
    assert made["contract"]["guarantee_pps"] == 10e3
    assert made["contract"]["measures"] == ["warn", "pause"]
    shell(
        "contract", "set", "gold", "r2", "--ceiling", "30 kp/s", "--saved-burst", "500", "--dry-run"
    )
    changed = shell.json("contract", "get", "gold", "r2")["contract"]
    given = {"ceiling_pps": 30e3, "burst_packets": 500, "dry_run": True}
    assert changed == made["contract"] | given
    shell(
        "contract",
        "set",
        "gold",
        "r2",
        "--ceiling",
        "none",
        "--saved-burst",
        "0",
        "--measures",
        "none",
    )
    bare = shell.json("contract", "get", "gold", "r2")["contract"]
    assert (bare["ceiling_pps"], bare["measures"]) == (None, [])
    shell("contract", "remove", "gold", "r2")
    history = shell.json("contract", "history", "gold", "r2")
    assert [one["contract"] is None for one in history] == [True, False, False, False]
    assert "removed" in shell("contract", "history", "gold", "r2")


def test_a_burst_is_given_shown_and_taken_away(shell: "Shell") -> None:
    shell("contract", "set", "gold", "r2", "--guarantee", "10kpps", "--burst", "4000")
    assert shell.json("contract", "get", "gold", "r2")["contract"]["burst"] == 4e3
    shell("contract", "set", "gold", "r2", "--weight", "2")
    assert shell.json("contract", "list", "--host", "gold")[1]["contract"]["burst"] == 4e3
    for words in (("get", "gold", "r2"), ("list",), ("history", "gold", "r2")):
        assert "4000" in shell("contract", *words)
    shell("contract", "set", "gold", "r2", "--burst", "none")
    assert shell.json("contract", "get", "gold", "r2")["contract"]["burst"] is None
    assert "0.2 s" in shell("contract", "get", "gold", "r2")


@pytest.mark.parametrize(
    ("burst", "code", "words"),
    [
        ("nan", 2, "'nan' is no number of packets"),
        ("much", 2, "'much' is no number of packets"),
        ("0", 1, "a burst is at least 1 packet"),
        ("700000", 1, "give at most 600000"),
    ],
)
def test_a_burst_that_cannot_be_kept_is_refused(
    shell: "Shell", burst: str, code: int, words: str
) -> None:
    terms = ("contract", "set", "gold", "r2", "--guarantee", "10kpps", "--burst", burst)
    said = shell(*terms, code=code)
    assert "burst: " in said
    assert words in said


def test_contracts_are_listed_for_one_host_or_all(shell: "Shell") -> None:
    assert [c["host"] for c in shell.json("contract", "list")] == ["gold", "silver"]
    assert [c["host"] for c in shell.json("contract", "list", "--host", "gold")] == ["gold"]
    assert "20 kp/s" in shell("contract", "list")


def test_more_than_a_host_can_do_is_refused_and_says_what_is_left(shell: "Shell") -> None:
    said = shell("contract", "set", "gold", "r2", "--guarantee", "90kpps", code=1)
    assert said.startswith("policer: guarantee_pps: ")
    assert "promise at most 80000" in said


def test_a_check_changes_nothing(shell: "Shell") -> None:
    terms = ("gold", "r2", "--guarantee")
    said = shell("contract", "check", *terms, "90kpps", code=1)
    assert "promise at most 80000" in said
    assert "110 kp/s of 100 kp/s would be promised" in said
    assert shell.json("contract", "check", *terms, "80kpps")["admissible"] is True
    assert "no contract" in shell("contract", "get", "gold", "r2", code=1)


def test_a_contract_that_another_changed_meanwhile_is_not_overwritten(
    rig: Rig, shell: "Shell", monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Client.replace

    def late(self: Client, path: str, body: object, etag: str) -> Any:
        stored = rig.store.contracts.get("gold", "r1")
        rig.store.contracts.put("gold", "r1", stored.value, stored.version.number, "another")
        return replace(self, path, body, etag)

    monkeypatch.setattr(Client, "replace", late)
    said = shell("contract", "set", "gold", "r1", "--weight", "2", code=1)
    assert "version 2" in said
    assert rig.store.contracts.get("gold", "r1").value.weight == 1.0


# --- routers


def test_routers_are_listed_and_those_that_misbehave(shell: "Shell") -> None:
    assert [(r["host"], r["vr"]) for r in shell.json("router", "list")] == [
        ("gold", "r1"),
        ("gold", "r2"),
        ("silver", "r1"),
    ]
    (only,) = shell.json("router", "list", "--misbehaving")
    assert only["punishment"]["step"] == "lower"
    assert "lower" in shell("router", "list", "--host", "gold")


def test_a_router_is_shown_with_its_evidence(shell: "Shell") -> None:
    said = shell("router", "show", "gold", "r1")
    assert "excessive, excessive, neither, excessive, excessive" in said
    assert "22 kp/s" in said
    assert shell.json("router", "show", "gold", "r2")["contract"] is None
    assert "none" in shell("router", "show", "gold", "r2")


def test_a_router_that_is_held_in_bits_is_shown_so() -> None:
    report = {
        "throughput_pps": 1e4,
        "offered_pps": 2e4,
        "mode": "closed_loop",
        "finding": "none",
        "problem": "",
        "lease_remaining_s": None,
    }
    assert "held at" not in dict(_report_rows(report))  # nor from an older policer
    held = dict(_report_rows(report | {"setpoint_bps": 50e6}))["held at"]
    assert held == "50 Mb/s"


def test_a_router_is_pardoned_from_the_command_line(rig: Rig, shell: "Shell") -> None:
    assert "pardoned from lower" in shell("router", "pardon", "gold", "r1")
    (pardon,) = rig.inbox.take_all()
    assert (pardon.host, pardon.vr) == ("gold", "r1")
    assert pardon.actor.startswith("admin (")
    assert "no punishment" in shell("router", "pardon", "gold", "r2", code=1)


# --- what goes on


def test_events_are_shown_the_latest_last(rig: Rig, shell: "Shell") -> None:
    rig.note(7)
    rig.note(3, kind="punished", host="silver")
    words = [event["words"] for event in shell.json("events", "--limit", "4")]
    assert words == ["words 6", "words 0", "words 1", "words 2"]
    kinds = {event["kind"] for event in shell.json("events", "--kind", "punished")}
    assert kinds == {"punished"}
    assert len(shell("events", "--host", "gold").splitlines()) == 8


def test_more_events_than_a_page_holds_are_all_shown(rig: Rig, shell: "Shell") -> None:
    rig.note(1203)
    shown = shell.json("events", "--limit", "1203")
    assert [event["words"] for event in shown] == [f"words {i}" for i in range(1203)]


def test_events_are_followed_as_they_happen(
    rig: Rig, shell: "Shell", monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.note(2)
    newest = cli_watch.newest

    def then_three_happen(client: Client) -> str:
        """Let events happen between the look back and the stream: none of them may be lost."""
        last = newest(client)
        rig.note(3, kind="later")
        return last

    monkeypatch.setattr(cli_watch, "newest", then_three_happen)
    said = shell("events", "--follow", "--kind", "later", "--count", "3", "--json")
    words = [json.loads(line)["words"] for line in said.splitlines()]
    assert words == ["words 0", "words 1", "words 2"]


def test_events_of_one_router_are_shown_and_followed(
    rig: Rig, shell: "Shell", monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = cli_watch.newest

    def then_four_happen(client: Client) -> str:
        last = newest(client)
        rig.store.events.add([Event("gold", "warned", vr, vr) for vr in ("r2", "r1", "r2", "r1")])
        return last

    monkeypatch.setattr(cli_watch, "newest", then_four_happen)
    words = ("events", "--vr", "r1")
    said = shell(*words, "--follow", "--count", "2", "--json")
    assert [json.loads(line)["vr"] for line in said.splitlines()] == ["r1", "r1"]
    assert [event["vr"] for event in shell.json(*words)] == ["r1", "r1"]


def test_a_stream_that_ends_is_taken_up_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_watch, "RETRY_S", 0.02)
    with (
        opened(tmp_path, stream_tick_s=0.02, stream_life_s=0.01) as rig,
        serving(rig.app) as url,
        Client(url, rig.secrets["read"]) as client,
    ):
        stream = cli_watch.following(client, "0", {})
        for number in range(5):
            _note(rig, f"event {number}")
            assert next(stream)["words"] == f"event {number}"
        stream.close()


def _note(rig: Rig, words: str) -> None:
    rig.store.events.add([Event("gold", "engaged", words)])


def test_top_is_a_line_of_json_a_tick(shell: "Shell", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_watch, "EVERY_S", 0.0)
    lines = shell("top", "--json", "--ticks", "3", "--host", "gold").splitlines()
    assert [[router["vr"] for router in json.loads(line)] for line in lines] == [["r1", "r2"]] * 3


def test_top_shows_those_in_trouble_first(shell: "Shell", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_watch, "EVERY_S", 0.0)
    said = shell("top", "--ticks", "2", "--rows", "2")
    routers = [
        line.split()[:2] for line in said.splitlines() if line.startswith(("gold", "silver"))
    ]
    assert routers[:2] == [["gold", "r1"], ["gold", "r2"]]
    assert "and 1 more" in said


def test_a_guaranteed_router_that_starves_is_before_one_that_is_only_sent_more() -> None:
    def router(vr: str, finding: str, guarantee: float, offered: float) -> dict[str, Any]:
        return {
            "vr": vr,
            "report": {"finding": finding, "offered_pps": offered},
            "contract": {"guarantee_pps": guarantee},
            "punishment": None,
            "misbehaving": False,
            "refusal": "",
        }

    rows = [
        router("a", "none", 10e3, 9e3),
        router("b", "starved", 0.0, 8e3),
        router("c", "starved", 10e3, 1e3),
    ]
    assert [row["vr"] for row in cli_watch.in_trouble_first(rows)] == ["c", "a", "b"]


def test_a_router_shows_how_well_it_was_held(rig: Rig, shell: "Shell") -> None:
    sums = Kept(rig.clock.now(), Counted(), Counted(300, 20, 1.5))
    live = rig.fleet.host("gold")
    orders = {**live.orders, "r1": Order(2e4, burst=4e3)}
    rig.fleet.put(replace(live, kept={"r1": sums}, orders=orders))
    said = shell("router", "show", "gold", "r1")
    for words in ("over its promise", "300 packets since", "1.5 s since", "4000 packets"):
        assert words in said
    assert shell.json("router", "show", "gold", "r1")["kept"]["under_promise_packets"] == 20
    assert "in breach" not in shell("router", "show", "gold", "r2")


# --- what goes wrong


def test_every_answer_is_told_in_one_line(
    rig: Rig, shell: "Shell", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLICER_TOKEN", rig.secrets["read"])
    assert "scope admin" in shell("host", "add", "a", *_WAYS, "--capacity", "1kpps", code=1)
    monkeypatch.setenv("POLICER_TOKEN", "xtcp_unknown")
    said = shell("host", "list", code=1)
    assert said.count("\n") == 1
    assert "not known" in said


_WAYS = ("--requests", "ipc:///a", "--telemetry", "ipc:///b")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("host", "add", "a"), "--requests: missing"),
        (("host", "add", "a", *_WAYS), "--capacity: missing"),
        (("host", "add", "a", *_WAYS, "--capacity", "fast"), "--capacity"),
        (("host", "add", "a", *_WAYS, "--capacity", "1", "--model", "m"), "one of the two"),
        (("host", "add", "a", *_WAYS, "--model", "/nowhere.toml"), "/nowhere.toml"),
        (("host", "add", "a", *_WAYS, "--capacity", "1", "--key", "/nowhere"), "no public key"),
        (("host", "set", "gold"), "nothing is to be changed"),
        (("contract", "set", "a", "b", "--guarantee", "-1"), "--guarantee"),
        (("contract", "set", "a", "b", "--measures", "warn,shout"), "no measure 'shout'"),
        (("host", "list", "--url", "gopher://a"), "is no address"),
        (("host", "list", "--url", "http://[::1"), "--url"),
        (("host", "list", "--url", "http://policer.example:8420"), "unencrypted"),
        (("host", "list", "--token-file", "/nowhere"), "/nowhere"),
        (("explode",), "explode"),
        (("events", "--limit", "0"), "limit"),
    ],
)
def test_what_was_typed_wrong_is_exit_code_2(
    alone: "Shell", words: tuple[str, ...], said: str
) -> None:
    assert said in alone(*words, code=2)


def test_a_new_contract_needs_a_guarantee(shell: "Shell") -> None:
    said = shell("contract", "set", "gold", "new", "--weight", "2", code=2)
    assert "--guarantee: missing" in said


def test_no_policer_is_exit_code_3(alone: "Shell") -> None:
    said = alone("host", "list", code=3)
    assert "http://127.0.0.1:1" in said
    assert "Traceback" not in said


def test_no_token_is_no_request(alone: "Shell", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLICER_TOKEN")
    assert "POLICER_TOKEN" in alone("host", "list", code=2)
    monkeypatch.setenv("POLICER_TOKEN", "a\nb")
    assert "this is none" in alone("host", "list", code=2)


def test_a_token_comes_from_a_file_that_nobody_else_can_read(
    rig: Rig, shell: "Shell", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLICER_TOKEN")
    file = tmp_path / "token"
    file.write_text(rig.secrets["read"] + "\n")
    file.chmod(0o644)
    assert "chmod 600" in shell("host", "list", "--token-file", str(file), code=2)
    file.chmod(0o600)
    assert "gold" in shell("host", "list", "--token-file", str(file))


def test_the_version_is_the_package_s(alone: "Shell") -> None:
    assert alone("--version") == f"policer {__version__}\n"


def test_what_a_measure_may_be_is_in_the_help(alone: "Shell") -> None:
    said = " ".join(alone("contract", "set", "--help").split())
    assert ",".join(Step) in said.replace(" ", "") or all(step in said for step in Step)
    assert GOLD.name not in said
