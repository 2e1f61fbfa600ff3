"""xtc sandbox load and show: rates, names, and what they say where no sandbox runs."""

import sys
from pathlib import Path

import pytest

from common.errors import UnitError
from xtc.cli.main import main
from xtc.cli.sandbox import parse_load


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
