"""What is shipped for the policer: unit file, settings, alert rules, dashboard, manual, lock."""

import configparser
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documents_rig import check_manual
from maintainer_rig import Maintained
from typer.main import get_command

from common.command import exit_code
from deploy.locked import added, closure, names_of, parse
from deploy.manpages import commands, configuration, roff, settings
from policer.cli.main import app
from policer.cli.shared.remote import POLICER_CODES
from policer.config.file import load_settings, parse_settings
from policer.config.schema import SECTIONS, STATE, LeaseSection, Settings
from policer.daemon.metrics import Metrics
from policer.daemon.serve import DEAD_AFTER_S
from policer.errors import ListenError, SettingsError, StoreGone
from policer.fleet.live import Fleet
from xtc.daemon.metrics import Metrics as DaemonMetrics

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "xtc-policer.service"
RULES = [DEPLOY / "prometheus" / f"{name}.yml" for name in ("policer", "xtc")]
BOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
STARTING = DEPLOY / "etc" / "policer.toml"
DATE = "2026-11-21"
DOCUMENT = (ROOT / "docs" / "howto" / "policer.md").read_text()
SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_count", "_sum"),
    "gauge": ("",),
}


# --- unit


def service() -> configparser.SectionProxy:
    unit = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT.read_text())
    return unit["Service"]


def test_the_unit_makes_the_directory_that_the_policer_uses() -> None:
    unit = service()
    assert f"/var/lib/{unit['StateDirectory']}" == STATE
    assert unit["StateDirectoryMode"] == "0700"
    assert unit["User"] != "root"
    assert unit["CapabilityBoundingSet"] == ""


def test_a_policer_that_hangs_is_back_before_its_leases_end() -> None:
    unit = service()
    watchdog, restart = float(unit["WatchdogSec"]), float(unit["RestartSec"])
    assert unit["Type"] == "notify"
    assert watchdog > 1.0  # it is fed once a second
    assert DEAD_AFTER_S + restart < LeaseSection().ttl_s
    assert watchdog + restart < LeaseSection().ttl_s


def test_a_database_or_address_that_is_late_is_waited_for_and_a_mistake_is_not_repeated() -> None:
    unit = service()
    final = int(unit["RestartPreventExitStatus"])
    assert unit["Restart"] == "always"
    assert "StartLimitIntervalSec=0\n" in UNIT.read_text()
    assert final == exit_code(SettingsError("server.listen", "no host:port"), POLICER_CODES)
    assert final != exit_code(ListenError("127.0.0.1:8420", "in use"), POLICER_CODES)
    assert final != exit_code(StoreGone("away"), POLICER_CODES)


def test_an_upgrade_says_that_the_database_has_to_be_upgraded(tmp_path: Path) -> None:
    system, calls = Maintained(tmp_path), tmp_path / "calls"
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    postinst = DEPLOY / "debian" / "policer" / "postinst"
    system.program("runuser", f'echo "$@" >>{calls}; echo "version 0002: 1 host"')
    assert system.run(postinst, "configure", "") == ""
    assert not calls.exists()
    assert system.run(postinst, "configure", "0.1.0") == ""
    assert calls.read_text() == "-u xtc-policer -- policer db check\n"
    system.program("runuser", 'echo "policer: the database is of version 0001" >&2; exit 1')
    said = system.run(postinst, "configure", "0.1.0")
    assert said.startswith("policer: the database is of version 0001\n")
    assert "runuser -u xtc-policer -- policer db upgrade" in said


@pytest.mark.external
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_policers_sandbox_is_tight(tmp_path: Path) -> None:
    shutil.copy(UNIT, tmp_path)
    said = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", tmp_path / UNIT.name],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    ).stdout
    (score,) = re.findall(r"exposure level for xtc-policer\.service: ([\d.]+)", said)
    assert float(score) <= 2.0


# --- settings


def test_the_starting_settings_set_nothing() -> None:
    assert load_settings(STARTING) == Settings()


def test_what_the_starting_settings_suggest_is_right() -> None:
    lines = [line.removeprefix("# ") for line in STARTING.read_text().splitlines()]
    suggested = parse_settings("\n".join(x for x in lines if re.match(r"\[|\w+ = ", x)))
    assert suggested.policy.dry_run
    assert suggested.server.tls_key


# --- rules and dashboard


def known() -> set[str]:
    """Return every series that policer and daemon have."""
    families = [
        *Metrics(Fleet(), lambda: 0.0).registry.collect(),
        *DaemonMetrics().registry.collect(),
    ]
    return {family.name + end for family in families for end in SUFFIXES[family.type]}


def named(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:policer|xtc)_[a-z0-9_]+", expression))


def expressions_of(board: dict[str, Any]) -> Iterator[str]:
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def test_there_are_rules_and_a_dashboard() -> None:
    assert RULES
    assert BOARDS


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_alerts_name_metrics_that_exist(path: Path) -> None:
    expressions = re.findall(r"(?m)^\s+expr: (.+)$", path.read_text())
    assert len(expressions) == path.read_text().count("- alert:")
    assert all(named(expression) for expression in expressions)
    assert {name for text in expressions for name in named(text)} - known() == set()


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_alerts_lead_to_pages_that_exist(path: Path) -> None:
    pages = re.findall(r"runbook: (\S+)", path.read_text())
    assert len(pages) == path.read_text().count("- alert:")
    assert [page for page in pages if not (ROOT / page).is_file()] == []


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_prometheus_understands_the_rules(path: Path) -> None:
    subprocess.run(["promtool", "check", "rules", path], check=True, capture_output=True)


