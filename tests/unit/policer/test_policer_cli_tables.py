"""The policer's tables fit into the terminal: names are whole, and spare columns go first."""

import io

import pytest
from rich.console import Console

from policer.cli.shared.tables import CONTRACT_HEADINGS, EVENT_HEADINGS, ROUTER_HEADINGS, fitted

SPARK = 20 * "█"
ROUTERS = [
    *[("sim1", "bronze", "30 kp/s", "90 kp/s", "30 kp/s", "300 kp/s", "30.5 kp/s", "9.06%")],
    *[("sim1", "gold", "60 kp/s", "-", "60 kp/s", "60 kp/s", "78.5 kp/s", "uncapped")],
]
ROUTERS = [(*row, "not_binding", "limit", SPARK) for row in ROUTERS]
BY = "me (cebed0c01bf3 from 127.0.0.1)"
CONTRACT = ("sim1", "gold", "60 kp/s", "-", "1", "0", "warn, lower, limit", "when harming")
EVENT = ("2026-11-23 13:01:59Z", "sim1", "gold", "guarantee_missed", "less than it could use", BY)


def printed(headings: tuple[str, ...], rows: list[tuple[str, ...]], width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(fitted(headings, rows, width), crop=False)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_routers_take_one_line_each(width: int) -> None:
    lines = printed((*ROUTER_HEADINGS, "history"), ROUTERS, width)
    assert len(lines) == 3
    assert max(map(len, lines)) <= width
    assert {"router", "guarantee", "throughput", "measure"} <= {*lines[0].split()}
    assert ("history" in lines[0]) is (width >= 120)


@pytest.mark.parametrize("width", [80, 100])
def test_a_contract_takes_one_line(width: int) -> None:
    row = (*CONTRACT, "1", "0.2 s", "bronze", "acme", "always", "1", BY)
    heading, line = printed(CONTRACT_HEADINGS, [row], width)
    assert heading.split()[:3] == ["host", "router", "guarantee"]
    assert "warn, lower, limit" in line


@pytest.mark.parametrize("width", [80, 100])
def test_prose_is_folded_and_names_are_not(width: int) -> None:
    lines = printed(EVENT_HEADINGS, [EVENT], width)
    assert lines[1].startswith("2026-11-23 13:01:59Z  sim1  gold    guarantee_missed  less than")
    assert max(map(len, lines)) <= width
    assert ("cebed0c01bf3" in " ".join(lines)) is (width == 100)


def test_nothing_is_left_out_where_there_is_room() -> None:
    heading, *_ = printed((*ROUTER_HEADINGS, "history"), ROUTERS, 10_000)
    assert heading.split() == [*(one.removeprefix(">") for one in ROUTER_HEADINGS), "history"]


def test_the_column_that_names_a_row_stays_whatever_it_is_called() -> None:
    heading, line = printed(("when", "cap", "what"), [("a" * 30, "b" * 30, "c")], 40)
    assert heading.split() == ["when", "what"]
    assert line.split() == ["a" * 30, "c"]


def test_a_table_without_rows_is_its_heading() -> None:
    assert len(printed(ROUTER_HEADINGS, [], 80)) == 1
