"""Every load: its packets add up over any steps, within its rates, and its cycles repeat."""

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from common.errors import ConfigError, UnitError
from xtc.simulation.load_text import FORMS, HEADER, parse_load, parse_trace
from xtc.simulation.loads import Load, Pulses, Ramp, Sine, Steady, Steps, walk
from xtc.simulation.token_bucket import passed

rates = st.floats(1.0, 1e6)
cycles = st.floats(0.1, 100.0)
spans = st.tuples(st.floats(0.0, 1e4), st.floats(1.0, 1e6)).map(sorted).map(tuple)


def pulses(peak: float, cycle: float, share: float) -> Pulses:
    return Pulses(peak, cycle * share, cycle)


cyclic = st.one_of(
    st.builds(pulses, rates, cycles, st.floats(0.05, 0.95)),
    st.builds(lambda span, cycle: Sine(*span, cycle), spans, cycles),
    st.builds(lambda span, cycle: Ramp(*span, cycle), spans, cycles),
)
walks = st.builds(
    lambda span, step, seed: walk(max(span[0], 1.0), max(*span, 2.0), step, 60.0, seed),
    *(spans, st.floats(0.1, 5.0), st.integers(0, 99)),
)
traces = st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e6)), min_size=1, max_size=8).map(
    lambda rows: Steps(*zip(*dict(sorted(rows)).items(), strict=True))
)
loads = st.one_of(st.builds(Steady, rates), cyclic, walks, traces)
instants = st.lists(st.floats(0, 60), min_size=2, max_size=6).map(sorted)


@given(loads, instants)
def test_no_load_sends_less_than_nothing_or_more_than_its_peak(load: Load, at: list[float]) -> None:
    for begin, end in pairwise(at):
        sent = load.sent(end) - load.sent(begin)
        slack = 1e-6 * load.peak * 100 + 1e-6
        assert -slack <= sent <= load.peak * (end - begin) + slack


@given(loads)
def test_nothing_is_sent_before_the_start(load: Load) -> None:
    assert load.sent(0.0) == 0.0


@given(cyclic, st.floats(0, 100), st.integers(1, 50))
def test_a_cycle_is_like_the_next(load: Pulses | Sine | Ramp, begin: float, cycles: int) -> None:
    later = begin + cycles * load.cycle_s
    one = load.sent(load.cycle_s)
    assert load.sent(later) - load.sent(begin) == pytest.approx(cycles * one, rel=1e-6, abs=1e-3)


@given(spans, cycles)
def test_sine_and_ramp_send_the_mean_of_their_rates(
    span: tuple[float, float], cycle: float
) -> None:
    mean = sum(span) / 2 * cycle
    for load in (Sine(*span, cycle), Ramp(*span, cycle)):
        assert load.sent(cycle) == pytest.approx(mean, rel=1e-9, abs=1e-6)


def test_a_load_is_at_its_peak_where_its_shape_has_it() -> None:
    short = 1e-4
    for load, at in (
        (Pulses(60e3, 1.0, 2.0), 0.5),
        (Sine(5e3, 35e3, 20.0), 5.0),
        (Ramp(0.0, 60e3, 120.0), 60.0),
        (Steps([0.0, 10.0], [1e3, 2e3]), 10.0),
    ):
        assert (load.sent(at + short) - load.sent(at)) / short == pytest.approx(load.peak, rel=1e-3)
    assert Pulses(60e3, 1.0, 2.0).sent(2.0) == Pulses(60e3, 1.0, 2.0).sent(1.0) == 60e3


@given(spans, cycles)
def test_curves_are_told_apart_in_sixteen_parts(span: tuple[float, float], cycle: float) -> None:
    assert Sine(*span, cycle).finest == Ramp(*span, cycle).finest == cycle / 16


def test_a_walk_steps_by_15_percent_until_the_end_of_the_run() -> None:
    load = walk(1e-3, 1e9, 2.0, 4000.0, 7)
    rates = [(load.sent(2.0 * n + 2) - load.sent(2.0 * n)) / 2 for n in range(2001)]
    assert rates[0] == pytest.approx(1e3)
    logs = [math.log(b / a) for a, b in pairwise(rates)]
    assert all(logs)
    assert math.sqrt(sum(step * step for step in logs) / 2000) == pytest.approx(0.15, rel=0.05)
    assert load.sent(4010.0) - load.sent(4002.0) == pytest.approx(8 * rates[-1])


@given(st.integers(0, 9))
def test_a_walk_repeats_with_its_seed_and_stays_within_its_rates(seed: int) -> None:
    one, same, other = (walk(5e3, 80e3, 0.5, 30.0, n) for n in (seed, seed, seed + 1))
    amounts = [one.sent((n + 1) / 2) - one.sent(n / 2) for n in range(60)]
    assert amounts == [same.sent((n + 1) / 2) - same.sent(n / 2) for n in range(60)]
    assert amounts != [other.sent((n + 1) / 2) - other.sent(n / 2) for n in range(60)]
    assert min(amounts) >= 5e3 / 2 - 1e-6
    assert max(amounts) <= 80e3 / 2 + 1e-6


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1e4)), max_size=12), st.floats(1, 1e3))
def test_a_bucket_lets_by_its_rate_and_depth_in_any_window_and_no_less(
    steps: list[tuple[float, float]], depth: float
) -> None:
    """By all windows; what waits for the bucket may pass as soon as it has room."""
    rate, level, passed_by = 100.0, math.inf, [0.0]
    at = [0.0]
    for dt, arrived in steps:
        level, let_by = passed(level, rate, depth, arrived, dt)
        assert 0 <= let_by <= arrived
        assert 0 <= level <= depth
        if let_by < arrived:
            assert level == 0
        passed_by.append(passed_by[-1] + let_by)
        at.append(at[-1] + dt)
    for i, begin in enumerate(at):
        for j in range(i, len(at)):
            allowed = rate * (at[j] - begin) + depth
            assert passed_by[j] - passed_by[i] <= allowed * (1 + 1e-9)


typed = st.sampled_from(list(FORMS)).flatmap(
    lambda kind: st.from_regex(r"\A(:[0-9a-z.-]{0,12}){0,3}\Z").map(lambda rest: kind + rest)
)


@given(st.text() | typed)
def test_every_text_is_a_load_or_refused(text: str) -> None:
    assume(not text.startswith("trace"))
    try:
        load = parse_load(text, 60e3, duration_s=60.0)
    except UnitError:
        return
    assert load.finest >= 0.005 - 1e-9
    assert 0 < load.peak <= 1e9
    assert load.sent(60.0) >= 0


@given(st.binary() | st.text().map(lambda text: f"{HEADER}\n{text}".encode()))
def test_every_file_is_a_trace_or_refused(content: bytes) -> None:
    try:
        trace = parse_trace(content, "load.csv")
    except ConfigError:
        return
    assert 0 <= trace.sent(100.0) <= trace.peak * 100.0 * (1 + 1e-9)