FIRES: tuple[tuple[str, dict[str, str]], ...] = (
    ("PolicerNobodyLeads", {'policer_leading{instance="a"}': "0x60"}),
    ("PolicerNobodyLeads", {}),
    ("PolicerTwoLead", {f'policer_leading{{instance="{name}"}}': "1x60" for name in "ab"}),
    ("PolicerStuck", {'policer_heartbeat_age_seconds{instance="a"}': "0+5x60"}),
    (
        "PolicerGuaranteeMissed",
        {'policer_vr_guarantee_missed_seconds_total{host="h", vr="v"}': "0+2x60"},
    ),
    (
        "PolicerRoundsMissing",
        {
            'policer_leading{instance="a"}': "1x60",
            'policer_host_reachable{instance="a", host="h"}': "1x60",
            'policer_host_reachable{instance="a", host="i"}': "1x60",
            'policer_round_duration_seconds_count{instance="a"}': "0+3x60",
        },
    ),
    ("PolicerBrakeOn", {'policer_brake_on{instance="a"}': "1x60"}),
    (
        "PolicerBrakeOn",
        {
            'policer_brake_on{instance="a"}': "1x60",
            'policer_brake_mode{instance="a", mode="on"}': "0x60",
        },
    ),
    (
        "PolicerEpochRaised",
        {
            'policer_leading{instance="a"}': "1x60",
            'policer_epoch{instance="a"}': "5x30 9x29",
        },
    ),
    ("PolicerRoundFails", {'policer_rounds_failed_total{instance="a", host="h"}': "0x40 1x19"}),
)
"""Alerts, with series of one sample every 5 s that must set them off."""
HEALTHY = {
    'policer_rounds_failed_total{instance="a", host="h"}': "3x60",
    'policer_leading{instance="a"}': "1x60",
    'policer_leading{instance="b"}': "0x60",
    'policer_heartbeat_age_seconds{instance="a"}': "1x60",
    'policer_store_up{instance="a"}': "1x60",
    'policer_host_reachable{instance="a", host="h"}': "1x60",
    'policer_host_reachable{instance="b", host="h"}': "1x60",
    'policer_host_shared_ratio{instance="a", host="h"}': "1x60",
    'policer_host_overpromised{instance="a", host="h"}': "0x60",
    'policer_round_duration_seconds_count{instance="a"}': "0+5x60",
    'policer_round_duration_seconds_count{instance="b"}': "0x60",
    'policer_routers_punished{instance="a", step="warn"}': "2x60",
    'policer_routers_punished{instance="a", step="stop"}': "0x60",
    'policer_vr_guarantee_missed_seconds_total{host="h", vr="v"}': "7x60",
    'policer_settings_last_reload_successful{instance="a"}': "1x60",
    'policer_host_reachable{instance="a", host="i"}': "1x60",
    'policer_host_reachable{instance="a", host="j"}': "1x60",
    'policer_host_suspended{instance="a", host="h"}': "0x60",
    'policer_host_suspended{instance="a", host="i"}': "1x60",
    'policer_host_suspended{instance="a", host="j"}': "1x60",
    'policer_brake_on{instance="a"}': "1x60",
    'policer_brake_mode{instance="a", mode="on"}': "1x60",
    'policer_overrides{instance="a", kind="brake"}': "1x60",
    'policer_epoch{instance="a"}': "5x60",
    'policer_epoch{instance="b"}': "4x30 5x29",
}


def fired(series: dict[str, str], tmp_path: Path, component: str = "policer") -> set[str]:
    """Return the alerts that promtool sees after five minutes of these series."""
    rules = DEPLOY / "prometheus" / f"{component}.yml"
    names = re.findall(r"- alert: (\w+)", rules.read_text())
    test = {
        "interval": "5s",
        "input_series": [{"series": s, "values": v} for s, v in series.items()],
        "alert_rule_test": [
            {"eval_time": "5m", "alertname": name, "exp_alerts": []} for name in names
        ],
    }
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [str(rules)], "tests": [test]}))
    ended = subprocess.run(
        ["promtool", "test", "rules", file], check=False, capture_output=True, text=True
    )
    said = ended.stdout + ended.stderr
    found = set(re.findall(r"alertname: (\w+), time: 5m", said))
    assert (ended.returncode != 0) == bool(found), said
    assert said.count("got:[") == len(found), said
    return found


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize(("alert", "series"), FIRES)
def test_an_alert_fires(alert: str, series: dict[str, str], tmp_path: Path) -> None:
    assert alert in fired(series, tmp_path)


