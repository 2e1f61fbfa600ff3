"""What people see."""

import msgspec
import pytest
from rich.console import Console

from xtc.instance import Finding, Mode
from xtc.output import print_json, print_status, sparkline, status_table
from xtc.wire import HostDrops, Report

IDLE = Report(
    vr="edge1",
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
)
HELD = msgspec.structs.replace(
    IDLE, mode=Mode.CLOSED_LOOP, setpoint_pps=20e3, throughput_pps=19e3, cap=0.25, used=0.2
)


def shown(*reports: Report) -> str:
    console = Console(width=200, highlight=False)
    with console.capture() as capture:
        console.print(status_table(reports, {}))
    return capture.get()


def test_a_table_shows_rates_error_and_cap() -> None:
    row = shown(HELD).splitlines()[1]
    assert row.split()[:2] == ["edge1", "19"]
    assert "-5.0%" in row
    assert "25%" in row
    assert "closed_loop" in row


def test_an_uncapped_router_is_called_so() -> None:
    assert "uncapped" in shown(IDLE)


@pytest.mark.parametrize(
    "problem",
    ["eth[0] is gone", "[bold] words", "a [/] b", "[/red] c", "no 52:54:00:ab:12:34 any more"],
)
def test_a_problem_is_shown_as_it_is(problem: str) -> None:
    assert problem in shown(msgspec.structs.replace(IDLE, problem=problem))


def test_a_name_is_shown_as_it_is() -> None:
    assert "edge:ab:1" in shown(msgspec.structs.replace(IDLE, vr="edge:ab:1"))


@pytest.mark.parametrize("mode", list(Mode))
def test_every_mode_has_a_style(mode: Mode) -> None:
    assert mode.value in shown(msgspec.structs.replace(IDLE, mode=mode))


def test_json_is_the_wire_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    print_json((HELD,))
    text = capsys.readouterr().out
    assert msgspec.json.decode(text, type=tuple[Report, ...]) == (HELD,)


def test_status_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    print_status((HELD,))
    assert "edge1" in capsys.readouterr().out


def test_status_says_below_the_table_what_the_host_drops(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_status((HELD,), HostDrops({"eth[0]": 40.0}, 0.0))
    assert "before any router: 40 p/s at eth[0]" in capsys.readouterr().out.splitlines()[-1]
    print_status((HELD,), HostDrops({"eth0": 0.0}, 0.0))
    assert "drops" not in capsys.readouterr().out


def test_a_sparkline_rises_from_nothing_to_its_maximum() -> None:
    assert sparkline([0, 5, 10]) == "▁▅█"
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert sparkline([]) == ""
