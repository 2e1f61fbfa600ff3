"""The policer's documents do not rot: settings, metrics, alerts and commands are the code's."""

import re
from datetime import UTC, datetime
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

from policer.cli.fleet_file import EXIT_CHANGES
from policer.cli.main import app
from policer.config.file import parse_settings
from policer.config.schema import SECTIONS, Section, Settings
from policer.daemon.metrics import Metrics
from policer.fleet.live import Fleet
from policer.fleetfile.document import MOST_CONTRACTS, MOST_HOSTS, MOST_NAMED, Entered
from policer.fleetfile.plan import draft, planned
from policer.fleetfile.reading import read_text
from policer.rest import RestSettings
from policer.rest.handlers.plans import MAX_BODY
from policer.rest.http.queries import LONGEST_QUERY, MOST_PARAMETERS
from policer.store.inventory.plans import MOST_EACH
from policer.store.service.idempotency import MOST_ANSWERS

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
GUIDE = (DOCS / "howto" / "policer.md").read_text()
PAGES = sorted(DOCS.rglob("*.md"))
MAIN = "# /etc/xtc/policer.toml\n"
KINDS = {"counter": "_total", "histogram": "", "gauge": ""}
TABLES = {"server", "store", "link", "lease", "policy", "engagement", "rules", "escalation", "log"}
TABLES |= {"history", "webhooks"}
TABLES |= {"oidc", "grants"}


def metric_names() -> set[str]:
    families = Metrics(Fleet(), lambda: 0.0).registry.collect()
    return {family.name + KINDS[family.type] for family in families}


def heading_of(section: type[Section]) -> str:
    name = section.__name__.removesuffix("Section").lower()
    if name == "grant":
        return "### `[[oidc.grants]]`"
    inner = {"engagement", "rules", "escalation"}
    return f"### `[{'policy.' if name in inner else ''}{name}]`"


@pytest.mark.parametrize("section", SECTIONS[1:], ids=lambda section: section.__name__)
def test_every_setting_is_explained_with_its_default(section: type[Section]) -> None:
    rows = rows_under(GUIDE, heading_of(section))
    fields = [f for f in msgspec.structs.fields(section) if f.name not in TABLES]
    assert list(rows) == [field.name for field in fields]
    for field in fields:
        shown = rows[field.name][2].strip('`"')
        if field.default in {None, msgspec.NODEFAULT, ()}:
            assert shown.startswith("none"), field.name
        elif isinstance(field.default, bool):
            assert shown == str(field.default).lower()
        elif isinstance(field.default, tuple):
            assert tuple(re.findall(r'"([^"]+)"', rows[field.name][2])) == field.default
        elif isinstance(field.default, str):
            assert shown == field.default
        else:
            assert float(shown) == field.default, field.name


def test_every_table_of_the_settings_is_explained() -> None:
    assert set(Settings.__struct_fields__) <= TABLES
    for section in SECTIONS[1:]:
        assert heading_of(section) + "\n" in GUIDE


def test_the_settings_that_are_shown_can_be_read() -> None:
    shown = [body for page in PAGES for _, body in BLOCK.findall(page.read_text())]
    ours = [body for body in shown if body.startswith(MAIN)]
    assert ours
    for text in ours:
        parse_settings(text)


def test_every_metric_of_the_policer_is_explained() -> None:
    assert set(rows_under(GUIDE, "## Metrics")) == metric_names()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_policer_metric_that_is_named_exists(page: Path) -> None:
    named = set(re.findall(r"`(policer_[a-z_]+)", page.read_text()))
    assert named - metric_names() == set()


def test_every_alert_is_explained() -> None:
    alerts = {
        alert
        for path in (ROOT / "deploy" / "prometheus").glob("*.yml")
        for alert in re.findall(r"- alert: (Policer\w+)", path.read_text())
    }
    explained = set(re.findall(r"`(Policer[A-Z]\w+)`", GUIDE.partition("## Alerts")[2]))
    assert explained == alerts
    named = {
        name for page in PAGES for name in re.findall(r"`(Policer[A-Z]\w+)`", page.read_text())
    }
    assert named - alerts == set()


def test_every_kind_of_problem_is_explained() -> None:
    text = (DOCS / "reference" / "policer-api.md").read_text()
    code = (ROOT / "policer" / "rest" / "http" / "problems.py").read_text()
    kinds = set(re.findall(r'(?:Verdict\([0-9]{3},|[0-9]{3}:)\s+"([a-z-]+)"', code))
    assert {"invalid", "stale", "malformed", "unforeseen"} <= kinds
    assert {kind for kind in kinds if f"`{kind}`" not in text} == set()


def test_the_limits_that_are_told_are_the_services() -> None:
    text = " ".join((DOCS / "reference" / "policer-api.md").read_text().split())
    rest = RestSettings()
    assert f"{rest.rate_per_s:g} times a second, and {rest.rate_burst:g} times at once" in text
    assert f"At most {rest.max_streams} clients stream at once" in text
    assert f"A comment comes every {rest.stream_heartbeat_s:g} s" in text
    assert rest.stream_life_s == 3600
    assert "A stream ends after an hour" in text
    assert f"a body above {rest.max_body // 1024} KiB ({MAX_BODY >> 20} MiB for a plan)" in text
    assert f"the newest {MOST_ANSWERS:,} answers of a token" in text
    assert f"at most {LONGEST_QUERY >> 10} KiB and {MOST_PARAMETERS} parameters" in text
    made = f"a plan made every {1 / rest.plans_per_s:g} s, and {rest.plans_burst:g} in a row"
    assert f"{made}, and its {MOST_EACH} latest plans are kept" in text


def test_the_limits_of_the_fleets_file_are_those_of_the_code() -> None:
    most = f"at most {MOST_HOSTS} hosts, {MOST_CONTRACTS:,} contracts, {MOST_NAMED:,} classes"
    assert most in GUIDE
    assert f"4 ({chr(96)}policer plan{chr(96)} alone)" in GUIDE
    assert f"0 nothing to do, {EXIT_CHANGES} there is something to do" in GUIDE


def test_the_fleets_file_that_is_shown_can_be_read_and_is_admissible() -> None:
    [shown] = [body for _, body in BLOCK.findall(GUIDE) if body.startswith("version = 1")]
    file = read_text(shown).file
    made = draft(file, Entered(), {}, keep=False)
    assert planned(file, made, {}, datetime(2026, 1, 1, tzinfo=UTC)).problems == ()
    assert len(made.edits) == 5


@pytest.mark.parametrize("line", commands_shown(PAGES, "policer"))
def test_every_policer_command_that_is_shown_exists(line: str) -> None:
    check_command(command_of(app), line)


def test_every_command_is_in_the_guide() -> None:
    check_every_command_is_in(GUIDE, "policer", command_of(app))
