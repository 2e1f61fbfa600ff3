"""The documents of xco do not rot: settings, metrics, alerts and commands are the code's."""

import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from documents_rig import (
    BLOCK,
    check_command,
    check_every_command_is_in,
    command_of,
    commands_shown,
    rows_under,
)
from xco_statistics_rig import controller_names, coordinator_names, write_statistics

from xco.cli.lazy import load
from xco.cli.main import app
from xco.controller.config import ControllerTable, load_controller_config
from xco.controller.metrics import ControllerCollector
from xco.coordinator.config import CoordinatorTable, checked
from xco.coordinator.status import MODES, Metrics
from xco.ports.config import AgentTable, load_agent_config
from xco.ports.metrics import PortCollector
from xco.ports.port_tables import TABLES as READERS
from xco.ports.status import AgentStatus, PortStatus
from xco.topology.file import parse_topology

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
GUIDE = (DOCS / "howto" / "xco.md").read_text()
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])
SETTINGS, TOPOLOGY = "# /etc/xtc/xco.toml\n", "# /etc/xtc/topology.toml\n"
"""The first line of a block that is a whole file."""
TABLES: dict[str, type[msgspec.Struct]] = {
    "[controller]": ControllerTable,
    "[coordinator]": CoordinatorTable,
    "[port-agent]": AgentTable,
    **{f'[[port-agent.port]], reader = "{name}"': table for name, table in READERS.items()},
}
KINDS = {"counter": "_total", "gauge": ""}


def whole_files(first: str, pages: Iterable[Path] = PAGES) -> list[str]:
    found = [body for page in pages for _, body in BLOCK.findall(page.read_text())]
    return [body for body in found if body.startswith(first)]


def agent_status() -> AgentStatus:
    row = PortStatus(
        source="tor", target="h1", reader="linux", capacity_bps=1, problem="", read_ns=1
    )
    return AgentStatus(pid=1, updated_ns=1, heard=True, epoch=1, problem="", ports=(row,))


def metric_names(folder: Path) -> set[str]:
    """Return every metric that the two collectors make of what the loops publish."""
    path = folder / "controller.stats"
    write_statistics(path, controller_names(), {}, [{}])
    topology = folder / "topology.toml"
    topology.write_text(whole_files(TOPOLOGY)[0])
    table = tomllib.loads(whole_files(SETTINGS)[0])["coordinator"]
    config = checked(table | {"topology": str(topology), "runtime_dir": str(folder)})
    write_statistics(config.statistics, coordinator_names(), {})
    families = [*ControllerCollector(path, ("h1",)).collect(), *Metrics(config).collect()]
    families += PortCollector(agent_status).collect()
    return {family.name + KINDS[family.type] for family in families}


@pytest.mark.parametrize("name", TABLES)
def test_every_setting_is_explained_with_its_default(name: str) -> None:
    rows = rows_under(GUIDE, f"### `{name}`")
    fields = msgspec.structs.fields(TABLES[name])
    assert list(rows) == [field.name for field in fields]
    for field in fields:
        shown = rows[field.name][1]
        if field.default is msgspec.NODEFAULT:
            assert shown == "required", field.name
        elif field.default in {None, "", ()}:
            assert shown.startswith("none"), field.name
        elif isinstance(field.default, str):
            assert shown == f'`"{field.default}"`', field.name
        else:
            assert shown == f"`{str(field.default).lower()}`", field.name


@pytest.mark.parametrize("page", ["xco.md", "zovn-overlay.md"])
def test_settings_and_topologies_that_are_shown_can_be_used(page: str, tmp_path: Path) -> None:
    shown = [DOCS / "howto" / page]
    topologies, settings = whole_files(TOPOLOGY, shown), whole_files(SETTINGS, shown)
    assert topologies
    assert settings
    topology = tmp_path / "topology.toml"
    for text in topologies:
        parse_topology(text)
        topology.write_text(text)
    for text in settings:
        (tmp_path / "xco.toml").write_text(text)
        load_controller_config(tmp_path / "xco.toml")
        if "coordinator" in (tables := tomllib.loads(text)):
            checked(tables["coordinator"] | {"topology": str(topology)})


def test_all_settings_that_are_shown_are_of_these_pages() -> None:
    assert (len(whole_files(SETTINGS)), len(whole_files(TOPOLOGY))) == (3, 2)


def test_every_metric_is_explained(tmp_path: Path) -> None:
    explained = {
        name
        for heading in ("### Of the controller", "### Of a coordinator", "### Of a port agent")
        for name in rows_under(GUIDE, heading)
    }
    assert explained == metric_names(tmp_path)


def test_settings_of_port_agents_that_are_shown_can_be_used(tmp_path: Path) -> None:
    page = (DOCS / "howto" / "xco-ports.md").read_text()
    shown = [body for _, body in BLOCK.findall(page) if body.startswith("# in /etc/xtc/xco.toml")]
    assert len(shown) == 3
    topology = tmp_path / "topology.toml"
    topology.write_text(whole_files(TOPOLOGY)[0])
    for text in shown:
        file = tmp_path / "xco.toml"
        file.write_text(text.replace("/etc/xtc/topology.toml", str(topology)))
        assert len(load_agent_config(file).ports) == 1


def test_every_mode_is_explained() -> None:
    row = " ".join(rows_under(GUIDE, "### Of a coordinator")["xco_coordinator_mode"])
    assert {mode for mode in MODES if f"`{mode}`" not in row} == set()


def test_every_metric_that_is_named_exists(tmp_path: Path) -> None:
    known = metric_names(tmp_path) | {"xco_core"}  # the package of the compiled core
    for page in PAGES:
        named = set(re.findall(r"`(xco_[a-z_]+)", page.read_text()))
        assert named - known == set(), page.name


def test_every_alert_is_explained() -> None:
    rules = (ROOT / "deploy" / "prometheus" / "xco.yml").read_text()
    pages = dict(re.findall(r"- alert: (\w+)\n(?:.*\n)*?\s+runbook: docs/(\S+)", rules))
    rows = rows_under(GUIDE, "## Alerts")
    assert set(rows) == set(pages)
    for alert, page in pages.items():
        link = os.path.relpath(page, "howto")
        assert f"]({link})" in rows[alert][2], alert
        assert f"`{alert}`" in (DOCS / page).read_text(), alert
    named = {name for page in PAGES for name in re.findall(r"`(Xco[A-Z]\w+)`", page.read_text())}
    assert named - set(pages) == set()


@pytest.mark.parametrize("page", sorted((DOCS / "failure-modes").glob("xco-*.md")), ids=str)
def test_every_failure_mode_says_what_is_seen_done_and_proved(page: Path) -> None:
    text = page.read_text()
    for part in ("**You see**", "**You**", "**Proof:**"):
        assert text.count(part) == 1, part
    assert len(re.findall(r"`test_\w+`", text)) >= 3


@pytest.mark.parametrize("line", commands_shown(PAGES, "xco"))
def test_every_command_that_is_shown_exists(line: str) -> None:
    check_command(load(command_of(app)), line)


def test_every_command_is_in_the_guide() -> None:
    check_every_command_is_in(GUIDE, "xco", command_of(app))
