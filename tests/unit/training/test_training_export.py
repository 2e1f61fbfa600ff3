"""The files beside a report hold what its page shows, and can be read back."""

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from training_rig import Sender, router, swept, swept_under
from typer.testing import CliRunner

from training.cli.main import app
from training.design.expect import Outlook
from training.design.gains import design
from training.design.host_model import b_of, host_model, lag_of
from training.errors import ExportError, OptionError
from training.fit.fit import Fit, fit
from training.fit.points import CapPoint
from training.fit.verdict import verdict_on
from training.recording.recording import Recording, write_csv
from training.report.contents import LAWS, Contents, contents_of, corrected
from training.report.export import FILES, JSON, export
from training.report.report import write_report
from training.report.responses import Responses


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return swept(router("paper", noise=0.02), tmp_path_factory.mktemp("sweep") / "sweep.csv")


@pytest.fixture(scope="module")
def found(recording: Recording) -> Fit:
    return fit(recording)


@pytest.fixture(scope="module")
def contents(recording: Recording, found: Fit) -> Contents:
    gains = design(lag_of(found), b_of(found))
    return contents_of(recording, found, host_model(found, gains, recording.metadata))


@pytest.fixture(scope="module")
def folder(contents: Contents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "new" / "folder"
    assert {path.name for path in export(contents, folder)} == set(FILES)
    return folder


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_all_files_that_the_page_lists_are_there(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == set(FILES)


def test_points_come_back_with_their_intervals(folder: Path, found: Fit) -> None:
    read = rows(folder, "points.csv")
    assert len(read) == len(found.points)
    for row, point in zip(read, found.points, strict=True):
        rate = point.throughput_pps
        assert float(row["cap"]) == point.cap
        assert [float(row[key]) for key in ("throughput_pps", "low_pps", "high_pps")] == [
            rate.value,
            rate.low,
            rate.high,
        ]
        assert float(row["curve_pps"]) == point.smoothed_pps
        assert (row["samples"], row["binding"]) == (str(point.samples), str(point.binding).lower())


def test_samples_come_back_as_measured_and_corrected(folder: Path, recording: Recording) -> None:
    read = rows(folder, "samples.csv")
    assert len(read) == len(recording.samples)
    for row, sample in zip(read, recording.samples, strict=True):
        assert float(row["at_s"]) == sample.at
        assert row["cap"] == ("uncapped" if sample.cap is None else repr(sample.cap))
        assert float(row["measured_pps"]) == sample.throughput_pps
        assert (row["phase"], row["visit"]) == (sample.phase, str(sample.visit))
        assert 0 <= float(row["own"]) <= 1 + 1e-9


def test_what_is_left_of_the_cap_before_is_taken_off(recording: Recording, found: Fit) -> None:
    """The first sample after a fall of the cap still shows some of the higher level."""
    assert found.eq1.a.value > 0.05
    samples = corrected(recording, found)
    falls = [
        b
        for a, b in pairwise(samples)
        if a.cap and b.cap and b.cap < a.cap / 2 and b.phase == "step"
    ]
    assert len(falls) >= 2
    assert all(one.corrected_pps is not None and one.own < 1 for one in falls if one.own)
    assert all((one.corrected_pps or 0.0) < one.measured_pps for one in falls)


def test_step_responses_come_back(folder: Path, contents: Contents) -> None:
    read = rows(folder, "step_responses.csv")
    points = [(step, point) for step in contents.responses.steps for point in step.points]
    assert len(read) == len(points) > 0
    for row, (step, point) in zip(read, points, strict=True):
        assert (int(row["visit"]), int(row["samples_since"])) == (step.visit, point.samples)
        assert float(row["share"]) == point.share
        assert float(row["fitted"]) == contents.responses.way(point.samples).value


def test_held_out_caps_residuals_and_expectations_come_back(
    folder: Path, contents: Contents
) -> None:
    held = rows(folder, "held_out.csv")
    assert [float(row["error"]) for row in held] == [one.error for one in contents.held_out]
    residuals = rows(folder, "residuals.csv")
    assert [float(row["actual_kpps"]) for row in residuals] == [
        one.actual for one in contents.residuals
    ]
    ahead = rows(folder, "expectations.csv")
    assert {row["law"] for row in ahead} == set(LAWS)
    assert len(ahead) == 5 * len(LAWS)
    for row, one in zip(ahead, contents.expectations, strict=True):
        median = one.settling_samples.median
        assert row["settling_samples_median"] == ("" if median is None else str(median))
        assert float(row["mean_error_high"]) == one.mean_error.high


def test_the_json_file_has_all_of_it(folder: Path, contents: Contents, found: Fit) -> None:
    data: dict[str, Any] = json.loads((folder / JSON).read_text())
    assert set(data) == set(Contents.__struct_fields__)
    assert msgspec.convert(data["points"], tuple[CapPoint, ...]) == contents.points
    assert msgspec.convert(data["responses"], Responses) == contents.responses
    assert msgspec.convert(data["expectations"], tuple[Outlook, ...]) == contents.expectations
    verdict = verdict_on(found)
    assert data["verdict"] == {"usable": verdict.usable, "reasons": list(verdict.reasons)}
    assert data["metadata"]["host"] == "simulated"


def test_samples_under_another_load_are_listed_without_a_correction(tmp_path: Path) -> None:
    simulated = router("paper", noise=0.01)
    path = tmp_path / "sweep.csv"
    recording = swept_under(Sender(simulated), simulated, path, (100e3, 60e3))
    samples = corrected(recording, fit(recording))
    assert len(samples) == len(recording.samples)
    for one in samples:
        assert (one.corrected_pps is None) == (one.own is None) == (one.phase == "load")
    assert any(one.phase == "load" for one in samples)


def test_a_folder_that_cannot_be_made_is_named(contents: Contents, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"--data: .*/file.*give --data a folder"):
        export(contents, tmp_path / "file" / "data")
    (tmp_path / "taken" / "points.csv").mkdir(parents=True)
    with pytest.raises(ExportError, match=r"points\.csv: Is a directory"):
        export(contents, tmp_path / "taken")


def test_the_command_writes_them_and_the_page_lists_them(
    recording: Recording, tmp_path: Path
) -> None:
    sweep, output, data = (tmp_path / name for name in ("sweep.csv", "report.html", "d<&>"))
    write_csv(recording, sweep)
    words = ["report", str(sweep), "--output", str(output), "--data", str(data), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"output": str(output), "data": str(data)}
    text = output.read_text()
    assert all(name in text for name in FILES)
    assert "d&lt;&amp;&gt;" in text
    assert {path.name for path in data.iterdir()} == set(FILES)


@pytest.mark.parametrize(
    ("output", "data"), [("samples.csv", None), ("report.html", "."), ("report.html", "link")]
)
def test_a_report_writes_over_nothing_that_it_reads(
    recording: Recording, tmp_path: Path, output: str, data: str | None
) -> None:
    sweep = tmp_path / "samples.csv"
    write_csv(recording, sweep)
    (tmp_path / "link").symlink_to(tmp_path)
    before = sweep.read_bytes()
    words = ["report", str(sweep), "--output", str(tmp_path / output)]
    words += [] if data is None else ["--data", str(tmp_path / data)]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, OptionError)
    assert result.exception.option == ("--output" if data is None else "--data")
    assert sweep.read_bytes() == before
    assert not (tmp_path / "report.html").exists()


def test_a_page_without_files_lists_none(recording: Recording, found: Fit, tmp_path: Path) -> None:
    gains = design(lag_of(found), b_of(found))
    write_report(recording, found, gains, tmp_path / "report.html")
    assert not any(name in (tmp_path / "report.html").read_text() for name in FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_that_cannot_be_written_is_an_error_of_the_command(
    recording: Recording, tmp_path: Path
) -> None:
    sweep, taken = tmp_path / "sweep.csv", tmp_path / "taken"
    write_csv(recording, sweep)
    taken.write_text("")
    output = tmp_path / "report.html"
    words = ["report", str(sweep), "--output", str(output), "--data", str(taken)]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, ExportError)
    assert not output.exists()
