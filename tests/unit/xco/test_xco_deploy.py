"""What is shipped for xco: unit files, settings, topology, alert rules, manual, build."""

import configparser
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from documents_rig import check_manual
from typer.core import TyperGroup
from typer.main import get_command
from xco_statistics_rig import controller_names, coordinator_names

from common.command import exit_code
from deploy.manpages import commands, configuration, roff, settings
from xco.cli.command import CODES
from xco.cli.lazy import load
from xco.cli.main import app
from xco.controller.config import ControllerTable, load_controller_config
from xco.controller.metrics import GAUGES, NOT_METRICS
from xco.coordinator.config import CoordinatorTable, checked
from xco.coordinator.status import MODES
from xco.errors import ConfigError, ControllerError, GateError
from xco.ports.config import checked as checked_agent
from xco.topology.file import load_topology

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
NAMES = ("controller", "coordinator", "port-agent")
UNITS = {name: DEPLOY / "systemd" / f"xco-{name}.service" for name in NAMES}
RULES = DEPLOY / "prometheus" / "xco.yml"
SETTINGS = DEPLOY / "etc" / "xco.toml"
EXAMPLE = DEPLOY / "etc" / "topology-example.toml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DATE = "2026-11-21"
DOCUMENT = (ROOT / "docs" / "howto" / "xco.md").read_text()


# --- units


def service(name: str) -> configparser.SectionProxy:
    unit = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNITS[name].read_text())
    return unit["Service"]


def test_the_units_make_the_directories_that_are_used_and_share_them() -> None:
    for name in UNITS:
        unit = service(name)
        if name != "port-agent":  # it keeps nothing
            assert f"/var/lib/{unit['StateDirectory']}" == ControllerTable("t").lease
        assert f"/run/{unit['RuntimeDirectory']}" == ControllerTable("t").run_dir
        assert unit["RuntimeDirectoryPreserve"] == "yes"  # one's stop is not the other's loss
    table = CoordinatorTable(
        host="h", interface="eth0", topology="t", key_file="k", controllers=("10.0.0.1:7400",)
    )
    assert (table.state_dir, table.runtime_dir) == ("/var/lib/xco", "/run/xco")


@pytest.mark.parametrize("name", UNITS)
def test_the_units_call_commands_that_there_are(name: str) -> None:
    lines = re.findall(r"(?m)^Exec(?:Start|StopPost)=/usr/bin/xco (.+)$", UNITS[name].read_text())
    assert lines
    for line in lines:
        command = get_command(app)
        for word in line.split():
            assert isinstance(command, TyperGroup)
            command = command.commands[word]


def test_the_coordinator_may_load_programs_that_sort_frames() -> None:
    text = UNITS["coordinator"].read_text()
    assert "CAP_BPF" in service("coordinator")["CapabilityBoundingSet"].split()
    assert "bpf" in re.findall(r"(?m)^SystemCallFilter=(@.+)$", text)[0].split()


def test_whatever_ends_a_coordinator_its_interface_is_released() -> None:
    unit = service("coordinator")
    assert unit["ExecStopPost"] == "/usr/bin/xco coordinator release"
    assert unit["Restart"] == "on-failure"


@pytest.mark.parametrize("name", UNITS)
def test_a_mistake_in_the_settings_is_not_repeated_and_a_failure_is(name: str) -> None:
    final = int(service(name)["RestartPreventExitStatus"])
    assert final == exit_code(ConfigError("file", "key", "wrong"), CODES)
    assert final != exit_code(ControllerError("lease", "cannot be had"), CODES)
    assert final != exit_code(GateError("eth0", "gone"), CODES)


@pytest.mark.external
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize(
    ("name", "at_most"), [("controller", 2.5), ("coordinator", 3.0), ("port-agent", 2.0)]
)
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
    (score,) = re.findall(r"exposure level for xco-[\w-]+\.service: ([\d.]+)", said)
    assert float(score) <= at_most


# --- settings and topology


def test_the_starting_settings_set_nothing() -> None:
    assert tomllib.loads(SETTINGS.read_text()) == {}


def test_what_the_starting_settings_suggest_is_right(tmp_path: Path) -> None:
    lines = [line.removeprefix("# ") for line in SETTINGS.read_text().splitlines()]
    suggested = "\n".join(line for line in lines if re.match(r"\[|\w+ = ", line))
    (tmp_path / "xco.toml").write_text(suggested)
    config = load_controller_config(tmp_path / "xco.toml")
    topology = load_topology(EXAMPLE)
    assert {topology.host_index(name) for name in config.weights} == {0}
    table = tomllib.loads(suggested)["coordinator"]
    assert checked(table | {"topology": str(EXAMPLE)}).host == 0
    agent = tomllib.loads(suggested)["port-agent"] | {"topology": str(EXAMPLE)}
    assert str(checked_agent(agent, tmp_path / "xco.toml").ports[0]) == "tor1 -> h1"
    assert f"{config.listen[0]}:{config.listen[1]}" in table["controllers"]


