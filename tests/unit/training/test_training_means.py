"""One sample that is far from the others of its visit moves no curve, and is said."""

import pytest

from training.fit.means import means_of
from training.recording.recording import Sample

RATES = [100.0, 103.0, 98.0, 101.0, 97.0, 102.0, 99.0, 100.0]


def visit(rates: list[float], number: int = 0, cap: float = 0.1) -> list[Sample]:
    return [
        Sample(at=10.0 * number + n, cap=cap, throughput_pps=rate, visit=number)
        for n, rate in enumerate(rates)
    ]


def test_a_sample_of_nothing_is_left_out_and_kept_as_an_outlier() -> None:
    found = means_of(visit([*RATES, 0.0]), 1.0, None)
    assert found.visits[0].mean == pytest.approx(100.0)
    (outlier,) = found.outliers
    assert (outlier.at, outlier.throughput_pps) == (8.0, 0.0)
    assert outlier.usual_pps == pytest.approx(100.0)


def test_samples_of_a_calm_visit_are_no_outliers_for_lying_a_percent_apart() -> None:
    assert means_of(visit([100.0] * 7 + [101.5]), 1.0, None).outliers == ()


def test_where_many_samples_are_far_that_is_how_the_cap_is() -> None:
    found = means_of(visit([50.0, 150.0, 150.0, 50.0, 150.0, 150.0]), 1.0, None)
    assert found.outliers == ()
    assert len(found.visits[0].rates) == 6


def test_of_two_samples_nobody_knows_which_is_wrong() -> None:
    assert means_of(visit([100.0, 0.0]), 1.0, None).outliers == ()


def test_settling_samples_count_for_no_mean() -> None:
    waiting = [Sample(at=0.0, cap=0.1, throughput_pps=900.0, phase="settling", visit=0)]
    later = [Sample(at=1.0 + n, cap=0.1, throughput_pps=r, visit=0) for n, r in enumerate(RATES)]
    (found,) = means_of([*waiting, *later], 1.0, None).visits
    assert (found.mean, found.phase, len(found.rates)) == (pytest.approx(100.0), "steady", 8)


def test_nothing_measured_is_nothing() -> None:
    assert means_of([], 1.0, None).visits == ()
