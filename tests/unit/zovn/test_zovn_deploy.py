"""What is shipped for zovn: unit files, settings, alert rules, manual, build."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from documents_rig import check_command, check_manual, command_of, commands_shown
from maintainer_rig import Maintained
from typer.core import TyperGroup
from typer.main import get_command

from common.command import exit_code
from common.errors import ConfigError
from deploy.manpages import commands, configuration, settings
from zovn.cli.command import CODES
from zovn.cli.main import app
from zovn.errors import CoreError, ListenError
from zovn.switch.config import DEFAULT_CONTROL, checked, load_config
from zovn.switch.port_table import PortTable, socket_of

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
UNITS = {name: DEPLOY / "systemd" / f"zovn-{name}.service" for name in ("switch", "exporter")}
RULES = DEPLOY / "prometheus" / "zovn.yml"
SETTINGS = DEPLOY / "etc" / "zovn.toml"
DATE = "2026-11-21"
GUIDES = sorted((ROOT / "docs" / "howto").glob("zovn*.md"))
DOCUMENT = (ROOT / "docs" / "howto" / "zovn.md").read_text()

# --- units


def service(name: str) -> configparser.SectionProxy:
    unit = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNITS[name].read_text())
    return unit["Service"]


def test_the_switch_has_its_sockets_where_the_unit_lets_it_write() -> None:
    folder = f"/run/{service('switch')['RuntimeDirectory']}/"
    assert DEFAULT_CONTROL.startswith(folder)
    assert socket_of(PortTable(name="vm1")).startswith(folder)


def test_the_records_of_a_killed_switch_are_there_for_the_next() -> None:
    """systemd removes the directory before each restart otherwise (systemd.exec(5))."""
    assert service("switch")["RuntimeDirectoryPreserve"] == "yes"


def test_the_unit_waits_for_the_ports_and_watches_the_switch() -> None:
    unit = service("switch")
    assert (unit["Type"], unit["Restart"]) == ("notify", "on-failure")
    source = (ROOT / "zovn" / "core" / "forward" / "mailbox.c").read_text()
    (slices,) = re.findall(r"SLICES = (\d+), SLICE_NS = 100000000", source)
    # A forwarding thread that does not answer ends the program by itself after this time.
    assert int(unit["WatchdogSec"]) <= int(slices) / 10


@pytest.mark.parametrize("name", UNITS)
def test_the_units_call_commands_that_there_are(name: str) -> None:
    (line,) = re.findall(r"(?m)^ExecStart=/usr/bin/zovn (.+)$", UNITS[name].read_text())
    command = get_command(app)
    for word in line.split():
        assert isinstance(command, TyperGroup)
        command = command.commands[word]


@pytest.mark.parametrize(
    ("result", "released"),
    [("success", True), ("timeout", True), ("signal", False), ("watchdog", False)],
)
def test_interfaces_are_released_after_a_stop_and_kept_for_a_restart(
    result: str, released: bool
) -> None:
    words = shlex.split(service("switch")["ExecStopPost"].replace("$$", "$"))
    words[-1] = words[-1].replace("/usr/bin/zovn", "echo zovn")
    env = os.environ | {"SERVICE_RESULT": result}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == ("zovn switch release\n" if released else "")


def test_a_removal_releases_interfaces_of_a_switch_that_ended_before(tmp_path: Path) -> None:
    system, calls = Maintained(tmp_path), tmp_path / "calls"
    prerm = DEPLOY / "debian" / "zovn" / "prerm"
    system.program("zovn", f'echo "$@" >>{calls}; echo "h1: clean"')
    assert system.run(prerm, "upgrade") == ""
    assert not calls.exists()
    assert system.run(prerm, "remove") == ""
    assert calls.read_text() == "switch release\n"
    system.program("zovn", 'echo "h1: is in use"; exit 1')
    said = system.run(prerm, "remove")
    assert said.startswith("h1: is in use\n")
    assert "`zovn switch release INTERFACE`" in said


@pytest.mark.parametrize("name", UNITS)
def test_a_mistake_is_not_repeated_and_a_failure_is(name: str) -> None:
    final = int(service(name)["RestartPreventExitStatus"])
    assert final == exit_code(ConfigError("key", "wrong"), CODES)
    assert final != exit_code(CoreError("zovn-switch", "is not built"), CODES)
    assert final != exit_code(ListenError("127.0.0.1:9171", "in use"), CODES)


@pytest.mark.external
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize(("name", "at_most"), [("switch", 3.0), ("exporter", 2.0)])
def test_the_sandboxes_are_tight(name: str, at_most: float, tmp_path: Path) -> None:
    shutil.copy(UNITS[name], tmp_path)
    said = subprocess.run(
        [
            *("systemd-analyze", "security", "--offline=true", "--no-pager"),
            tmp_path / UNITS[name].name,
        ],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    ).stdout
    (score,) = re.findall(r"exposure level for zovn-[\w-]+\.service: ([\d.]+)", said)
    assert float(score) <= at_most


# --- settings


def test_the_starting_settings_have_no_ports() -> None:
    assert load_config(SETTINGS).table.port == ()


def test_what_the_starting_settings_suggest_is_right() -> None:
    lines = [line.removeprefix("# ") for line in SETTINGS.read_text().splitlines()]
    suggested = "\n".join(line for line in lines if re.match(r"\[|\w+ = ", line))
    table = tomllib.loads(suggested)["switch"]
    table["control_group"] = table["port"][0]["group"] = "root"  # theirs may not exist here
    config = checked(table)
    assert [port.name for port in config.table.port] == ["vm1"]
    assert set(config.table.dscp.values()) == {int(one) for one in config.table.classes}


# --- alerts

IT = 'instance="h"'
FIRES: tuple[tuple[str, dict[str, str]], ...] = (
    ("ZovnSwitchAway", {f"zovn_up{{{IT}}}": "0x120"}),
    (
        "ZovnLosslessClassDropped",
        {
            f'zovn_port_congestion_drops_total{{{IT}, port="vm1"}}': "0+1x120",
            f"zovn_lossy_classes{{{IT}}}": "0x120",
        },
    ),
    ("ZovnPortStopped", {f'zovn_port_fault{{{IT}, port="vm1", fault="head_twice"}}': "1x120"}),
    ("ZovnPortStalled", {f'zovn_port_stalled{{{IT}, port="vm1"}}': "1x120"}),
    ("ZovnPortOftenBlocked", {f'zovn_port_blocked_seconds_total{{{IT}, port="vm1"}}': "0+4x180"}),
    ("ZovnWireLost", {f'zovn_port_beyond_frames_total{{{IT}, port="fabric"}}': "0+1x120"}),
    ("ZovnNapsMissed", {f"zovn_missed_naps_total{{{IT}}}": "0+1x120"}),
)
"""Alerts, with series of one sample every 5 s that must set them off."""
SILENT: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "ZovnLosslessClassDropped",  # of a lossy class
        {
            f'zovn_port_congestion_drops_total{{{IT}, port="vm1"}}': "0+1x120",
            f"zovn_lossy_classes{{{IT}}}": "1x120",
        },
    ),
    ("ZovnPortStopped", {f'zovn_port_fault{{{IT}, port="web", fault="peer_gone"}}': "1x120"}),
    ("ZovnPortOftenBlocked", {f'zovn_port_blocked_seconds_total{{{IT}, port="vm1"}}': "0+1x180"}),
    ("ZovnWireLost", {f'zovn_port_beyond_frames_total{{{IT}, port="fabric"}}': "7x120"}),
    ("ZovnNapsMissed", {f"zovn_missed_naps_total{{{IT}}}": "5x120"}),
)


def fires(alert: str, series: dict[str, str], tmp_path: Path) -> bool:
    """Return whether an alert is set off, by promtool."""
    test = {
        "interval": "5s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": "10m", "alertname": alert, "exp_alerts": []}],
    }
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": [test]}))  # JSON is YAML
    done = subprocess.run(["promtool", "test", "rules", file], check=False, capture_output=True)
    return done.returncode != 0 and b"got:" in done.stdout + done.stderr


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_prometheus_understands_the_rules() -> None:
    subprocess.run(["promtool", "check", "rules", RULES], check=True, capture_output=True)


def test_every_alert_is_tried() -> None:
    assert [alert for alert, _ in FIRES] == re.findall(r"- alert: (\w+)", RULES.read_text())


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize(("alert", "series"), FIRES)
def test_an_alert_fires(alert: str, series: dict[str, str], tmp_path: Path) -> None:
    assert fires(alert, series, tmp_path)


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize(("alert", "series"), SILENT)
def test_what_is_as_it_should_be_sets_no_alert_off(
    alert: str, series: dict[str, str], tmp_path: Path
) -> None:
    assert not fires(alert, series, tmp_path)


# --- manual and guide


def test_every_command_is_in_the_manual_and_in_the_guide() -> None:
    page = commands.page(get_command(app), DATE, commands.ZOVN)
    _, *sections = re.split(r'(?m)^\.SS "', page)
    shown = {section.partition('"')[0].replace("\\", "") for section in sections}
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    assert shown == {" ".join(words) for words in leaves(("zovn",), root)}
    assert [words for words in shown if f"`{words}" not in DOCUMENT] == []
    check_manual(page)


def leaves(words: tuple[str, ...], command: object) -> list[tuple[str, ...]]:
    inner = getattr(command, "commands", {})
    below = [leaf for name, one in inner.items() for leaf in leaves((*words, name), one)]
    return below or [words]


def test_there_are_guides() -> None:
    names = {guide.name for guide in GUIDES}
    assert {f"zovn{one}.md" for one in ("", "-check", "-operation", "-veth", "-wire")} <= names


@pytest.mark.parametrize("line", commands_shown(GUIDES, "zovn"))
def test_commands_that_are_shown_exist(line: str) -> None:
    words = re.sub(r"\[|\]", "", line).replace(" FILE", "")
    check_command(command_of(app), words)


def test_every_key_is_in_the_manual_of_the_settings() -> None:
    page = settings.page(settings.ZOVN, DOCUMENT, DATE)
    tables = page.partition(".SH TABLES")[2].partition(".SH EXAMPLE")[0]
    keys = re.findall(r"(?m)^\.TP\n\\fB(\w+)\\fR$", tables)
    assert keys == [
        key for name in settings.ZOVN.tables for key in settings.keys(settings.ZOVN, name)
    ]
    assert {"class", "dscp", "limit_bytes", "control"} <= set(keys)
    check_manual(page)


def test_a_key_that_no_row_explains_has_no_manual() -> None:
    with pytest.raises(configuration.UndocumentedError, match=r"zovn\.md .* switch\.port\.trust"):
        settings.page(settings.ZOVN, DOCUMENT.replace("| `trust`", "| `trusts`"), DATE)


# --- build


def test_without_dpdk_the_package_is_not_built_and_says_why(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", DEPLOY / "debian" / "build-zovn.sh"],
        env=os.environ | {"PKG_CONFIG": str(tmp_path / "pkg-config")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "pkg-config is missing: apt install gcc make pkg-config libdpdk-dev" in done.stderr


def test_all_packages_are_built_after_what_is_compiled() -> None:
    command = ["make", "-n", "--no-print-directory", "-o", ".venv/.ready", "deb"]
    recipe = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = recipe.splitlines()
    assert lines.index("sh scripts/setup-zovn.sh") < lines.index("sh deploy/debian/build-zovn.sh")