# --- alerts


def known() -> set[str]:
    """Return every series that there is, by the names that the loops publish."""
    fields, columns = controller_names()
    ours = [name for name in fields if name not in NOT_METRICS]
    theirs, _ = coordinator_names()
    found = {"xco_up", *(f"xco_host_{name}" for name in columns)}
    found |= {f"xco_{name}" if name in GAUGES else f"xco_{name}_total" for name in ours}
    found |= {f"xco_coordinator_{name}" for name in theirs}
    found |= {"xco_port_agent_heard", "xco_port_readable", "xco_port_problem"}
    return found | {f"xco_coordinator_{name}_total" for name in theirs}


def test_alerts_name_metrics_and_modes_that_exist() -> None:
    text = RULES.read_text()
    expressions = re.findall(r"(?m)^\s+expr: (.+)$", text)
    assert len(expressions) == text.count("- alert:") > 5
    named = [re.findall(r"\bxco_[a-z_]+", expression) for expression in expressions]
    assert all(named)
    assert {name for names in named for name in names} - known() == set()
    assert set(re.findall(r'mode="(\w+)"', text)) <= set(MODES)


def test_alerts_lead_to_pages_that_exist() -> None:
    pages = re.findall(r"runbook: (\S+)", RULES.read_text())
    assert len(pages) == RULES.read_text().count("- alert:")
    assert [page for page in pages if not (ROOT / page).is_file()] == []


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_prometheus_understands_the_rules() -> None:
    subprocess.run(["promtool", "check", "rules", RULES], check=True, capture_output=True)


FIRES: tuple[tuple[str, dict[str, str]], ...] = (
    ("XcoNobodyLeads", {'xco_up{instance="a"}': "0x60", 'xco_up{instance="b"}': "0x60"}),
    ("XcoNobodyLeads", {}),
    ("XcoTwoLead", {'xco_up{instance="a"}': "1x60", 'xco_up{instance="b"}': "1x60"}),
    ("XcoHostsFallBack", {'xco_coordinator_mode{instance="h", mode="fallback"}': "1x60"}),
    (
        "XcoHostsFallBack",
        {
            'xco_coordinator_mode{instance="h", interface="e", mode="hygenicc"}': "1x60",
            'xco_coordinator_hellos_total{instance="h", interface="e"}': "1+1x60",
        },
    ),
    (
        "XcoNotJoined",
        {
            'xco_coordinator_joined{instance="h", interface="e"}': "0x120",
            'xco_coordinator_hellos_total{instance="h", interface="e"}': "1+1x120",
        },
    ),
    ("XcoPortUnreadable", {'xco_port_readable{source="a", target="b"}': "0x120"}),
    ("XcoPortAgentUnheard", {"xco_port_agent_heard": "0x120"}),
    (
        "XcoSlicesLate",
        {"xco_slices_late_total": "0+5x120", "xco_slices_started_total": "0+100x120"},
    ),
)
"""Alerts, with series of one sample every 5 s that must set them off."""


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize(("alert", "series"), FIRES)
def test_an_alert_fires(alert: str, series: dict[str, str], tmp_path: Path) -> None:
    silent = without_alert(alert, series, tmp_path)
    assert silent.returncode != 0
    assert b"got:" in silent.stdout + silent.stderr


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
@pytest.mark.parametrize("alert", ["XcoHostsFallBack", "XcoNotJoined"])
def test_a_host_without_any_controller_sets_no_alert_off(alert: str, tmp_path: Path) -> None:
    labels = 'instance="h", interface="e"'
    series = {
        f'xco_coordinator_mode{{{labels}, mode="hygenicc"}}': "1x120",
        f"xco_coordinator_joined{{{labels}}}": "0x120",
        f"xco_coordinator_hellos_total{{{labels}}}": "0x120",
    }
    assert without_alert(alert, series, tmp_path).returncode == 0


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_the_alert_for_an_unreadable_port_says_the_kind_of_its_problem(tmp_path: Path) -> None:
    port = 'instance="a", source="tor", target="h1"'
    series = {
        f"xco_port_readable{{{port}}}": "0x120",
        f'xco_port_problem{{{port}, kind="untrusted"}}': "1x120",
        'xco_port_problem{instance="a", source="tor", target="h2", kind="away"}': "1x120",
    }
    found = without_alert("XcoPortUnreadable", series, tmp_path)
    assert b"The kind of problem is untrusted;" in found.stdout + found.stderr


