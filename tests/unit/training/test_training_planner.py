"""The planner: few caps where the curve is straight, more at the knee, and an end."""

import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training_rig import Router, router, swept

from common.units import PacketsPerSecond
from models import HostModel, ThroughputCurve, bundled_host
from training.recording.recording import Recording, Sample
from training.recording.sweep_model import Known, Span, SweepPlan, aims_for, noise_of, visits_of
from training.sweep.planner import Request, enough, most_left, next_request

HOSTS = ("paper", "hinge", "log")


def caps_of(recording: Recording, phase: str) -> list[float]:
    return sorted({s.cap for s in recording.samples if s.phase == phase and s.cap is not None})


def curve_of(recording: Recording) -> ThroughputCurve:
    """Join the means by lines, each at least as high as the one before."""
    groups: dict[float, list[float]] = {}
    for sample in recording.samples:
        if sample.phase == "steady" and sample.cap is not None:
            groups.setdefault(sample.cap, []).append(sample.throughput_pps)
    points, best = [], 0.0
    for cap in sorted(groups):
        best = max(best, sum(groups[cap]) / len(groups[cap]))
        points.append((cap, best))
    return ThroughputCurve(tuple(points))


def worst_error(recording: Recording, truth: ThroughputCurve) -> float:
    """Return the largest error from the smallest cap measured up, as a share of the truth.

    Where throughput is below 3 % of the top it does not count.
    """
    found = curve_of(recording)
    caps = [found.points[0][0] * 1.03**n for n in range(150)]
    pairs = [(found.throughput(cap), truth.throughput(cap)) for cap in caps]
    return max(abs(f - t) / t for f, t in pairs if t >= 0.03 * truth.top)


@given(
    name=st.sampled_from(("paper", "hinge")),
    noise=st.sampled_from((0.0, 0.005, 0.01, 0.02, 0.03)),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=25)
