"""xtc-train mix: mixes are read, and the curve of one is what its cost says."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from models import HostModel, PacketCost, ThroughputCurve, bundled_host, dump_host, load_host
from training.cli.main import app
from training.design.mix import IMIX, parse_mix, predicted
from training.errors import OptionError, UnfitError

HALF = 4e-6 / 1e-9 + 2 * 64.0
HOST = HostModel(
    name="h",
    description="Measured.",
    measured_curve=ThroughputCurve(((0.1, 10e3), (0.8, 80e3), (1.5, 80e3)), 200e3),
    cost=PacketCost(4e-6, 1e-9, 64.0),
    cap_ceiling=2.0,
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "h.toml"
    path.write_text(dump_host(HOST))
    return path


def document(*arguments: object) -> Any:
    words = ["mix", *map(str, arguments), "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("text", ["64:0.33,576:0.33,1400:0.33", "64:0.6,1400:0.41"])
def test_a_percent_is_a_percent_whatever_floats_make_of_it(text: str) -> None:
    assert sum(share for _, share in parse_mix(text)) == pytest.approx(1.0)


def test_shares_are_normalised_within_a_percent() -> None:
    assert parse_mix("64:0.5,576:0.3,1400:0.2") == ((64, 0.5), (576, 0.3), (1400, 0.2))
    assert parse_mix("64:0.333,576:0.333,1400:0.333") == (
        (64, pytest.approx(1 / 3)),
        (576, pytest.approx(1 / 3)),
        (1400, pytest.approx(1 / 3)),
    )


@pytest.mark.parametrize(
    "text", ["64:0.5,1400:0.4", "", "64", "64:a", "x:1", "64:0.5,,", "nan:1", "64:nan", "5:1"]
)
def test_what_is_no_mix_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"--mix: .* \((give|write) "):
        parse_mix(text)


def test_imix_is_7_4_1_of_frames_without_their_checksum() -> None:
    found = parse_mix("imix")
    assert [size for size, _ in found] == [60, 590, 1514]
    assert [share * 12 for _, share in found] == pytest.approx([7, 4, 1])
    assert found == tuple((size, pytest.approx(share)) for size, share in IMIX)


def test_a_mix_is_worth_what_packets_of_its_mean_size_are() -> None:
    model, says = predicted(HOST, ((64.0, 0.5), (2 * HALF - 64.0, 0.5)), [20e3, 50e3])
    assert says.mean_bytes == pytest.approx(HALF)
    assert says.ratio == pytest.approx(0.5)
    assert says.top_pps == pytest.approx(40e3)
    assert says.top_bps == pytest.approx(40e3 * 8 * HALF)
    assert says.cap_threshold == pytest.approx(0.8)
    assert [held.cap for held in says.setpoints] == [pytest.approx(0.4), None]
    assert model.cost is not None
    assert model.cost.reference_bytes == pytest.approx(HALF)


def test_json_has_the_curve_and_the_file_is_the_mixs(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "mix.toml"
    arguments = ("--mix", f"{HALF}:1", "--setpoint", "20kpps", "-o", output)
    found = document(model, *arguments)
    assert found["ratio"] == pytest.approx(0.5)
    assert found["limited_by"] == "host"
    assert found["setpoints"] == [{"setpoint_pps": 20e3, "cap": pytest.approx(0.4)}]
    assert found["points"][1] == [0.8, pytest.approx(40e3), pytest.approx(40e3 * 8 * HALF)]
    written = load_host(output)
    assert written.curve.top == pytest.approx(40e3)
    assert written.description == f"Predicted for packets of {HALF}:1 from: Measured."


def test_people_read_the_curve_the_top_and_the_caps(model: Path) -> None:
    words = ["mix", str(model), "--mix", f"{HALF}:1", "--setpoint", "20kpps", "--setpoint", "1Mpps"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "0.500 of the model's own throughput" in result.stdout
    assert "top 40 kp/s (1.32 Gb/s) from a cap of 80%" in result.stdout
    assert "setpoint 20 kp/s: cap 40%" in result.stdout
    assert "setpoint 1 Mp/s: above the top" in result.stdout


def test_a_model_without_a_cost_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.toml"
    path.write_text(dump_host(bundled_host("hinge")))
    with pytest.raises(UnfitError, match=r"has no \[cost\]: sweep with two or more --packet-size"):
        CliRunner().invoke(app, ["mix", str(path), "--mix", "imix"], catch_exceptions=False)
