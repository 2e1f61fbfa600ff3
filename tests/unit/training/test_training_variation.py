"""Whether a host's speed changed during its sweep is told from noise, and said."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from training_rig import router, swept

from training.design.gains import design
from training.design.host_model import b_of, lag_of
from training.fit.drift import Variation, variation_of
from training.fit.fit import Fit, fit
from training.fit.means import means_of
from training.fit.points import curve_of
from training.recording.recording import Recording, Sample
from training.report.summary import cautions, plain_words, varied

CAPS = (0.1, 0.2, 0.3, 0.4, 0.5)


def samples(speed: float, noise: float, *, visits: int = 6, seed: int = 0) -> list[Sample]:
    """Return six samples of each visit of each cap by a host whose speed changes in between."""
    chance, found = random.Random(seed), []
    for visit in range(visits * len(CAPS)):
        cap, pace = CAPS[visit % len(CAPS)], 1 + speed * chance.gauss(0, 1)
        found += [
            _sample(len(found) + i, cap, 1e5 * cap * pace * (1 + noise * chance.gauss(0, 1)), visit)
            for i in range(6)
        ]
    return found


def _sample(at: float, cap: float, rate: float, visit: int) -> Sample:
    return Sample(
        at=at,
        cap=cap,
        throughput_pps=rate,
        used=cap,
        binding=True,
        phase="steady",
        visit=visit,
    )


def told(found: list[Sample]) -> Variation | None:
    means = means_of(found, 1.0, None)
    return variation_of(means.visits, curve_of(means))


def variation(speed: float, noise: float, **options: int) -> Variation:
    found = told(samples(speed, noise, **options))
    assert found is not None
    return found


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
@pytest.mark.parametrize("speed", [0.05, 0.1])
def test_the_speed_is_told_through_the_noise(speed: float, noise: float) -> None:
    found = [variation(speed, noise, seed=seed) for seed in range(20)]
    mean = sum(one.speed for one in found) / len(found)
    assert mean == pytest.approx(speed, rel=0.2)
    assert all(one.sure for one in found)
    assert sum(one.low <= speed <= one.high for one in found) >= 17


def test_noise_alone_is_seldom_taken_for_variation_and_what_would_have_shown_is_said() -> None:
    found = [variation(0.0, 0.05, seed=seed) for seed in range(100)]
    assert sum(one.sure for one in found) <= 13  # beyond that once in a thousand, at 5 %
    assert all(0.005 < one.high < 0.05 for one in found if not one.sure)


def test_visits_of_a_host_without_noise_agree() -> None:
    found = variation(0.0, 0.0)
    assert (found.span, found.sure, found.drifts) == (pytest.approx(0.0, abs=1e-9), False, False)
    assert found.high < 0.003
    assert (found.caps, found.visits) == (4, 24)


def test_two_visits_of_one_cap_are_as_far_apart_as_their_means() -> None:
    visits = [(0.1, 90), (0.2, 200), (0.1, 110), (0.3, 300), (0.4, 300)]
    pair = [
        _sample(i, cap, rate, i // 2)
        for i, (cap, rate) in enumerate(v for v in visits for _ in "ab")
    ]
    found = told(pair)
    assert found is not None
    assert found.span == pytest.approx(0.2)


def test_a_slow_host_is_said_to_slow_down() -> None:
    slower = [
        replace(one, throughput_pps=one.throughput_pps * (1 - 0.2 * index / 180))
        for index, one in enumerate(samples(0.0, 0.02))
    ]
    found = told(slower)
    assert found is not None
    assert (found.drifts, found.sure) == (True, True)
    assert found.trend == pytest.approx(-0.22, abs=0.03)  # of the speed at the middle


def test_nothing_is_said_of_caps_visited_once_or_above_the_threshold() -> None:
    assert told(samples(0.1, 0.0, visits=1)) is None
    flat = [replace(one, throughput_pps=1e4, binding=False) for one in samples(0.0, 0.0)]
    assert told(flat) is None


def swept_and_fitted(path: Path, drift: float) -> tuple[Recording, Fit]:
    """Sweep a hinge whose speed falls by a share at each fiftieth sample, and comes back."""
    host = router("hinge", noise=0.02)
    host.drift = lambda sample: 1 - drift * (sample // 50 % 2)
    recording = swept(host, path / "sweep.csv")
    return recording, fit(recording)


def test_a_host_that_slowed_down_in_between_is_said_to_vary(tmp_path: Path) -> None:
    recording, found = swept_and_fitted(tmp_path, 0.2)
    assert varied(found)
    said = " ".join(cautions(recording, found, design(lag_of(found), b_of(found))))
    assert "did not run at one speed" in said
    assert any("speed varied by" in line for line in plain_words(found))


def test_a_steady_host_is_not(tmp_path: Path) -> None:
    recording, found = swept_and_fitted(tmp_path, 0.0)
    assert not varied(found)
    said = " ".join(cautions(recording, found, design(lag_of(found), b_of(found))))
    assert "speed" not in said
