"""xtc simulate as an operator meets it: options, JSON, and exit codes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from common.errors import UnitError
from xtc.cli.main import app, main
from xtc.cli.simulate import Disturbance, parse_disturbance
from xtc.control.law import HEADROOM

CURVE_ONLY = """
schema = 1
[host]
name = "mine"
[curve]
points = [[10, 10000], [50, 50000], [100, 80000]]
"""


def _json(*options: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["simulate", "--json", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def _exit_code(monkeypatch: pytest.MonkeyPatch, *options: str) -> int | str | None:
    """Return what the installed command would exit with; only main() maps errors to codes."""
    monkeypatch.setattr(sys, "argv", ["xtc", "simulate", *options])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code


def test_json_has_summary_and_every_second() -> None:
    document = _json("--setpoint", "20kpps", "--duration", "30s", "--no-shield")
    assert (document["model"], document["law"]) == ("paper", "default")
    summary = document["summary"]
    assert summary["setpoint_pps"] == 20e3
    assert summary["settling_samples"] <= 3
    assert summary["mean_error"] < 0.01
    assert summary["relative_rmse"] < 0.01
    assert summary["mean_throughput_pps"] == pytest.approx(20e3, rel=0.01)
    assert [sample["t"] for sample in document["samples"]] == list(range(30))
    kept = {"over_promise_packets", "under_promise_packets", "breach_seconds"}
    shown = {"t", "throughput_pps", "cap", "next_cap", "reason", "offered_pps", *kept}
    assert set(document["samples"][0]) == shown
    assert kept <= set(summary)
    assert document["samples"][0]["throughput_pps"] == pytest.approx(3200)


def test_the_summary_is_that_of_the_printed_samples() -> None:
    document = _json("--setpoint", "50kpps", "--noise", "5%", "--seed", "3")
    summary = document["summary"]
    steady = [s["throughput_pps"] for s in document["samples"]][summary["steady_from"] :]
    mean = sum(steady) / len(steady)
    assert summary["mean_throughput_pps"] == pytest.approx(mean)
    rmse = (sum((value - mean) ** 2 for value in steady) / len(steady)) ** 0.5
    assert summary["relative_rmse"] == pytest.approx(rmse / mean)


@pytest.mark.parametrize("law", ["pi", "dead-beat", "dead-beat-min3"])
def test_the_published_laws_do_not_hold_5_kpps_where_the_default_one_does(law: str) -> None:
    alone = ("--setpoint", "5kpps", "--no-shield")
    assert _json(*alone, "--law", law)["summary"]["settling_samples"] is None
    assert _json(*alone)["summary"]["settling_samples"] <= 3


def test_a_shield_keeps_a_law_that_holds_nothing_below_its_setpoint_and_burst() -> None:
    """Dead-beat stays at cap 3, which is 9.6 kp/s."""
    options = ("--setpoint", "5kpps", "--law", "dead-beat-min3")
    alone = _json(*options, "--no-shield")["summary"]
    assert alone["over_promise_packets"] == pytest.approx(60 * (9600 - 5000), rel=0.1)
    assert alone["breach_seconds"] > 50
    shielded = _json(*options)["summary"]
    assert shielded["over_promise_packets"] < 0.05 * alone["over_promise_packets"]


@pytest.mark.parametrize("cycle", ["500ms", "3.1s", "5.3s"])
def test_a_load_faster_than_the_period_is_played_as_it_is(cycle: str) -> None:
    options = ("--setpoint", "20kpps", "--offered", "60kpps", "--load", f"on-off:{cycle}")
    document = _json(*options, "--start-cap", "7%", "--duration", "62s", "--cap-step", "0")
    offered = [sample["offered_pps"] for sample in document["samples"]]
    assert sum(offered) == pytest.approx(62 * 30e3, rel=0.05)
    assert max(offered) <= 60e3 + 1e-6
    if cycle == "500ms":
        assert offered == pytest.approx([30e3] * 62)
        # 0.25 s on: 5,000 packets and what the router's queue keeps are all that it can forward.
        assert document["summary"]["mean_throughput_pps"] == pytest.approx(13e3, rel=0.1)
    assert document["summary"]["over_promise_packets"] < 200
    assert document["summary"]["under_promise_packets"] < 0.01 * 62 * 20e3


def test_the_burst_is_what_the_promise_is_judged_by() -> None:
    options = ("--setpoint", "20kpps", "--noise", "5%", "--seed", "2", "--start-cap", "6%")
    small = _json(*options, "--burst", "100")["summary"]
    large = _json(*options, "--burst", "10s")["summary"]
    assert small["under_promise_packets"] > 1000
    assert (large["under_promise_packets"], large["over_promise_packets"]) == (0, 0)


@pytest.mark.parametrize("period", ["100ms", "500ms", "2s", "10s"])
def test_a_period_of_its_own_has_as_many_samples(period: str) -> None:
    document = _json("--setpoint", "20kpps", "--period", period, "--duration", "60s")
    assert len(document["samples"]) == round(
        60 / {"100ms": 0.1, "500ms": 0.5, "2s": 2, "10s": 10}[period]
    )
    assert document["samples"][-1]["throughput_pps"] == pytest.approx(20e3, rel=0.03)


def test_gains_that_were_designed_for_another_period_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--setpoint", "20kpps", "--law", "pi", "--period", "2s")
    assert _exit_code(monkeypatch, *options) == 2
    assert "--law: the gains of paper are for samples of 1 s" in capsys.readouterr().err


def test_efficiency_changes_when_it_is_told() -> None:
    steps = ("--efficiency-step", "3x@20s", "--efficiency-step", "0.5x@40s")
    document = _json("--setpoint", "20kpps", *steps, "--no-shield", "--cap-step", "0")
    caps = [sample["cap"] for sample in document["samples"]]
    assert caps[19] == pytest.approx(3 * caps[39], rel=0.05)
    assert caps[59] == pytest.approx(6 * caps[39], rel=0.05)
    assert document["samples"][20]["throughput_pps"] > 40e3
    assert document["samples"][40]["throughput_pps"] < 10e3


def test_a_trace_is_played(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("seconds,offered_pps\n0,5000\n30,80000\n")
    document = _json("--setpoint", "20kpps", "--load", f"trace:{path}")
    assert [document["samples"][t]["offered_pps"] for t in (0, 29, 30, 59)] == pytest.approx(
        [5e3, 5e3, 80e3, 80e3]
    )


def test_a_load_that_varies_has_no_settling_to_print() -> None:
    options = ["simulate", "--setpoint", "20kpps", "--load", "sine:5kpps-35kpps:30s"]
    result = CliRunner().invoke(app, options, catch_exceptions=False)
    assert "settling" not in result.stdout
    for words in ("mean throughput: ", "over the promise: ", "under the promise: ", "in breach: "):
        assert words in result.stdout


def test_a_thief_is_recovered_from() -> None:
    summary = _json("--setpoint", "20kpps", "--disturb", "15%@30s")["summary"]
    assert summary["recovery_samples"] <= 3


def test_a_model_file_with_only_a_curve_works(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(CURVE_ONLY)
    document = _json("--setpoint", "30kpps", "--model", str(path))
    assert document["model"] == "mine"
    assert document["summary"]["settling_samples"] <= 3
    assert document["samples"][-1]["cap"] == pytest.approx(HEADROOM * 0.3, rel=0.01)


@pytest.mark.parametrize(("step", "fine"), [((), False), (("--cap-step", "0%"), True)])
def test_a_step_of_0_is_no_step_even_where_the_model_has_one(
    step: tuple[str, ...], fine: bool
) -> None:
    """20 kp/s on the paper's host is a cap of 6.25 %: between two tenths of a percent."""
    cap = _json("--setpoint", "20kpps", "--no-shield", *step)["samples"][30]["cap"]
    assert (cap == pytest.approx(0.0625, rel=1e-3)) is fine


