"""xtc sandbox load and show: rates, names, and what they say where no sandbox runs."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from common.errors import UnitError
from xtc.cli.main import main
from xtc.cli.sandbox import parse_load
from xtc.daemon.server import REQUESTS
from xtc.sandbox.layout import HostPlace, places
from xtc.sandbox.loads import Sent, write_loads


@pytest.mark.parametrize(
    ("text", "rate"),
    [("0", 0.0), ("10x", 300e3), ("0.5x", 15e3), ("160kpps", 160e3), (" 1x ", 30e3)],
)
def test_a_load_is_a_rate_or_a_multiple_of_the_usual_one(text: str, rate: float) -> None:
    assert parse_load(text, 30e3) == rate


@pytest.mark.parametrize("text", ["", "x", "much", "-1x", "0x", "1e9x", "nan", "20kbps"])
def test_what_is_no_load_is_refused(text: str) -> None:
    with pytest.raises(UnitError, match="RATE"):
        parse_load(text, 30e3)


@pytest.mark.parametrize("words", [("show",), ("load", "gold", "2x")])
def test_where_no_sandbox_runs_it_is_said_how_one_is_started(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["xtc", "sandbox", *words, "--directory", str(tmp_path / "none")]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    assert "start one with `xtc sandbox run`" in capsys.readouterr().err


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of two hosts that listen; sim1 answers from the second question on."""
    asked: Counter[str] = Counter()

    def runs(place: HostPlace) -> bool:
        asked[place.name] += 1
        return place.listens() and (place.name != "sim1" or asked["sim1"] > 1)

    for place in places(tmp_path, 2):
        place.directory.mkdir()
        (place.directory / REQUESTS).touch()
        write_loads(place.loads, {vr: Sent(pps, pps) for vr, pps in place.usual.items()})
    monkeypatch.setattr(HostPlace, "runs", runs)
    return tmp_path


def said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> list[str]:
    """Return the lines of a command of `xtc sandbox` that succeeds."""
    monkeypatch.setattr(sys, "argv", ["xtc", "sandbox", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out.splitlines()


def test_a_host_that_listens_and_answers_late_is_waited_for(
    late: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(capsys, monkeypatch, "load", "bronze", "10x", "--directory", str(late))
    assert lines == ["sim1 bronze: 300 kp/s sent, usually 30 kp/s (simulated)"]
    shown = said(capsys, monkeypatch, "show", "--directory", str(late))
    assert [line.split()[0] for line in shown] == ["sim1"] * 3 + ["sim2"] * 3


def test_a_host_that_never_answers_keeps_no_other_from_being_shown(
    late: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("xtc.cli.sandbox.STARTING_S", 0.0)
    lines = said(capsys, monkeypatch, "show", "--directory", str(late))
    assert [line.split()[0] for line in lines] == ["sim2"] * 3
