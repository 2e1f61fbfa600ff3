"""A curve's shape is named where the sweep shows it, with others where it does not, or none."""

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

from benchmarks.training.coverage_host import Case, SimulatedHost, offered
from training.cli.main import app
from training.fit.fit import Fit, fit
from training.fit.shape import compare
from training.fit.shape_candidate import by_chance
from training.fit.shape_fit import NAMES, Line, Name, fitted
from training.recording.recording import Metadata
from training.recording.sweep_model import aims_for
from training.report.plots import draw_curve, svg
from training.report.summary import measured_range, plain_words
from training.sweep.sweep import Sweep, resumed

CAPS = np.array([0.02, 0.04, 0.07, 0.12, 0.2, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 1.0])
SWEEPS = 4
HOSTS: dict[str, Callable[[float], float]] = {
    "hinge": lambda u: min(125e3 * u, 80e3),
    "affine hinge": lambda u: min(10e3 + 110e3 * u, 80e3),
    "logarithm": lambda u: min(max(90e3 + 50e3 * math.log10(u), 0.0), 80e3),
    "power law": lambda u: min(100e3 * u**0.6, 80e3),
}


def swept(case: Case, seed: int, folder: Path) -> Fit:
    """Sweep and fit a simulated host as `xtc-train` does it."""
    path = folder / f"{seed}.csv"
    begun = resumed(Metadata(host="simulated", offered_pps=offered(case)), path)
    host = SimulatedHost(case, seed)
    return fit(Sweep(host, begun, path, aims_for(case.samples), lambda _: None).run())


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """Any shape whose rise and top both show at the caps."""
    name = draw(st.sampled_from(NAMES))
    top = draw(st.floats(1e3, 1e6))
    knee = draw(st.floats(0.4, 0.75))
    if name == "logarithm":
        begins = draw(st.floats(0.005, 0.015))
        slope = top / math.log10(knee / begins)
        return Line(name, slope, -slope * math.log10(begins), top, 1.0)
    if name == "affine hinge":
        offset = draw(st.floats(0.02, 0.4)) * top
        return Line(name, (top - offset) / knee, offset, top, 1.0)
    power = draw(st.floats(0.3, 2.0)) if name == "power law" else 1.0
    return Line(name, top / knee**power, 0.0, top, power)


@settings(max_examples=40)
@given(lines(), st.randoms(use_true_random=False))
def test_without_noise_each_shape_is_found_exactly_whatever_the_weights(
    line: Line, chance: object
) -> None:
    weights = np.array([chance.uniform(0.2, 5.0) for _ in CAPS])  # type: ignore[attr-defined]
    found = fitted(line.name, CAPS, line.at(CAPS), weights)
    assert found.at(CAPS) == pytest.approx(line.at(CAPS), rel=1e-4)
    assert found.power == pytest.approx(line.power, abs=1e-3)
    assert found.slope == pytest.approx(line.slope, rel=2e-3)
    assert found.top == pytest.approx(line.top, rel=1e-3)


@settings(max_examples=25)
@given(lines(), st.integers(0, 10_000))
def test_no_other_parameters_are_closer(line: Line, seed: int) -> None:
    """Least squares of noisy means: nothing near the fit, nor the truth, has fewer."""
    random = np.random.default_rng(seed)
    rates = line.at(CAPS) * (1 + 0.03 * random.standard_normal(len(CAPS)))
    weights = rates**-2.0
    found = fitted(line.name, CAPS, rates, weights)

    def squares(one: Line) -> float:
        return float((weights * (rates - one.at(CAPS)) ** 2).sum())

    assert squares(found) <= squares(line) * (1 + 1e-6)


def test_a_dead_zone_below_an_affine_hinge_is_part_of_the_shape() -> None:
    rates = [max(-5e3 + 60e3 * cap, 0.0) for cap in CAPS]
    found = compare(CAPS, rates, [0.01 * rate for rate in rates])
    assert found.better == "affine hinge"
    assert found.affine_hinge.offset_pps == pytest.approx(-5e3, rel=1e-6)
    assert found.affine_hinge.throughput(0.05) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_each_shape_is_named(name: Name) -> None:
    random = np.random.default_rng(1)
    rates = [HOSTS[name](cap) * (1 + 0.01 * random.standard_normal()) for cap in CAPS]
    found = compare(CAPS, rates, [0.01 * rate for rate in rates])
    assert (found.better, found.nearest, found.answer) == (name, name, name)
    assert found.chosen.r_squared > 0.99
    assert found.chosen.chance is not None
    assert found.chosen.chance > 0.01


def test_shapes_that_cannot_be_told_apart_are_both_named() -> None:
    """With errors of 15 % an offset of 1 % of the top may be there, or not."""
    random = np.random.default_rng(0)
    truth = np.array([min(1e3 + 100e3 * cap, 80e3) for cap in CAPS])
    rates = truth * (1 + 0.15 * random.standard_normal(len(CAPS)))
    found = compare(CAPS, rates.tolist(), (0.15 * truth).tolist())
    assert found.answer == "hinge or affine hinge"
    assert "a hinge or an affine hinge" in found.words
    assert "does not tell which" in found.words


def test_a_curve_that_is_none_of_them_is_called_none() -> None:
    """Two straight lines below the top: 30 % of the slope up to a cap of 20 %."""
    rates = [min(max(110e3 * cap - 16e3, 30e3 * cap), 80e3) for cap in CAPS]
    found = compare(CAPS, rates, [0.01 * rate for rate in rates])
    assert found.better is None
    assert found.alike == ()
    assert found.answer == f"none (nearest: {found.nearest})"
    assert "neither" in found.words
    unknown = compare(CAPS, rates)
    assert unknown.better is not None, "without errors nothing says that it is none"
    assert unknown.chosen.chance is None


