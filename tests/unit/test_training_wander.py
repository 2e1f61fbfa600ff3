"""Whether a host's speed changed during its sweep is told from noise, and said."""

import random
from pathlib import Path

import pytest
from training_rig import router, swept

from training.data import Recording, Sample
from training.design import design
from training.findings import cautions, plain_words, wandered
from training.fit import Fit, fit
from training.model import b_of, lag_of
from training.wander import Wander, wander_of

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


def wander(speed: float, noise: float, **options: int) -> Wander:
    found = wander_of(samples(speed, noise, **options), below=1.0)
    assert found is not None
    return found


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
@pytest.mark.parametrize("speed", [0.05, 0.1])
def test_the_speed_is_told_through_the_noise(speed: float, noise: float) -> None:
    found = [wander(speed, noise, seed=seed) for seed in range(20)]
    mean = sum(one.speed for one in found) / len(found)
    assert mean == pytest.approx(speed, rel=0.15)
    assert all(one.sure for one in found)


def test_noise_alone_is_taken_for_wandering_about_once_in_twenty_times() -> None:
    sure = sum(wander(0.0, 0.05, seed=seed).sure for seed in range(200))
    assert 1 <= sure <= 22  # binomial: 10 expected, beyond 22 once in ten thousand


def test_visits_of_a_host_without_noise_agree() -> None:
    found = wander(0.0, 0.0)
    assert (found.speed, found.span, found.sure) == (0.0, 0.0, False)
    assert (found.caps, found.visits) == (5, 30)


def test_two_visits_of_one_cap_are_as_far_apart_as_their_means() -> None:
    pair = [_sample(i, 0.1, rate, i // 2) for i, rate in enumerate((90, 90, 110, 110))]
    found = wander_of(pair, below=1.0)
    assert found is not None
    assert found.span == pytest.approx(0.2)
    assert found.speed == pytest.approx(0.1 * 2**0.5)


def test_nothing_is_said_of_caps_visited_once_or_above_the_threshold() -> None:
    assert wander_of(samples(0.1, 0.0, visits=1), below=1.0) is None
    assert wander_of(samples(0.1, 0.0), below=CAPS[0]) is None
    assert wander_of([], below=1.0) is None


def swept_and_fitted(path: Path, drift: float) -> tuple[Recording, Fit]:
    """Sweep a hinge whose speed falls by a share at each fiftieth sample, and comes back."""
    host = router("hinge", noise=0.02)
    host.drift = lambda sample: 1 - drift * (sample // 50 % 2)
    recording = swept(host, path / "sweep.csv")
    return recording, fit(recording)


def test_a_host_that_slowed_down_in_between_is_said_to_wander(tmp_path: Path) -> None:
    recording, found = swept_and_fitted(tmp_path, 0.2)
    assert wandered(found)
    said = " ".join(cautions(recording, found, design(lag_of(found), b_of(found))))
    assert "did not run at one speed" in said
    assert any("speed wandered by" in line for line in plain_words(found))


def test_a_steady_host_is_not(tmp_path: Path) -> None:
    recording, found = swept_and_fitted(tmp_path, 0.0)
    assert not wandered(found)
    said = " ".join(cautions(recording, found, design(lag_of(found), b_of(found))))
    assert "speed" not in said
