"""What a sweep must hold to be fitted: every threshold of the fit from both sides."""

import math
import statistics
from collections.abc import Mapping, Sequence

import pytest

from training.errors import UnfitError
from training.fit.fit import Fit, HeldOut, fit
from training.recording.recording import Metadata, Phase, Recording, Sample

RISING = {0.1: 20e3, 0.2: 40e3, 0.3: 60e3, 0.4: 80e3, 0.5: 100e3, 0.6: 100e3}
"""A hinge whose last two caps give the same: the threshold is at 0.5."""
STEPS = ((0.1, 3), (0.3, 3), (0.1, 3), (0.3, 3))


class Sweep:
    """Writes down what a host without lag shows, one sample a second, a pause before a visit."""

    def __init__(self, offered: float | None = None) -> None:
        self.samples: list[Sample] = []
        self.now, self.visit = 0.0, 0
        self.offered = offered

    def visits(
        self,
        phase: Phase,
        cap: float | None,
        rates: Sequence[float],
        *,
        pause: float = 10.0,
        binding: bool | None = None,
        offered: float | None = None,
    ) -> None:
        self.now, self.visit = self.now + pause, self.visit + 1
        for rate in rates:
            self.now += 1.0
            self.samples.append(
                Sample(
                    at=self.now, cap=cap, throughput_pps=rate, phase=phase, visit=self.visit,
                    binding=binding, offered_pps=offered,
                )
            )  # fmt: skip

    def fitted(self) -> Fit:
        metadata = Metadata(host="simulated", offered_pps=self.offered)
        return fit(Recording(metadata, tuple(self.samples)))

    def lacks(self) -> str:
        with pytest.raises(UnfitError) as caught:
            self.fitted()
        return caught.value.lacks


def around(rate: float, share: float) -> list[float]:
    """Return four samples of that mean, whose standard deviation is 1.1547 times the share."""
    return [rate * (1 + sign * share) for sign in (1, -1, 1, -1)]


def swept(
    curve: Mapping[float, float],
    *,
    uncapped: float | None = None,
    scatter: Mapping[float, float] | float = 0.0,
    binding: bool | None = None,
    steps: Sequence[tuple[float, int]] = STEPS,
    offered: float | None = None,
) -> Sweep:
    sweep = Sweep(offered)
    if uncapped is not None:
        sweep.visits("uncapped", None, [uncapped] * 3)
    for cap, rate in curve.items():
        share = scatter if isinstance(scatter, float) else scatter.get(cap, 0.0)
        sweep.visits("steady", cap, around(rate, share), binding=binding)
    rates = {**RISING, **curve}
    for index, (cap, count) in enumerate(steps):
        sweep.visits("step", cap, [rates[cap]] * count, pause=0.0 if index else 10.0)
    return sweep


def test_a_hinge_is_found_as_it_is() -> None:
    found = swept(RISING, uncapped=100e3).fitted()
    assert found.top_pps == pytest.approx(100e3)
    assert (found.uncapped_pps, found.cap_threshold) == (100e3, 0.5)
    assert found.threshold_reached
    assert found.smallest_useful_cap == 0.1
    assert (found.noise, found.curve_r_squared) == (0.0, pytest.approx(1.0))
    assert (found.offered_pps, found.held_out, found.held_out_error) == (None, (), None)
    assert found.eq1.a.value == pytest.approx(0.0, abs=1e-9)
    assert found.eq1.line.points == 4


def test_five_caps_are_a_curve_and_four_are_none() -> None:
    line = {cap: RISING[cap] for cap in (0.1, 0.2, 0.3, 0.4, 0.5)}
    assert swept(line).fitted().cap_threshold == 0.5
    assert swept({cap: line[cap] for cap in (0.1, 0.2, 0.3, 0.4)}).lacks() == "points"


def test_four_caps_below_the_threshold_are_a_line_and_three_are_none() -> None:
    early = {0.1: 25e3, 0.2: 50e3, 0.3: 75e3, 0.4: 100e3, 0.5: 100e3, 0.6: 100e3}
    assert swept(early).lacks() == "region"
    silent = {0.05: 0.0, **early}
    assert swept(silent).lacks() == "region"
    assert swept({0.05: 12e3, **early}).fitted().eq1.line.points == 4


def test_caps_below_the_threshold_that_give_no_more_have_no_gain() -> None:
    step = {0.1: 80e3, 0.2: 79e3, 0.3: 78e3, 0.4: 77e3, 0.5: 100e3, 0.6: 100e3}
    assert swept(step).lacks() == "gain"


def flat(lowest: float, top: float = 100e3) -> dict[float, float]:
    """Return a line from a share of the top up to the top."""
    return {
        cap: top * (lowest + (1 - lowest) * index / 4)
        for index, cap in enumerate((0.1, 0.2, 0.3, 0.4, 0.5))
    }