def test_caps_of_a_plateau_count_once() -> None:
    """They are one pooled mean: more of them make nothing surer."""
    rates = [min(100e3 * cap, 60e3) for cap in CAPS]
    rates[3] *= 1.2
    errors = [0.03 * rate for rate in rates]
    more = [*CAPS, 1.2, 1.4, 1.6, 1.8]
    few = compare(CAPS, rates, errors)
    many = compare(more, [*rates, *[60e3] * 4], [*errors, *[0.03 * 60e3] * 4])
    for here, there in zip(few.shapes, many.shapes, strict=True):
        if here.name in ("hinge", "power law"):
            assert there.chance == pytest.approx(here.chance, rel=1e-6)
            assert there.aic == pytest.approx(here.aic, rel=1e-6)


@settings(max_examples=25)
@given(lines(), st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_the_answer_does_not_depend_on_the_unit(line: Line, seed: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    rates = line.at(CAPS) * (1 + 0.03 * random.standard_normal(len(CAPS)))
    errors = 0.03 * rates
    here = compare(CAPS, rates.tolist(), errors.tolist())
    there = compare(CAPS, (rates * scale).tolist(), (errors * scale).tolist())
    assert (here.better, here.alike) == (there.better, there.alike)
    for one, other in zip(here.shapes, there.shapes, strict=True):
        assert other.cv_error == pytest.approx(one.cv_error, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(
    "above", [[1.0], [3.0, 1.0, 2.0], [1.0, -2.0, 3.0, 4.0], [2.0, 2.0, -1.0, 2.0, -2.0, 3.0]]
)
def test_the_test_by_ranks_is_exact_also_with_equal_sizes(above: list[float]) -> None:
    ranks = stats.rankdata(np.abs(above))
    found = ranks[np.array(above) > 0].sum()
    signs = np.array(list(product((0, 1), repeat=len(above))))
    assert by_chance(np.array(above)) == (signs @ ranks >= found).mean()


def answers(case: Case, folder: Path) -> list[Fit]:
    return [swept(case, seed, folder) for seed in range(SWEEPS)]


@pytest.mark.parametrize(
    "case", [Case(), Case(visit_sd=0.05), Case(lag=0.6)], ids=["steady", "changing", "slow"]
)
def test_a_swept_hinge_is_a_hinge(case: Case, tmp_path: Path) -> None:
    for found in answers(case, tmp_path):
        assert found.shapes.better == "hinge"
        assert "proportional" in found.shapes.words or "hinge or" in found.shapes.words


@pytest.mark.parametrize("offset", [-0.05, 0.02, 0.1])
def test_a_swept_affine_hinge_is_not_called_proportional(offset: float, tmp_path: Path) -> None:
    for found in answers(Case(offset=offset), tmp_path):
        assert found.shapes.answer == "affine hinge"
        words = " ".join(plain_words(found))
        assert "proportional" not in words
        assert ("more" if offset > 0 else "from a cap of") in words


@pytest.mark.parametrize("power", [0.6, 0.8])
def test_a_swept_power_law_is_no_logarithm(power: float, tmp_path: Path) -> None:
    for found in answers(Case("power law", power=power), tmp_path):
        assert found.shapes.answer == "power law"
        assert found.shapes.power_law.power == pytest.approx(power, abs=0.03)


def test_a_swept_logarithm_is_one_and_no_line_leads_to_zero(tmp_path: Path) -> None:
    for found in answers(Case("logarithm"), tmp_path):
        assert found.shapes.answer == "logarithm"
        assert "does not agree" in measured_range(found)


def test_a_swept_curve_of_two_lines_is_none_of_the_shapes(tmp_path: Path) -> None:
    for found in answers(Case("affine hinge"), tmp_path):
        assert found.shapes.better is None


def test_a_power_law_leaves_the_line_to_zero(tmp_path: Path) -> None:
    """Half the smallest cap gives two thirds of its throughput."""
    found = swept(Case("power law"), 0, tmp_path)
    assert "does not agree" in measured_range(found)


def test_every_shape_rises_with_the_cap() -> None:
    for name in NAMES:
        rates: Sequence[float] = [HOSTS[name](cap) for cap in CAPS]
        for shape in compare(CAPS, rates).shapes:
            along = [shape.throughput(cap) for cap in CAPS]
            assert all(low <= high * (1 + 1e-9) for low, high in pairwise(along))


def test_fit_gives_all_shapes_as_json_and_the_answer_in_words(tmp_path: Path) -> None:
    swept(Case(offset=0.1), 0, tmp_path)
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "0.csv"), "--json"])
    shapes = json.loads(result.stdout)["shapes"]
    assert [shapes[name.replace(" ", "_")]["name"] for name in NAMES] == list(NAMES)
    assert (shapes["better"], shapes["alike"]) == ("affine hinge", [])
    words = CliRunner().invoke(app, ["fit", str(tmp_path / "0.csv")]).stdout
    (row,) = [line for line in words.splitlines() if line.startswith("shape")]
    assert row.split(maxsplit=1)[1].strip() == "affine hinge"


def test_a_figure_shows_hinge_and_logarithm_and_the_shape_that_fits(tmp_path: Path) -> None:
    found = swept(Case("power law"), 0, tmp_path)
    drawn = svg(lambda axes: draw_curve(axes, found))
    assert all(f">{name}<" in drawn for name in ("hinge", "logarithm", "power law"))
    assert ">affine hinge<" not in drawn