def test_every_host_is_known_within_its_noise_and_the_budget(
    name: str, noise: float, seed: int
) -> None:
    simulated = router(name, noise=noise, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        recording = swept(simulated, Path(folder) / "sweep.csv")
    assert simulated.samples <= 300
    assert worst_error(recording, simulated.plant.curve) < 0.03 + 2.5 * noise
    assert len(caps_of(recording, "held_out")) == 5


@given(noise=st.sampled_from((0.0, 0.01, 0.03)), seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_a_log_host_is_known_where_it_forwards(noise: float, seed: int) -> None:
    simulated = router("log", noise=noise, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        recording = swept(simulated, Path(folder) / "sweep.csv")
    assert simulated.samples <= 300
    assert worst_error(recording, simulated.plant.curve) < 0.05 + 2.5 * noise


@given(knee=st.floats(0.02, 0.75), rounding=st.floats(0.0, 0.3), offered=st.floats(1e3, 1e7))
@settings(max_examples=25)
def test_the_knee_is_found_wherever_it_is(knee: float, rounding: float, offered: float) -> None:
    points = [(0.5 * knee, 0.5 * offered), ((1 + rounding) * knee, offered)]
    host = HostModel(
        name="any",
        measured_curve=ThroughputCurve(tuple(points), offered),
        cap_floor=0.001,
        cap_ceiling=2.0,
    )
    simulated = Router(host)
    with tempfile.TemporaryDirectory() as folder:
        recording = swept(simulated, Path(folder) / "sweep.csv")
    assert worst_error(recording, host.curve) < 0.03
    assert simulated.samples <= 300


def test_more_caps_lie_at_the_knee_than_where_the_curve_is_straight(tmp_path: Path) -> None:
    host = HostModel(
        name="bent",
        measured_curve=ThroughputCurve(
            ((0.4, 80e3), (0.45, 88e3), (0.5, 94e3), (0.55, 98e3), (0.6, 100e3)), 100e3
        ),
        cap_floor=0.001,
    )
    caps = caps_of(swept(Router(host), tmp_path / "sweep.csv"), "steady")
    straight = [cap for cap in caps if cap < 0.4 / 1.5]
    knee = [cap for cap in caps if 0.4 / 1.5 <= cap <= 0.6]
    assert len(knee) >= 5
    # seven geometric steps come first; a straight line asks for none beyond them
    assert len(straight) <= 6


def test_the_sweep_stops_early_where_there_is_nothing_to_find(tmp_path: Path) -> None:
    host = HostModel(
        name="straight",
        measured_curve=ThroughputCurve(((1.0, 100e3), (2.0, 100e3)), 100e3),
        cap_floor=0.001,
        cap_ceiling=2.0,
    )
    simulated = Router(host)
    swept(simulated, tmp_path / "sweep.csv")
    assert simulated.samples < 170


def visits_by_cap(recording: Recording) -> dict[tuple[str, float], list[int]]:
    """Return the numbers of the visits of each cap that stands for a mean."""
    found: dict[tuple[str, float], list[int]] = {}
    for visit in visits_of(recording.samples):
        if visit.phase in {"steady", "held_out"} and visit.cap is not None:
            found.setdefault((visit.phase, visit.cap), []).append(visit.number)
    return found


def test_every_cap_is_visited_twice_and_no_more_where_visits_agree(tmp_path: Path) -> None:
    recording = swept(router("hinge"), tmp_path / "sweep.csv")
    steps = {v.cap for v in visits_of(recording.samples) if v.phase == "step"}
    counts = {key: len(numbers) for key, numbers in visits_by_cap(recording).items()}
    assert {count for (_, cap), count in counts.items() if cap not in steps} == {2}
    assert max(counts.values()) <= 3  # the steps begin from one of them


def varying(seed: int) -> Callable[[int], float]:
    """Return a speed that keeps changing by some 8 %, slowly beside a visit."""
    chance, speeds = random.Random(seed), [1.0]
    for _ in range(400):
        speeds.append(1 + 0.97 * (speeds[-1] - 1) + 0.02 * chance.gauss(0, 1))
    return speeds.__getitem__


def test_where_the_speed_drifts_the_whole_budget_goes_to_averaging_it(tmp_path: Path) -> None:
    simulated = router("hinge", noise=0.01)
    simulated.drift = varying(1)
    recording = swept(simulated, tmp_path / "sweep.csv")
    assert 290 <= simulated.samples <= 300
    assert min(map(len, visits_by_cap(recording).values())) >= 2
    assert max(map(len, visits_by_cap(recording).values())) <= 7


def test_visiting_again_makes_the_curve_of_a_drifting_host_better(tmp_path: Path) -> None:
    once, again = [], []
    for seed in range(20):
        simulated = router("hinge", noise=0.01)
        simulated.drift = varying(seed)
        recording = swept(simulated, tmp_path / f"{seed}.csv")
        first = {numbers[0] for numbers in visits_by_cap(recording).values()}
        kept = tuple(s for s in recording.samples if s.visit in first)
        truth = simulated.plant.curve
        once.append(worst_error(Recording(recording.metadata, kept), truth))
        again.append(worst_error(recording, truth))
    assert fmean(again) < 0.8 * fmean(once)


def test_held_out_caps_are_none_that_the_curve_was_made_of(tmp_path: Path) -> None:
    recording = swept(router("paper", noise=0.01), tmp_path / "sweep.csv")
    steady = caps_of(recording, "steady")
    held_out = caps_of(recording, "held_out")
    assert len(held_out) == 5
    for cap in held_out:
        assert min(abs(cap - other) for other in steady) >= 0.02 * cap


def test_whole_percents_are_asked_for_where_nothing_else_can_be_given(tmp_path: Path) -> None:
    simulated = router("paper", noise=0.01)
    assert simulated.span.quantum == 0.01
    swept(simulated, tmp_path / "sweep.csv")
    assert [cap for cap in simulated.caps if abs(cap * 100 - round(cap * 100)) > 1e-9] == []
    assert min(simulated.caps) >= 0.01


def test_no_cap_leaves_the_span(tmp_path: Path) -> None:
    simulated = router("hinge", noise=0.02)
    simulated.span = Span(0.05, 0.4)
    swept(simulated, tmp_path / "sweep.csv")
    assert min(simulated.caps) == 0.05
    assert max(simulated.caps) == 0.4


def test_steps_go_up_and_down_between_two_caps_that_bind(tmp_path: Path) -> None:
    recording = swept(router("hinge"), tmp_path / "sweep.csv")
    steps = [v for v in visits_of(recording.samples) if v.phase == "step"]
    assert len(steps) == 8
    caps = [v.cap for v in steps]
    assert caps == [caps[0], caps[1]] * 4
    before = [v for v in visits_of(recording.samples) if v.number == steps[0].number - 1]
    assert before[0].cap == caps[1]
    top = bundled_host("hinge").curve.top
    assert all(0.2 * top < v.mean < 0.95 * top for v in steps)


def test_no_sample_is_missing_between_a_change_of_cap_and_its_step(tmp_path: Path) -> None:
    recording = swept(router("paper"), tmp_path / "sweep.csv")
    first = min(s.at for s in recording.samples if s.phase == "step")
    last = max(s.at for s in recording.samples if s.phase == "step")
    times = [s.at for s in recording.samples if first - 1 <= s.at <= last]
    assert times == [first - 1 + n for n in range(len(times))]


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("samples", [40, 50, 90, 150])
def test_a_short_budget_is_kept_and_still_has_steps(
    tmp_path: Path, name: str, samples: int
) -> None:
    simulated = router(name, noise=0.01)
    recording = swept(simulated, tmp_path / "sweep.csv", samples)
    assert simulated.samples <= samples
    assert len(caps_of(recording, "steady")) >= 5
    assert len([v for v in visits_of(recording.samples) if v.phase == "step"]) >= 3


def test_no_caps_are_wasted_far_above_what_a_router_uses(tmp_path: Path) -> None:
    capable = ThroughputCurve(((1.0, 1e6), (2.0, 1e6)))
    simulated = Router(HostModel(name="light", measured_curve=capable, cap_floor=0.001), noise=0.01)
    simulated.plant = replace(simulated.plant, offered=PacketsPerSecond(120e3))
    simulated.blind_uncapped = True
    simulated.span = Span(0.002, 1.9)
    recording = swept(simulated, tmp_path / "sweep.csv")
    caps = caps_of(recording, "steady")
    assert caps[-1] == 1.9
    assert len([cap for cap in caps if cap > 0.2]) <= 2
    assert worst_error(recording, ThroughputCurve(((0.12, 120e3), (2.0, 120e3)))) < 0.05


def test_a_router_that_answers_to_no_cap_is_asked_at_the_smallest(tmp_path: Path) -> None:
    host = HostModel(
        name="kernel",
        measured_curve=ThroughputCurve(((0.0001, 99e3), (1.0, 100e3)), 100e3),
        cap_floor=0.0001,
    )
    simulated = Router(host)
    simulated.span = Span(0.005, 2.0)
    swept(simulated, tmp_path / "sweep.csv")
    assert min(simulated.caps) == 0.005


def test_a_router_that_forwards_nothing_ends_the_sweep(tmp_path: Path) -> None:
    simulated = router("log")
    simulated.span = Span(0.001, 0.01)
    recording = swept(simulated, tmp_path / "sweep.csv")
    assert simulated.samples <= 300
    assert {s.phase for s in recording.samples} >= {"uncapped", "steady"}


def test_visits_end_when_their_mean_is_certain() -> None:
    request = Request("steady", 0.1, at_least=3, at_most=8, interval=0.01)
    assert not enough([100.0, 100.0], request, 0.0)
    assert enough([100.0, 100.0, 100.0], request, 0.0)
    assert not enough([100.0, 110.0, 90.0], request, 0.0)
    assert not enough([100.0, 100.0, 100.0], request, 0.04)
    assert enough([100.0, 110.0] * 4, request, 0.04)


def test_one_disturbed_visit_does_not_make_the_host_noisy() -> None:
    calm = [sample(at, 100.0 + at % 2, visit=at // 4) for at in range(12)]
    wild = [sample(12 + at, 100.0 + 90 * (at % 2), visit=3) for at in range(4)]
    assert noise_of(visits_of([*calm, *wild])) < 0.02


def test_what_is_left_is_never_more_than_the_budget() -> None:
    span, aims = Span(0.01, 1.0), aims_for(300)
    nothing = Known((), span, aims)
    assert most_left(nothing, 300) == 300
    request = next_request(nothing, 300)
    assert request is not None
    assert request.phase == "uncapped"
    assert next_request(nothing, 2) is None


def test_after_a_break_the_step_begins_from_a_settled_cap(tmp_path: Path) -> None:
    recording = swept(router("hinge"), tmp_path / "sweep.csv")
    second = [v for v in visits_of(recording.samples) if v.phase == "step"][1]
    part = [s for s in recording.samples if s.visit < second.number]
    known = Known(visits_of(part), Span(0.01, 2.0), SweepPlan(), fresh=True)
    request = next_request(known, 200)
    assert request is not None
    assert (request.phase, request.settles) == ("steady", True)
    going_on = next_request(Known(visits_of(part), Span(0.01, 2.0), SweepPlan(), fresh=False), 200)
    assert going_on is not None
    assert going_on.phase == "step"


def sample(at: int, throughput: float, visit: int) -> Sample:
    return Sample(at=float(at), cap=0.1, throughput_pps=throughput, visit=visit)