def without_alert(
    alert: str, series: dict[str, str], tmp_path: Path
) -> "subprocess.CompletedProcess[bytes]":
    """Let promtool check that an alert is silent."""
    test = {
        "interval": "5s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": "10m", "alertname": alert, "exp_alerts": []}],
    }
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": [test]}))  # JSON is YAML
    return subprocess.run(["promtool", "test", "rules", file], check=False, capture_output=True)


# --- manual


def manual() -> str:
    return commands.page(load(get_command(app)), DATE, commands.XCO)


def test_every_command_is_in_the_manual() -> None:
    _, *sections = re.split(r'(?m)^\.SS "', manual())
    shown = {section.partition('"')[0].replace("\\", "") for section in sections}
    root = load(get_command(app))
    assert shown == {
        " ".join(["xco", name, *inner])
        for name, command in root.commands.items()
        for inner in ([[child] for child in getattr(command, "commands", {})] or [[]])
    }
    assert roff.escaped("--strategy") in manual()  # of simulate, which is loaded late


def test_the_manual_is_free_of_warnings() -> None:
    check_manual(manual())


def test_every_key_is_in_the_manual_of_the_settings() -> None:
    page = settings.page(settings.XCO, DOCUMENT, DATE)
    shown = page.partition(".SH TABLES")[2].partition(".SH EXAMPLE")[0]
    keys = re.findall(r"(?m)^\.TP\n\\fB(\w+)\\fR$", shown)
    structures = settings.XCO.tables.values()
    assert keys == [key for structure in structures for key in structure.__struct_fields__]
    assert "[controller]\n\\&topology = " in page.partition(".SH EXAMPLE")[2]


def test_a_key_that_nobody_explains_has_no_manual() -> None:
    with pytest.raises(
        configuration.UndocumentedError, match=r"docs/howto/xco\.md .* coordinator\.hang"
    ):
        settings.page(settings.XCO, DOCUMENT.replace("| `hang`", "| `hung`"), DATE)


def test_a_document_without_an_example_has_no_manual() -> None:
    with pytest.raises(ValueError, match="no example"):
        settings.page(settings.XCO, DOCUMENT.replace("# /etc/xtc/xco.toml\n", ""), DATE)


def test_the_manual_of_the_settings_is_free_of_warnings() -> None:
    check_manual(settings.page(settings.XCO, DOCUMENT, DATE))


# --- build


def test_the_packages_hold_xco_and_not_what_is_compiled() -> None:
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]
    assert "xco" in targets["wheel"]["packages"]
    assert targets["wheel"]["exclude"] == ["/xco/core", "/zovn/core"]
    assert "/xco" in targets["sdist"]["include"]
    assert PROJECT["project"]["scripts"]["xco"] == "xco.cli.main:main"
    assert "xco" in PROJECT["tool"]["mypy"]["packages"]


def test_the_core_is_built_where_tests_packages_and_demo_need_it() -> None:
    def recipe(*targets: str) -> str:
        done = ("-o", ".venv/.demo", "-o", ".venv/.ready")
        command = ["make", "-n", "--no-print-directory", *done, *targets]
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert "sh scripts/setup-xco.sh" in recipe("test")
    package = recipe("deb").splitlines()
    assert package.index("sh scripts/setup-xco.sh") < package.index("sh deploy/debian/build-xco.sh")
    for name in ("xco", "gcc"):
        *built, demo = recipe(f"demo-{name}").splitlines()
        assert "sh scripts/setup-xco.sh" in built
        assert demo.endswith(f"-m benchmarks.demo.{name}")


def test_without_a_compiler_the_set_up_says_what_is_missing_and_ends_well(tmp_path: Path) -> None:
    for program in ("sh", "dirname", "id"):
        found = shutil.which(program)
        assert found
        (tmp_path / program).symlink_to(found)
    done = subprocess.run(
        [tmp_path / "sh", ROOT / "scripts" / "setup-xco.sh"],
        env={"PATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "no compiler, make, libsodium or libbpf; xco's compiled core is not built" in done.stderr


def test_without_clang_the_package_is_not_built_and_says_why(tmp_path: Path) -> None:
    """It was built without its classifier, and its hosts went back to u32 in silence."""
    done = subprocess.run(
        ["sh", ROOT / "deploy" / "debian" / "build-xco.sh"],
        env=os.environ | {"CLANG": str(tmp_path / "clang")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "clang is missing: apt install gcc make libsodium-dev libbpf-dev clang" in done.stderr


def test_the_loops_read_one_clock() -> None:
    """Two definitions of one name had different types."""
    sources = (ROOT / "xco" / "core").rglob("*.[ch]")
    assert sum(len(re.findall(r"xco_now_ns\(void\) \{", one.read_text())) for one in sources) == 1