def test_a_throughput_that_rises_by_a_tenth_answers_to_the_cap() -> None:
    assert swept(flat(0.89)).fitted().top_pps == pytest.approx(100e3)
    assert swept(flat(0.91)).lacks() == "answer"


def test_caps_from_which_a_twentieth_is_missing_do_not_bind() -> None:
    assert swept(flat(0.96), uncapped=100e3).lacks() == "binding"
    assert swept(flat(0.94), uncapped=100e3).lacks() == "answer"
    assert swept(flat(0.94), uncapped=100e3, binding=True).lacks() == "answer"
    assert swept(flat(0.94), binding=False).lacks() == "binding"


@pytest.mark.parametrize(("uncapped", "reached"), [(105e3, True), (106e3, False), (None, True)])
def test_a_sweep_reaches_the_top_with_95_percent_of_what_is_uncapped(
    uncapped: float | None, reached: bool
) -> None:
    assert swept(RISING, uncapped=uncapped).fitted().threshold_reached is reached


def test_just_95_percent_reach_the_top() -> None:
    assert swept({**RISING, 0.5: 95.01e3, 0.6: 95.01e3}, uncapped=100e3).fitted().threshold_reached


@pytest.mark.parametrize("binding", [True, None])
def test_nor_does_one_that_still_rises_at_its_last_cap(binding: bool | None) -> None:
    line = {cap: RISING[cap] for cap in (0.1, 0.2, 0.3, 0.4, 0.5)}
    assert not swept(line, binding=binding).fitted().threshold_reached
    free = swept(line, binding=True, uncapped=100e3)
    last = [s for s in free.samples if s.cap == 0.5]
    free.samples = [s for s in free.samples if s.cap != 0.5]
    free.visits("steady", 0.5, [s.throughput_pps for s in last], binding=False)
    assert free.fitted().threshold_reached


def test_a_fall_of_a_twentieth_is_noise_and_a_larger_one_is_none() -> None:
    assert swept({**RISING, 0.6: 95.1e3}).fitted().top_pps > 90e3
    assert swept({**RISING, 0.6: 94.9e3}).lacks() == "monotone"
    creeping = {**RISING, 0.6: 97e3, 0.7: 94e3}
    assert swept(creeping).lacks() == "monotone", "from the best before, not from the last"
    assert swept({**RISING, 0.05: 39e3}).lacks() == "monotone", "from the first cap on"


def test_a_fall_within_four_standard_errors_may_be_chance() -> None:
    """With three standard errors 0.23 would be refused, with five 0.35 would not."""
    fallen = {
        fall: swept({**RISING, 0.7: (1 - fall) * 100e3}, scatter=0.1) for fall in (0.23, 0.35)
    }
    assert fallen[0.23].fitted().points
    assert fallen[0.35].lacks() == "monotone"


@pytest.mark.parametrize(("share", "smallest"), [(0.21, 0.1), (0.22, 0.3)])
def test_a_cap_whose_samples_scatter_by_a_quarter_is_useful_no_more(
    share: float, smallest: float
) -> None:
    found = swept(RISING, scatter={0.2: share}).fitted()
    assert found.smallest_useful_cap == smallest
    assert found.noise == 0.0


@pytest.mark.parametrize(("rate", "smallest"), [(0.0, 0.1), (1.0, 0.02)])
def test_a_cap_that_forwards_nothing_is_not_useful(rate: float, smallest: float) -> None:
    assert swept({0.02: rate, **RISING}).fitted().smallest_useful_cap == smallest


@pytest.mark.parametrize(
    ("steps", "enough"),
    [
        (STEPS, True),
        (((0.1, 2), (0.3, 2), (0.1, 2), (0.3, 2)), True),
        (((0.1, 1), (0.3, 2), (0.1, 2), (0.3, 2)), True),
        (((0.1, 1), (0.3, 2), (0.1, 2), (0.3, 1)), False),  # five pairs of two caps
        (((0.1, 6), (0.3, 6), (0.1, 6)), False),  # two moves
        (((0.1, 1), (0.2, 2), (0.3, 2), (0.1, 2)), False),  # six pairs of three caps
        (((0.1, 1), (0.2, 3), (0.3, 2), (0.1, 2)), True),
    ],
)
def test_three_moves_and_three_samples_more_than_caps_show_the_dynamics(
    steps: Sequence[tuple[float, int]], enough: bool
) -> None:
    sweep = swept(RISING, steps=steps)
    if enough:
        assert sweep.fitted().eq1.a.value == pytest.approx(0.0, abs=1e-6)
    else:
        assert sweep.lacks() == "steps"


