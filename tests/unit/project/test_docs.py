"""The documents do not rot: examples parse, every key and metric is explained, names exist."""

import re
from functools import cache
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from documents_rig import BLOCK, check_command, command_of, commands_shown

from xtc.cli.main import app
from xtc.config.file import load_config, parse_config
from xtc.config.schema import (
    Config,
    DaemonSection,
    LimiterSection,
    LogSection,
    MetricsSection,
    RouterSection,
    ServerSection,
)
from xtc.daemon.metrics import Metrics
from xtc.modes import Finding, Mode
from xtc.spec import ActuatorSpec
from xtc.wire import HostDrops, Report, Telemetry

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"])
MAIN = ("# /etc/xtc/xtc.toml\n", "# /tmp/xtc-try/xtc.toml\n")
DROP_IN = "# /etc/xtc/conf.d/"
"""The first line of a block that is a whole configuration, and of one that is a drop-in."""


def blocks(page: Path, kind: str) -> list[str]:
    return [body for found, body in BLOCK.findall(page.read_text()) if found == kind]


def configurations() -> list[str]:
    toml = [body for page in PAGES for body in blocks(page, "toml")]
    return [body for body in toml if body.startswith(MAIN)]


def structures() -> list[type[msgspec.Struct]]:
    sections = [Config, DaemonSection, LogSection, MetricsSection, RouterSection, ServerSection]
    sections += [LimiterSection]
    return [*sections, *get_args(ActuatorSpec)]


def metric_names() -> set[str]:
    kinds = {"counter": "_total", "histogram": "", "gauge": ""}
    families = Metrics().registry.collect()
    return {family.name + kinds[family.type] for family in families}


def test_there_are_configurations_to_check() -> None:
    assert len(configurations()) >= 5


@pytest.mark.parametrize("text", configurations())
def test_every_configuration_that_is_shown_can_be_read(text: str) -> None:
    parse_config(text)


def test_the_drop_in_that_is_shown_is_laid_over_the_file(tmp_path: Path) -> None:
    toml = blocks(DOCS / "reference" / "configuration.md", "toml")
    (drop_in,) = (body for body in toml if body.startswith(DROP_IN))
    name = drop_in.splitlines()[0].removeprefix(DROP_IN)
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / name).write_text(drop_in)
    (tmp_path / "xtc.toml").write_text(next(body for body in toml if body.startswith(MAIN)))
    router = load_config(tmp_path / "xtc.toml").router["edge7"]
    assert (router.setpoint, router.safe_cap) == ("35kpps", "10%")
    assert router.interfaces == ("veth-edge7-*",)


def test_every_key_is_explained() -> None:
    text = (DOCS / "reference" / "configuration.md").read_text()
    keys = {key for structure in structures() for key in structure.__struct_fields__}
    tables = {"daemon", "server", "metrics", "log", "limiter", "router"}
    assert {key for key in keys - tables if f"| `{key}` |" not in text} == set()
    assert {table for table in tables if f"## `[{table}" not in text} == set()


def default_shown(key: str) -> str:
    text = (DOCS / "reference" / "configuration.md").read_text()
    rows = [line for line in text.splitlines() if f"| `{key}` |" in line]
    (shown,) = {row.split("|")[-3].strip(' `"') for row in rows}  # two tables may share a key
    return shown


@pytest.mark.parametrize("structure", structures()[1:], ids=lambda structure: structure.__name__)
def test_every_default_that_is_shown_is_the_codes(structure: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(structure):
        if isinstance(field.default, bool | str):
            assert default_shown(field.name) == str(field.default).lower()
        elif isinstance(field.default, int | float):
            assert float(default_shown(field.name)) == field.default


def test_every_field_that_json_shows_is_explained() -> None:
    text = (DOCS / "reference" / "output.md").read_text()
    fields = {f for shape in (Report, Telemetry, HostDrops) for f in shape.__struct_fields__}
    assert {field for field in fields if f"| `{field}` |" not in text} == set()


def test_every_metric_is_explained() -> None:
    text = (DOCS / "reference" / "metrics.md").read_text()
    assert {name for name in metric_names() if f"| `{name}` |" not in text} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_metric_that_is_named_exists(page: Path) -> None:
    named = set(re.findall(r"\bxtc_[a-z_]+", page.read_text()))
    known = metric_names() | {"xtc_tick_duration_seconds_bucket"}
    assert named - known == set()


@pytest.mark.parametrize(
    ("alert", "metric"),
    [
        ("XtcStarved", 'xtc_finding{finding="starved"}'),
        ("XtcNoFloor", "xtc_vr_floor_problem"),
        ("XtcBreaksPromise", "xtc_vr_breach_seconds_total"),
    ],
)
def test_a_promise_that_is_not_kept_or_not_backed_has_its_alert(alert: str, metric: str) -> None:
    rules = (ROOT / "deploy" / "prometheus" / "xtc.yml").read_text()
    found = re.search(rf"- alert: {alert}\n +expr: (.+)\n(?:.*\n)*? +runbook: docs/(\S+)", rules)
    assert found is not None
    assert metric in found[1]
    assert set(re.findall(r"\bxtc_[a-z_]+", found[1])) <= metric_names()
    assert (DOCS / found[2]).exists()
    shown = found[1].replace("|", "\\|")
    assert f"`{shown}`" in (DOCS / "reference" / "metrics.md").read_text()


@pytest.mark.parametrize("value", [*Mode, *Finding], ids=lambda value: value.value)
def test_every_mode_and_finding_is_explained(value: Mode | Finding) -> None:
    for page in ("howto/guide.md", "reference/metrics.md"):
        assert f"`{value.value}`" in (DOCS / page).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@cache
def known_tests() -> set[str]:
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    named = {name for path in tests for name in re.findall(r"def (test_\w+)", path.read_text())}
    return named | {path.stem for path in tests}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_is_named_exists(page: Path) -> None:
    assert set(re.findall(r"\btest_[a-z0-9_]+", page.read_text())) - known_tests() == set()


def test_every_failure_mode_is_in_the_index() -> None:
    pages = {page.name for page in (DOCS / "failure-modes").glob("*.md")} - {"README.md"}
    index = (DOCS / "failure-modes" / "README.md").read_text()
    assert {page for page in pages if f"]({page})" not in index} == set()


@pytest.mark.parametrize("line", commands_shown(PAGES, "xtc"))
def test_every_command_that_is_shown_exists(line: str) -> None:
    check_command(command_of(app), line)