def test_people_get_a_table_and_the_figures() -> None:
    result = CliRunner().invoke(app, ["simulate", "--setpoint", "20kpps"], catch_exceptions=False)
    assert "paper, law default, setpoint 20 kp/s (simulated)" in result.stdout
    accuracy = ("settling: ", "mean throughput: 20 kp/s", "mean error: ", "relative RMSE: ")
    for words in (*accuracy, "over the promise: ", "under the promise: ", "in breach: "):
        assert words in result.stdout


def test_a_good_run_exits_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _exit_code(monkeypatch, "--setpoint", "20kpps") == 0


BAD = [
    *(("--setpoint", text) for text in ("0", "-1", "nan", "inf", "1e30", "", "fast", "20Gpps")),
    *(("--disturb", text) for text in ("15%", "150%@5s", "100%@5s", "-5%@5s", "@5s", "15%@")),
    *(("--disturb", text) for text in ("15%@soon", "15%@60s", "15%@-1s", "15%@" + "9" * 400)),
    *(("--duration", text) for text in ("0", "1s", "-5s", "nan", "1000001s", "a while")),
    *(("--law", text) for text in ("pid", "")),
    *(("--noise", text) for text in ("-1%", "nan", "100%", "1e308")),
    *(("--cap-step", text) for text in ("-1%", "nan", "200%")),
    *(("--floor", text) for text in ("0", "101%", "-1%")),
    *(("--start-cap", text) for text in ("0", "500%", "1e300")),
    *(("--offered", text) for text in ("0", "nan")),
    *(("--gain", text) for text in ("0", "nan", "inf", "x")),
    *(("--delay", text) for text in ("-1", "21", "1.5")),
    *(("--load", text) for text in ("", "onoff:5s", "on-off:0s", "trace:/nowhere", "sine:1:2")),
    *(("--burst", text) for text in ("0", "-1", "nan", "0.5", "61s", "2Mb")),
    *(("--period", text) for text in ("0", "99ms", "61s", "nan", "soon")),
    *(("--efficiency-step", text) for text in ("3@60s", "0x@60s", "nanx@60s", "3x@", "101x@1s")),
    ("--seed", "x"),
    ("--model", "papre"),
    ("--model", "/nowhere/at/all.toml"),
]


