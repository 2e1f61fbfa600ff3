"""xco simulate --dumbbell: options are what is run, and mistakes are named."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from xco.errors import ConfigError, UnitError
from xco.simulate.cli import simulate

APP = typer.Typer()
APP.command()(simulate)
SHORT = ("--dumbbell", "--seconds", "0.06")


def invoked(*arguments: str) -> Any:
    outcome = CliRunner().invoke(APP, [*SHORT, *arguments, "--json"], catch_exceptions=False)
    assert outcome.exit_code == 0
    return json.loads(outcome.stdout)


def refused(error: type[Exception], *arguments: str) -> str:
    with pytest.raises(error) as caught:
        CliRunner().invoke(APP, arguments, catch_exceptions=False)
    return str(caught.value)


def test_options_say_what_is_run() -> None:
    options = ("--strategy", "gcc", "--law", "published", "--competitors", "dctcp")
    found = invoked(*options, "--senders", "8", "--edge", "100Mbps", "--delay", "1ms")
    assert (found["strategy"], found["law"], found["competitors"]) == ("gcc", "published", "dctcp")
    assert found["senders"] == 8
    assert found["ideal_mbps"] == pytest.approx(100 * 1460 / 1500 * (1 + 1 / 8) / 3)
    assert found["of_ideal"] == pytest.approx(found["tagged_mbps"] / found["ideal_mbps"])


def test_strategies_are_compared_and_without_any_control_and_none_are() -> None:
    assert [one["strategy"] for one in invoked()] == ["uncoordinated", "gcc"]
    assert [one["law"] for one in invoked("--strategy", "static", "--strategy", "gcc")] == [
        None,
        "fair",
    ]


def test_a_table_and_a_plot_are_for_people(tmp_path: Path) -> None:
    plot = tmp_path / "run.png"
    outcome = CliRunner().invoke(APP, [*SHORT, "--plot", str(plot)], catch_exceptions=False)
    assert "gcc, fair" in outcome.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--law", "fair"), "--law"),
        ((*SHORT, "--rows", "2"), "--rows"),
        ((*SHORT, "--strategy", "timeslice"), "strategy"),
        ((*SHORT, "--law", "unfair"), "law"),
        ((*SHORT, "--senders", "1"), "senders"),
        ((*SHORT, "--foreign", "-1"), "foreign"),
        ((*SHORT, "--plot", "/nowhere/run.png"), "--plot"),
    ],
)
def test_a_mistake_is_named(arguments: tuple[str, ...], named: str) -> None:
    assert named in refused(ConfigError, *arguments)


def test_a_quantity_that_cannot_be_read_is_named() -> None:
    assert "delay" in refused(UnitError, *SHORT, "--delay", "5 parsecs")
