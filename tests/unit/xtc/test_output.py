"""What people see."""

import msgspec
import pytest
from rich.console import Console

from common.output import counted, print_json, sparkline
from xtc.cli.status import print_status, status_view
from xtc.modes import Finding, Mode
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


def shown(*reports: Report, width: int = 200, history: int = 0) -> str:
    console = Console(width=width, highlight=False)
    histories = {report.vr: [1.0] * history for report in reports if history}
    with console.capture() as capture:
        console.print(status_view(reports, histories, None, width))
    return capture.get()


def test_a_table_shows_rates_error_and_cap() -> None:
    row = shown(HELD).splitlines()[1]
    assert row.split()[:2] == ["edge1", "19"]
    assert "-5.0%" in row
    assert "25%" in row
    assert "closed_loop" in row


def test_a_floor_that_does_not_back_a_setpoint_is_told_below_the_table() -> None:
    short = msgspec.structs.replace(HELD, floor_problem="its setpoint needs 60%")
    assert shown(short).splitlines()[-1].strip() == "edge1: CPU floor: its setpoint needs 60%"


IN_BITS = msgspec.structs.replace(
    HELD,
    setpoint_pps=None,
    setpoint_bps=50e6,
    throughput_bps=48e6,
    offered_pps=30e3,
    offered_bps=75.6e6,
    limit_pps=35.1e3,
)


def test_a_burst_is_shown_where_it_is_not_the_default() -> None:
    default = msgspec.structs.replace(HELD, burst=4e3)
    own, bits = default, msgspec.structs.replace(IN_BITS, burst=2e6)
    assert "burst" not in shown(IDLE, default, msgspec.structs.replace(IN_BITS, burst=10e6))
    heading, *rows = shown(msgspec.structs.replace(own, burst=500.0), bits).splitlines()
    at = heading.index("burst")
    assert [row[at : at + 5].strip() for row in rows] == ["500", "2Mb"]
    assert "-" in shown(IDLE, bits).splitlines()[1][at : at + 5]


def test_each_router_is_shown_in_the_unit_that_it_is_held_in() -> None:
    packets, bits = (row.split() for row in shown(HELD, IN_BITS).splitlines()[1:])
    assert packets[1:5] == ["19", "kp/s", "20", "kp/s"]
    assert bits[1:8] == ["48", "Mb/s", "50", "Mb/s", "-4.0%", "75.6", "Mb/s"]
    assert "35.1 kp/s" in shown(IN_BITS)


def test_bits_keep_their_unit_where_rates_are_written_short() -> None:
    troubled = msgspec.structs.replace(IN_BITS, problem="eth0: not there; and so on, and so on")
    row = shown(troubled, width=80).splitlines()[1].split()
    assert row[1:3] == ["48Mb/s", "50Mb/s"]


def test_a_router_under_observation_shows_the_cap_that_it_would_get() -> None:
    observed = msgspec.structs.replace(HELD, cap=None, observing=True, proposed_cap=0.062)
    assert "uncapped (6.2%)" in shown(observed)


LONG = "eth7: not there; the namespace or interface does not exist, and this goes on and on"
BUSY = msgspec.structs.replace(
    HELD,
    vr="nn-edge-router",
    offered_pps=1.23e6,
    limit_pps=35.1e3,
    epoch=17,
    sequence=123,
    finding=Finding.UNRESPONSIVE,
)


@pytest.mark.parametrize("history", [0, 30])
def test_eighty_columns_cut_and_wrap_nothing(history: int) -> None:
    troubled = msgspec.structs.replace(BUSY, vr="b", problem=LONG)
    heading, first, second, *below = shown(BUSY, troubled, width=80, history=history).splitlines()
    assert "…" not in f"{heading}{first}{second}"
    assert first.split()[0] == "nn-edge-router"
    assert "19k" in first.split()
    assert first.split()[-1] == second.split()[-1] == "unresponsive"
    assert " ".join(line.strip() for line in below) == f"b: {LONG}"


def test_a_table_that_fits_leaves_nothing_out() -> None:
    heading, row = shown(BUSY).splitlines()
    assert heading.split()[-4:] == ["limit", "epoch/seq", "mode", "finding"]
    assert "35.1 kp/s" in row
    assert "17/123" in row


def test_limit_and_epoch_take_no_room_where_there_are_none() -> None:
    heading = shown(HELD).splitlines()[0]
    assert heading.split()[-3:] == ["used", "mode", "finding"]


def test_a_pipe_gets_one_line_for_each_router(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_status((BUSY, msgspec.structs.replace(BUSY, problem=LONG)))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[2].rstrip().endswith(LONG)


@pytest.mark.parametrize(
    ("number", "words"), [(0, "no mistake"), (1, "1 mistake"), (2, "2 mistakes")]
)
def test_a_count_agrees_with_its_noun(number: int, words: str) -> None:
    assert counted(number, "mistake", none="no mistake") == words


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