XTC_FIRES = [
    ("XtcUnknownKey", {'xtc_keys_refused_total{instance="a"}': "0x30 3x30"}),
    (
        "XtcNotListening",
        {'xtc_listening{instance="a", address="tcp://10.0.0.7:7077"}': "0x60"},
    ),
    ("XtcBug", {'xtc_unexpected_errors_total{instance="a", where="step"}': "0x30 1x30"}),
]


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize(("alert", "series"), XTC_FIRES)
def test_an_alert_of_the_daemon_fires(alert: str, series: dict[str, str], tmp_path: Path) -> None:
    assert fired(series, tmp_path, "xtc") == {alert}


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_a_healthy_fleet_alerts_nobody(tmp_path: Path) -> None:
    assert fired(HEALTHY, tmp_path) == set()


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.name)
def test_the_dashboard_names_metrics_that_exist(path: Path) -> None:
    expressions = list(expressions_of(json.loads(path.read_text())))
    assert len(expressions) > 10
    assert all(named(expression) for expression in expressions)
    assert {name for text in expressions for name in named(text)} - known() == set()


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.name)
def test_prometheus_understands_the_dashboard(path: Path, tmp_path: Path) -> None:
    expressions = [
        text
        for text in expressions_of(json.loads(path.read_text()))
        if not text.startswith("label_values")
    ]
    rules = [
        {"record": f"board:{number}", "expr": re.sub(r"\$\w+", "x", text)}
        for number, text in enumerate(expressions)
    ]
    file = tmp_path / "board.yml"
    file.write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}))  # JSON is YAML
    done = subprocess.run(
        ["promtool", "check", "rules", file], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.name)
def test_panels_do_not_lie_on_each_other(path: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(path.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["description"]


# --- manual and lock


def leaves(command: Any, words: tuple[str, ...] = ("policer",)) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    for name, child in children.items():
        yield from leaves(child, (*words, name))
    if not children:
        yield " ".join(words), command


def manual() -> str:
    return commands.page(get_command(app), DATE, commands.POLICER)


def test_every_command_of_the_policer_is_in_its_manual() -> None:
    _, *sections = re.split(r'(?m)^\.SS "', manual())
    shown = {section.partition('"')[0].replace("\\", ""): section for section in sections}
    found = dict(leaves(get_command(app)))
    assert set(shown) == set(found)
    for words, command in found.items():
        for option in (each for parameter in command.params for each in parameter.opts):
            assert roff.escaped(option).upper() in shown[words].upper(), (words, option)


def test_the_policers_manual_is_free_of_warnings() -> None:
    check_manual(manual())


def test_every_key_is_in_the_manual_of_the_policers_settings() -> None:
    page = settings.page(settings.POLICER, DOCUMENT, DATE)
    shown = page.partition(".SH TABLES")[2].partition(".SH EXAMPLE")[0]
    keys = re.findall(r"(?m)^\.TP\n\\fB(\w+)\\fR$", shown)
    structures = settings.POLICER.tables.values()
    assert {*structures, Settings} == set(SECTIONS)
    fields = [key for structure in structures for key in structure.__struct_fields__]
    tables = {"grants", "engagement", "rules", "escalation"}
    assert keys == [key for key in fields if key not in tables]


def test_a_key_of_the_policer_that_nobody_explains_has_no_manual() -> None:
    with pytest.raises(
        configuration.UndocumentedError, match=r"docs/howto/policer\.md .* lease\.ttl_s"
    ):
        settings.page(settings.POLICER, DOCUMENT.replace("| `ttl_s`", "| `ttl`"), DATE)


def test_the_manual_of_the_policers_settings_is_free_of_warnings() -> None:
    check_manual(settings.page(settings.POLICER, DOCUMENT, DATE))


LOCK = (
    "a==1 \\\n    --hash=sha256:00\n    # via xtc (pyproject.toml)\n"
    "b==1 \\\n    --hash=sha256:01\n    # via\n    #   a\n    #   c\n"
    "c==1 \\\n    --hash=sha256:02\n    # via xtc (pyproject.toml:dev)\n"
    "d==1 \\\n    --hash=sha256:03\n    # via c\n"
    "e==1 \\\n    --hash=sha256:04\n    # via xtc (pyproject.toml:dev)\n"
)


def test_an_extra_adds_what_the_daemon_lacks() -> None:
    assert [one.name for one in added(parse(LOCK), {"c"})] == ["c", "d"]


def test_an_extra_that_is_not_locked_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the lock file: f"):
        added(parse(LOCK), {"c", "f"})


def test_the_policers_package_holds_what_it_needs_and_no_tools() -> None:
    locked = list(parse((ROOT / "requirements.lock").read_text()))
    extras = ("policer", "postgresql", "oidc")
    wanted = {name for extra in extras for name in names_of(extra, ROOT / "pyproject.toml")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert len(wanted) == sum(len(project["optional-dependencies"][extra]) for extra in extras)
    held = {one.name for one in added(locked, wanted)}
    assert wanted <= held
    assert held.isdisjoint({one.name for one in closure(locked)})
    assert {"cryptography", "cffi"} <= held  # cffi is not the daemon's, which runs on CPython
    assert held.isdisjoint({"pytest", "mypy", "ruff", "hypothesis", "schemathesis", "playwright"})