def test_the_offered_load_is_the_sweeps_or_the_median_of_what_was_seen() -> None:
    assert swept(RISING, offered=150e3).fitted().offered_pps == 150e3
    sweep = swept(RISING)
    for seen in (110e3, 120e3, 160e3, 0.0, None):
        sweep.visits("steady", 0.6, [100e3], offered=seen)
    sweep.visits("load", 0.6, [100e3], offered=900e3)
    assert sweep.fitted().offered_pps == 120e3
    assert swept(RISING, offered=80e3).lacks() == "offered"


def test_samples_under_another_load_are_not_fitted() -> None:
    sweep = swept(RISING)
    sweep.visits("load", 0.3, [5e3] * 9, offered=900e3)
    found = sweep.fitted()
    assert [point.samples for point in found.points] == [10, 4, 10, 4, 4, 4], "steps count, too"
    assert [effect.offered_pps for effect in found.loads] == [900e3]


def test_held_out_caps_are_compared_with_the_curve_between_its_points() -> None:
    sweep = swept(RISING)
    for cap, rate in ((0.15, 25e3), (0.25, 50e3), (0.35, 100e3)):
        sweep.visits("held_out", cap, [rate] * 2)
    found = sweep.fitted()
    predicted = [(one.cap, one.predicted_pps, one.measured_pps) for one in found.held_out]
    assert [round(value, 2) for one in predicted for value in one] == [
        *(0.15, 30e3, 25e3),
        *(0.25, 50e3, 50e3),
        *(0.35, 70e3, 100e3),
    ]
    assert [held.error for held in found.held_out] == pytest.approx([0.2, 0.0, 0.3], abs=1e-6)
    assert found.held_out_error == pytest.approx(0.2)
    assert found.held_out_worst == pytest.approx(0.3)
    assert HeldOut(0.1, 5.0, 0.0).error == pytest.approx(5e9)


def test_what_the_curve_explains_by_hand() -> None:
    found = swept(RISING, scatter=0.1).fitted()
    rates = [rate for mean in RISING.values() for rate in around(mean, 0.1)]
    spread = sum((rate - statistics.fmean(rates)) ** 2 for rate in rates)
    missed = sum(4 * (0.1 * mean) ** 2 for mean in RISING.values())
    assert found.curve_r_squared == pytest.approx(1 - missed / spread)
    assert math.isclose(found.noise, 0.1 * math.sqrt(4 / 3))


def test_one_visit_without_packets_does_not_disturb_the_order_of_caps() -> None:
    sweep = swept(RISING)
    for cap in (0.5, 0.6):
        sweep.visits("steady", cap, [RISING[cap]] * 4)
    sweep.visits("steady", 0.6, [0.0] * 4)
    found = sweep.fitted()
    assert [point.cap for point in found.points] == sorted(RISING)
    assert found.top_pps == pytest.approx(100e3, rel=1e-3)


def test_caps_that_bind_are_no_plateau_however_noisy_they_are() -> None:
    line = {0.1 * n: 10e3 * n for n in range(1, 10)} | {0.96: 96e3, 1.0: 97e3}
    sweep = swept(line, scatter=0.05, binding=True, steps=())
    for again in range(4):
        for cap in (0.1, 0.3):
            sweep.visits("step", cap, [1e5 * cap] * 3, pause=10.0 * (not again), binding=True)
    found = sweep.fitted()
    assert (found.limited_by, found.cap_threshold) == (None, 1.0)


def test_caps_that_forward_next_to_nothing_are_refused_in_words() -> None:
    sweep = swept({cap: 3 * cap for cap in RISING}, uncapped=70e3, steps=())
    assert sweep.lacks() == "throughput"


def test_a_cap_that_was_only_seen_in_passing_is_no_point() -> None:
    """Another actor's cap, which a host with lag never came near to."""
    sweep = Sweep()
    for cap in (*RISING, *RISING):
        start = sweep.samples[-1].throughput_pps if sweep.samples else RISING[cap]
        rates = [RISING[cap] + (start - RISING[cap]) * 0.6**n for n in range(1, 16)]
        sweep.visits("steady", cap, rates, pause=0.0)
        if len(sweep.samples) == 45:
            sweep.visits("steady", 0.55, [0.4 * RISING[0.5] + 0.6 * rates[-1]], pause=0.0)
    found = sweep.fitted()
    assert 0.55 not in {point.cap for point in found.points}
    assert found.eq1.a.value == pytest.approx(0.6, abs=0.05)


def test_a_cap_for_each_sample_shows_no_dynamics() -> None:
    sweep = Sweep()
    for number in range(60):
        cap = list(RISING)[(7 * number) % 5]
        sweep.visits("step" if number % 2 else "steady", cap, [RISING[cap]], pause=0.0)
    assert sweep.lacks() in {"steps", "points"}
