"""Laws by name: what each takes over from a host's model."""

from dataclasses import replace

import pytest

from common.errors import ConfigError
from common.units import CapFraction
from models import ControlGains, HostModel, Uncertainty, paper_host
from xtc.control.adaptive import AdaptiveLaw
from xtc.control.estimate import QUIETEST
from xtc.control.law import DEAD_BEAT, DEAD_BEAT_MIN3, PI, PaperGains, PaperLaw
from xtc.control.laws import NAMES, law_named

GAINS = ControlGains(kp=1e-3, ki=2e-3, dead_zone=0.05, min_cap=0.02)
MODEL = HostModel(name="late", measured_curve=paper_host().curve, lag=0.25, delay_samples=2)


@pytest.mark.parametrize(
    ("period", "lag", "delay"),
    [(None, 0.25, 2), (1.0, 0.25, 2), (0.5, 0.5, 4), (2.0, 0.0625, 1)],
)
def test_what_learns_starts_from_curve_lag_and_delay_in_samples_of_its_own(
    period: float | None, lag: float, delay: int
) -> None:
    adaptive = law_named("default", MODEL, period=period)
    assert adaptive == AdaptiveLaw(curve=MODEL.curve, lag=lag, delay=delay)


def test_a_delay_that_is_known_shapes_the_first_estimate() -> None:
    late = law_named("default", MODEL).start(CapFraction(0.5))
    assert late.estimate.delay == 2


@pytest.mark.parametrize(("noise", "used"), [(0.03, 0.03), (0.0, QUIETEST), (0.9, 0.3)])
def test_the_default_law_begins_with_the_noise_of_a_model_within_reason(
    noise: float, used: float
) -> None:
    known = Uncertainty(noise, 0.01, 0.0, ((0.1, 1e3, 2e3),), (97e3, 99e3))
    begun = law_named("default", replace(MODEL, uncertainty=known)).start(CapFraction(0.5))
    assert begun.estimate.noise == pytest.approx(used**2)


def test_without_a_model_nothing_is_known() -> None:
    assert law_named("default", period=0.5) == AdaptiveLaw()


@pytest.mark.parametrize(
    ("pi", "dead_beat", "laws"),
    [
        (None, None, (PI, DEAD_BEAT, DEAD_BEAT_MIN3)),
        (
            GAINS,
            None,
            (PaperGains(1e-3, 2e-3, 0.05, CapFraction(0.02)), DEAD_BEAT, DEAD_BEAT_MIN3),
        ),
        (
            None,
            GAINS,
            (
                PI,
                PaperGains(1e-3, 2e-3, 0.05, CapFraction(0.01)),
                PaperGains(1e-3, 2e-3, 0.05, CapFraction(0.03)),
            ),
        ),
    ],
)
def test_designed_gains_take_the_place_of_the_printed_ones_but_for_the_minimum_cap(
    pi: ControlGains | None, dead_beat: ControlGains | None, laws: tuple[PaperGains, ...]
) -> None:
    model = HostModel(name="own", measured_curve=MODEL.curve, pi=pi, dead_beat=dead_beat)
    found = tuple(law_named(name, model) for name in ("pi", "dead-beat", "dead-beat-min3"))
    assert found == tuple(map(PaperLaw, laws))


def test_a_name_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError) as caught:
        law_named("pid", MODEL, where="router.a.law")
    assert "router.a.law" in str(caught.value)
    assert all(name in str(caught.value) for name in NAMES)
