"""What a fit is said to be in words: each word against a host of which it is true."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from benchmarks.training.coverage import swept
from benchmarks.training.coverage_host import Case, SimulatedHost
from common.units import format_rate
from training.cli.main import app
from training.fit.fit import Fit, fit
from training.fit.loads import LoadEffect, LoadPoint, in_words
from training.recording.recording import Recording, write_csv
from training.report.summary import plain_words

Printed = Callable[[Recording], str]


@pytest.fixture
def printed(tmp_path: Path) -> Printed:
    """Return what `xtc-train fit` prints of a recording."""

    def of(recording: Recording) -> str:
        path = tmp_path / "sweep.csv"
        write_csv(recording, path)
        result = CliRunner().invoke(app, ["fit", str(path)])
        assert result.exit_code == 0, result.output
        return result.stdout

    return of


def line(text: str, name: str) -> str:
    (found,) = [row for row in text.splitlines() if row.startswith(name)]
    return found


def test_a_top_that_the_load_limits_is_said_to_be_the_loads(printed: Printed) -> None:
    """The host forwards 80 kp/s; 40 are sent."""
    recording = swept(SimulatedHost(Case(loaded=0.5), 0))
    found = fit(recording)
    assert found.limited_by == "load"
    assert line(printed(recording), "top").endswith(", limited by the load")
    (top,) = [words for words in plain_words(found) if "forwards up to" in words]
    assert f"the load of {format_rate(40e3)} that limits the top, and not the host" in top
    assert "adds nothing" not in top


def test_a_top_that_the_host_limits_is_said_to_be_the_hosts(printed: Printed) -> None:
    recording = swept(SimulatedHost(Case(), 0))
    assert "limited by the load" not in printed(recording)
    (top,) = [words for words in plain_words(fit(recording)) if "forwards up to" in words]
    assert "from there on more CPU adds nothing" in top


def test_what_would_have_shown_is_said_where_no_change_was_found(printed: Printed) -> None:
    recording = swept(SimulatedHost(Case(), 0))
    found = fit(recording).variation
    assert found is not None
    assert not found.sure
    wanted = f"no change found; {found.high * 100:.1f}% or more would have shown"
    assert line(printed(recording), "host's speed").endswith(wanted)
    said = " ".join(plain_words(fit(recording)))
    assert f"one of {found.high:.1%} or more (standard deviation) would have shown" in said
    assert "same speed" not in said


def test_a_host_that_changed_is_not_told_what_would_have_shown(printed: Printed) -> None:
    recording = swept(SimulatedHost(Case(visit_sd=0.02), 0))
    assert "would have shown" not in printed(recording)
    assert "would have shown" not in " ".join(plain_words(fit(recording)))


@pytest.fixture(scope="module")
def found() -> Fit:
    return fit(swept(SimulatedHost(Case(), 0)))


@pytest.mark.parametrize(("caps", "words"), [(1, "1 cap that was"), (2, "2 caps that were")])
def test_one_cap_visited_again_is_no_caps(found: Fit, caps: int, words: str) -> None:
    assert found.variation is not None
    variation = msgspec.structs.replace(found.variation, caps=caps)
    said = " ".join(plain_words(msgspec.structs.replace(found, variation=variation)))
    assert f"by {words} visited" in said
    assert "1 caps" not in said


@pytest.mark.parametrize(("caps", "words"), [(1, "at 1 cap"), (2, "at 2 caps")])
def test_another_load_is_compared_at_one_cap_or_at_more(caps: int, words: str) -> None:
    point = LoadPoint(0.2, 19e3, 20e3, 0.95, 0.01, starved=False)
    starved = msgspec.structs.replace(point, starved=True)
    effect = LoadEffect(50e3, (starved, *[point] * caps), 0.95, 0.01)
    assert in_words(effect) == f"0.950 ± 0.010 of the curve, {words}"
