"""python -m zovn.simulate: what is typed is what is run, and mistakes are named."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from common.command import exit_code
from common.errors import ConfigError, XtcError
from zovn.cli.command import CODES
from zovn.cli.main import app as zovn
from zovn.simulate.cli import OPTIONS, simulate
from zovn.simulate.engine import VARIABLE, run
from zovn.simulate.errors import EngineError
from zovn.simulate.matrix import figure_12, run_all
from zovn.simulate.plot import plot_results
from zovn.simulate.scenario import (
    BOUNDS,
    Background,
    Buffers,
    Fabric,
    Flow,
    Queries,
    Scenario,
    Tcp,
)
from zovn.simulate.table import background_of, gain, rows_of, summary

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "zovn" / "core" / "simulate"
APP = typer.Typer()
APP.command()(simulate)

TINY = Scenario(
    fabric=Fabric(pods=1, chassis=2, servers=2, aggregations=1, cores=1),
    queries=Queries(count=2),
)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    subprocess.run(["make", "-s", "-C", FOLDER], check=True, timeout=60)


def invoked(*arguments: str) -> list[dict[str, Any]]:
    outcome = CliRunner().invoke(APP, [*arguments, "--json"], catch_exceptions=False)
    assert outcome.exit_code == 0
    found: list[dict[str, Any]] = json.loads(outcome.stdout)
    return found


def test_options_say_what_is_run() -> None:
    found = invoked("--queries", "1", "--mode", "ZZ", "--mode", "LL", "--tcp", "vegas")
    assert [(one["mode"], one["tcp"], one["queries"]) for one in found] == [
        ("LL", "vegas", 1),
        ("ZZ", "vegas", 1),
    ]
    assert found[1]["dropped"] == {}


def test_the_table_shows_each_mode_and_its_gain() -> None:
    outcome = CliRunner().invoke(APP, ["--queries", "1", "--request", "1000", "--reply", "1000"])
    assert outcome.exit_code == 0
    lines = outcome.stdout.splitlines()
    assert [line.split()[2] for line in lines[1:5]] == ["LL", "LZ", "ZL", "ZZ"]
    assert " 1.0 " in lines[1]


def test_results_that_differ_by_mode_are_a_row() -> None:
    wanted = [cell for cell in figure_12() if cell.tcp == "cubic" and cell.background != "heavy"]
    results = run_all(TINY, wanted, jobs=2)
    assert [len(row) for row in rows_of(results)] == [4, 4, 4]
    assert [background_of(row[0]) for row in rows_of(results)] == [
        "none",
        "light",
        "light, own class",
    ]
    lossy, *_ = rows_of(results)[0]
    assert gain(lossy, rows_of(results)[0]) == 1
    assert summary(results).row_count == len(results)


def test_a_gain_needs_the_lossy_network() -> None:
    result = run(replace(TINY, mode="ZZ"))
    assert gain(result, [result]) is None


def test_figure_12_has_all_combinations() -> None:
    cells = figure_12()
    assert len(set(cells)) == len(cells) == (1 + 2 + 2) * 3 * 4


def test_the_progress_of_several_runs_is_their_sum() -> None:
    seen: list[int] = []
    run_all(TINY, figure_12()[:3], jobs=2, progress=seen.append)
    assert seen[-1] == 300
    assert seen == sorted(seen)


def test_a_plot_is_a_file(tmp_path: Path) -> None:
    results = run_all(TINY, figure_12()[:4], jobs=2)
    plot_results(results, tmp_path / "it.svg")
    assert (tmp_path / "it.svg").read_text().startswith("<?xml")
    with pytest.raises(ConfigError, match="--plot"):
        plot_results(results, tmp_path / "missing" / "it.png")


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"fabric": Fabric(chassis=3, pods=2)}, "fabric.chassis"),
        ({"fabric": Fabric(vms=2)}, "fabric.vms"),
        ({"fabric": Fabric(link_bps=0)}, "fabric.link_bps"),
        ({"buffers": Buffers(port=9_000), "mode": "LZ"}, "buffers.port"),
        ({"buffers": Buffers(virtual_queue=True)}, "buffers.virtual_queue"),
        ({"tcp": Tcp(window=65)}, "tcp.window"),
        ({"tcp": Tcp(window=4.5)}, "tcp.window"),  # type: ignore[arg-type]
        ({"tcp": Tcp(algorithm="bbr")}, "tcp.algorithm"),  # type: ignore[arg-type]
        ({"queries": Queries(interval_s=float("nan"))}, "queries.interval_s"),
        ({"background": Background(load=-1)}, "background.load"),
        ({"mode": "XX"}, "mode"),
        ({"seed": -1}, "seed"),
        ({"classes": 3}, "classes"),
        ({"classes": 1, "background": Background(own_class=True)}, "classes"),
        ({"limit_s": 0}, "limit_s"),
        ({"flows": (Flow(source=(0, 0), destination=(0, 0), size=1),)}, "flows[0].destination"),
        ({"flows": (Flow(source=(4, 0), destination=(0, 0), size=1),)}, "flows[0].source"),
        ({"flows": (Flow(source=(0, 0), destination=(0, 3), size=1),)}, "flows[0].destination"),
        ({"flows": (Flow(source=(0, 0), destination=(0, 1), size=0),)}, "flows[0].size"),
    ],
)
def test_a_mistake_is_named(changed: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as raised:
        run(replace(TINY, **changed))
    assert raised.value.where == where
    assert raised.value.fix


@pytest.mark.parametrize(
    ("option", "value"),
    [("--mode", "LZL"), ("--tcp", "reno"), ("--background", "some"), ("--vm-rate", "fast")],
)
def test_a_mistyped_option_is_named(option: str, value: str) -> None:
    outcome = CliRunner().invoke(APP, [option, value])
    assert isinstance(outcome.exception, XtcError)
    assert str(outcome.exception).startswith(option)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--queries", "-1", "-1 (a whole number from 0 to 1e+06)"),
        ("--interval", "0s", "0.0 (seconds from 1e-09 to 3600)"),
        ("--queue", "1", "1 (a whole number from 5 to 1e+06)"),
        ("--buffer", "100", "100 bytes are too few to pause senders in time (at least "),
        ("--vm-rate", "10kb/s", "10000.0 (bits per second from 1e+06 to 1e+12)"),
        ("--uplinks", "65", "65 (a whole number from 1 to 64)"),
        ("--initial-window", "0", "0 (a whole number from 1 to 64)"),
        ("--limit", "2h", "7200.0 (seconds from 1e-09 to 3600)"),
    ],
)
def test_a_value_out_of_range_is_named_by_its_option(option: str, value: str, said: str) -> None:
    outcome = CliRunner().invoke(APP, [option, value])
    assert isinstance(outcome.exception, ConfigError)
    assert str(outcome.exception).startswith(f"{option}: {said}")


def test_a_negative_number_of_jobs_is_a_usage_error() -> None:
    outcome = CliRunner().invoke(APP, ["--queries", "1", "--jobs", "-1"])
    assert outcome.exit_code == 2
    assert "Invalid value for '--jobs'" in outcome.stderr


def test_every_field_that_an_option_sets_has_its_option() -> None:
    known = {option.opts[0] for option in typer.main.get_command(APP).params}
    assert set(OPTIONS.values()) <= known
    assert OPTIONS.keys() <= BOUNDS.keys()


def test_a_missing_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/zovn-simulate")
    with pytest.raises(EngineError, match=r"not built .*make -C zovn/core/simulate"):
        run(TINY)


def test_what_a_failing_engine_says_is_raised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (engine := tmp_path / "engine").write_text("#!/bin/sh\necho error: no memory >&2\nexit 1\n")
    engine.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(engine))
    with pytest.raises(EngineError, match="zovn-simulate: no memory"):
        run(TINY)


def test_the_reference_explains_every_option_with_its_default() -> None:
    page = (ROOT / "docs" / "reference" / "zovn-simulate.md").read_text()
    rows = dict(re.findall(r"^\| (`--.+?) \| (.*?) \|", page, re.MULTILINE))
    shown = {name.strip("` "): value for names, value in rows.items() for name in names.split(",")}
    options = {
        option.opts[0]: option.default
        for option in typer.main.get_command(APP).params
        if option.opts[0].startswith("--") and option.name != "install_completion"
    }
    assert {name for name in options if name not in shown} == {"--show-completion"}
    for name, default in options.items():
        if isinstance(default, str) or (isinstance(default, int) and default > 1):
            assert str(default) in shown[name].replace(",", "")


def test_it_is_a_command_of_zovn_with_its_exit_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = CliRunner().invoke(zovn, ["simulate", "--queries", "1", "--mode", "ZZ", "--json"])
    assert [one["mode"] for one in json.loads(outcome.stdout)] == ["ZZ"]
    monkeypatch.setenv(VARIABLE, "/no/engine")
    outcome = CliRunner().invoke(zovn, ["simulate", "--queries", "1"])
    assert isinstance(outcome.exception, EngineError)
    assert exit_code(outcome.exception, CODES) == 1
