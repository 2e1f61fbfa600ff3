"""No name that a tenant chose steers the terminal of who looks."""

import json

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from common.command import report_errors
from common.errors import ConfigError
from common.logs import set_up_logging
from common.printable import printable, printable_lines
from policer.cli.shared.tables import show as show_table
from xtc.cli import discover as cli_discover
from xtc.cli.main import app
from xtc.cli.status import print_status
from xtc.config import check as configcheck
from xtc.config import discover as localrouters
from xtc.config.check import Checked, LimitWay
from xtc.config.discover import Local, LocalRouter
from xtc.config.file import parse_config
from xtc.errors import Refused
from xtc.kernel.peer import readable
from xtc.libvirt.discover import Candidate, Host
from xtc.modes import Finding, Mode
from xtc.wire import HostDrops, Report

EVIL = "a\x1b[2J\x9bm\u202eb\x7f"
"""Clears the screen, begins a sequence in one byte, turns the direction of writing, deletes."""
HARMLESS = r"a\u001b[2J\u009bm\u202eb\u007f"


def is_harmless(text: str) -> bool:
    return printable_lines(text) == text and HARMLESS in text


@given(text=st.text())
def test_what_is_printed_is_printable(text: str) -> None:
    assert printable(text).isprintable()


@given(text=st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0xFFFF)))
def test_text_that_is_toml_or_json_stays_what_it_is(text: str) -> None:
    raw = printable(msgspec.json.encode(text).decode())
    assert msgspec.json.decode(raw) == text


def test_printable_text_is_shown_as_it_is() -> None:
    assert printable("über [bold]édge[/] \\x1b") == "über [bold]édge[/] \\x1b"


def test_a_status_table_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(
        vr="edge",
        active=False,
        mode=Mode.RELEASED,
        finding=Finding.NONE,
        setpoint_pps=None,
        throughput_pps=None,
        offered_pps=None,
        cap=None,
        used=None,
        binding=None,
        lease_remaining_s=None,
        sample_age_s=None,
        interfaces=(),
        problem=f"{EVIL}: vanished",
    )
    print_status([report])
    assert is_harmless(capsys.readouterr().out)
    print_status([report], HostDrops({EVIL: 9.0}, 0.0))
    assert is_harmless(capsys.readouterr().out)


def test_a_table_of_the_policer_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["finding"], [[EVIL]])
    assert is_harmless(capsys.readouterr().out)


ROUTER = LocalRouter(
    kind="netns",
    name="edge",
    interfaces=(EVIL,),
    ends=(EVIL,),
    forwards=True,
    actuator="deadline",
    reasons=(f"of {EVIL}",),
    configuration=(
        '[router.edge]\nactuator = { kind = "simulated", plant = "edge" }\n'
        f"interfaces = [{msgspec.json.encode(EVIL).decode()}]\n"
    ),
)
DOMAIN = Candidate(
    domain=EVIL,
    uuid="6695eb01-f6a4-8304-79aa-97f2502e193f",
    uri="xen:///system",
    driver="Xen",
    running=True,
    vcpus=1,
    interfaces=(EVIL,),
    cap=None,
    marked=False,
    controllable=True,
    reasons=(EVIL,),
)


@pytest.fixture
def discovered(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host("xen:///system", EVIL, (DOMAIN,))
    monkeypatch.setattr(cli_discover, "look", lambda *_: host)
    monkeypatch.setattr(localrouters, "look_around", lambda: Local((ROUTER,)))


@pytest.mark.usefixtures("discovered")
@pytest.mark.parametrize("columns", ["500", "60"])
def test_discover_is_harmless(columns: str) -> None:
    result = CliRunner(env={"COLUMNS": columns}).invoke(app, ["discover"])
    assert printable_lines(result.stdout) == result.stdout
    assert is_harmless(result.stderr)


@pytest.mark.usefixtures("discovered")
def test_what_discover_proposes_is_harmless_and_names_the_same_interface() -> None:
    result = CliRunner().invoke(app, ["discover", "--toml"])
    assert is_harmless(result.stdout)
    assert parse_config(result.stdout.strip()).router["edge"].interfaces == (EVIL,)


@pytest.mark.usefixtures("discovered")
def test_json_stays_json() -> None:
    result = CliRunner().invoke(app, ["discover", "--json"])
    assert EVIL in json.loads(result.stdout)[-1]["routers"][0]["ends"]


def test_a_check_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = LimitWay(router="edge", interface=EVIL, way="tbf", reason=EVIL)
    told = Checked(files=("x.toml",), routers=("edge",), mistakes=(), warnings=(), limits=(limit,))
    mistake = ConfigError("router.edge", f"{EVIL} is contested")
    monkeypatch.setattr(configcheck, "check_file", lambda _: (told, (mistake,), (mistake,)))
    result = CliRunner().invoke(app, ["config", "check"])
    assert is_harmless(result.stdout)
    assert is_harmless(result.stderr)


def test_an_error_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), report_errors("xtc"):
        raise Refused("not_lifted", "vr", EVIL)
    assert is_harmless(capsys.readouterr().err)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_log_is_harmless(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    set_up_logging(json=as_json, level="info")
    structlog.get_logger().warning("router", problem=EVIL)
    text = capsys.readouterr().err
    assert is_harmless(text)
    if as_json:
        assert json.loads(text)["problem"] == EVIL


def test_a_name_that_is_no_text_is_shown_as_the_meter_shows_it() -> None:
    assert readable(b"a\xff\xc2\x9b") == readable("a\udcff\x9b") == "a\\xff\x9b"