@pytest.mark.parametrize(("option", "text"), BAD)
def test_every_bad_option_exits_with_2_and_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    text: str,
) -> None:
    setpoint = () if option == "--setpoint" else ("--setpoint", "20kpps")
    assert _exit_code(monkeypatch, *setpoint, f"{option}={text}") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert option in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    "content", ["", "schema = 1", "schema = 9", "\0", CURVE_ONLY.replace("50000", "nan")]
)
def test_a_broken_model_file_exits_with_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    content: str,
) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(content)
    assert _exit_code(monkeypatch, "--setpoint", "20kpps", "--model", str(path)) == 2
    assert "broken.toml" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["sine:5kpps-35kpps:30s", "walk:5kpps-80kpps:500ms"])
def test_a_load_with_rates_of_its_own_takes_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    options = ("--setpoint", "20kpps", "--load", kind, "--offered", "60kpps")
    assert _exit_code(monkeypatch, *options) == 2
    assert "--offered" in capsys.readouterr().err


def test_no_setpoint_exits_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _exit_code(monkeypatch) == 2


def test_a_disturbance_is_a_share_and_a_time() -> None:
    assert parse_disturbance("15%@60s") == Disturbance(0.15, 60)
    assert parse_disturbance("0.2@1min") == Disturbance(0.2, 60)
    with pytest.raises(UnitError, match="--disturb"):
        parse_disturbance("15% at 60s")
