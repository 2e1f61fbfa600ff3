"""SDN-GCC's published laws, and that they are not fair: a newcomer keeps its lead."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.laws.gcc import (
    INACTIVITY_S,
    Source,
    bounded,
    new_marks,
    notified,
    shares,
    shares_by_bytes,
    sources_through,
    updated,
)

UNIT, SHARE, T_I, T_C = 0.8e6, 1e9, 5e-3, 5e-3
SOURCE = Source(R=300e6, sent_time=10.0)


def test_marks_of_every_period_take_a_unit_each() -> None:
    first = notified(SOURCE, 4.0, 10.0, UNIT, T_I)
    assert pytest.approx(SOURCE.R) == first.R, "an infinite time has passed since the last report"
    second = notified(first, 4.0, 10.0 + T_I, UNIT, T_I)
    assert pytest.approx(SOURCE.R - 4 * UNIT) == second.R


def test_a_report_without_marks_is_no_congestion() -> None:
    """As published, `marks >= 0` is always true."""
    assert notified(SOURCE, 0.0, 10.0, UNIT, T_I) == SOURCE


def test_a_rate_rises_while_no_congestion_is_detected() -> None:
    """As published, it rises while congestion is detected."""
    congested = replace(SOURCE, cong_time=10.0)
    assert updated(congested, 10.0 + T_C / 2, SHARE, UNIT, T_C) == congested
    calm = updated(congested, 10.0 + T_C, SHARE, UNIT, T_C)
    assert calm is not None
    assert calm.R == SOURCE.R + UNIT


def test_a_rate_stays_within_its_bounds() -> None:
    top = updated(replace(SOURCE, R=SHARE), 10.0, SHARE, UNIT, T_C)
    assert top is not None
    assert top.R == SHARE
    assert bounded(replace(SOURCE, R=-5.0), 10e6).R == 10e6
    assert updated(SOURCE, 10.0 + INACTIVITY_S, SHARE, UNIT, T_C) is None


def test_new_marks_are_what_a_counter_has_gained_also_after_a_restart() -> None:
    assert new_marks({"p": 10, "q": 7}, {"p": 25, "q": 3, "r": 2}) == {"p": 15, "q": 3, "r": 2}


def test_the_sources_of_a_port_are_those_of_the_pairs_behind_it() -> None:
    pairs = [("a", "x"), ("b", "x"), ("b", "y"), ("c", "z")]
    assert sources_through("p1", {"x": "p1", "y": "p2"}, pairs) == {"a", "b"}
    assert sources_through("p3", {"x": "p1"}, pairs) == set()


@given(st.integers(0, 10_000), st.dictionaries(st.text(max_size=3), st.floats(0, 1e9), max_size=9))
def test_all_marks_are_given_out_and_no_more(alpha: int, sent: dict[str, float]) -> None:
    for given_out in (shares(alpha, sent) if sent else {}, shares_by_bytes(alpha, sent)):
        total = sum(given_out.values())
        assert total == pytest.approx(alpha) or not given_out


# --- a fluid model of the paper's dumbbell: greedy senders, one port, a round trip a step

CAPACITY, RTT, PACKET = 1e9, 1e-4, 12_000.0
BUFFER, MARKED_AT = 100 * PACKET, 20 * PACKET
Divide = Callable[[int, Mapping[str, float]], dict[str, float]]


def port(queue: float, sent: float) -> tuple[float, float]:
    """Return queue and marked packets after a round trip of a port that marks above 20 packets."""
    after = min(BUFFER, max(0.0, queue + sent - CAPACITY * RTT))
    high, low = max(queue, after), min(queue, after)
    above = 0.0 if high <= MARKED_AT else min(1.0, (high - MARKED_AT) / max(high - low, 1.0))
    return after, sent / PACKET * above


def phase(divide: Divide, seconds: float = 4.0) -> list[float]:
    """Return mean rates of three senders and a newcomer at full rate, from the first second on."""
    names = ("new", "a", "b", "c")
    rates = {name: Source(CAPACITY if name == "new" else CAPACITY / 3, 0.0) for name in names}
    means, queue, marks = dict.fromkeys(names, 0.0), 0.0, 0.0
    sent = dict.fromkeys(names, 0.0)
    every = round(T_I / RTT)
    for step in range(round(seconds / RTT)):
        now = step * RTT
        for name, source in rates.items():
            sent[name] += source.R * RTT
            means[name] += source.R * RTT * (now >= 1.0)
        queue, marked = port(queue, sum(source.R for source in rates.values()) * RTT)
        marks += marked
        if step % every == every - 1:
            reports = divide(round(marks), sent)
            for name, source in rates.items():
                told = notified(source, reports.get(name, 0.0), now, UNIT, T_I)
                raised = updated(replace(told, sent_time=now), now, CAPACITY, UNIT, T_C)
                assert raised is not None
                rates[name] = bounded(raised, 0.01 * CAPACITY)
            marks, sent = 0.0, dict.fromkeys(names, 0.0)
    return [total / (seconds - 1.0) for total in means.values()]


def jain(rates: list[float]) -> float:
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def test_as_published_a_newcomer_at_full_rate_keeps_its_lead() -> None:
    """Marks divided equally are additive increase and additive decrease."""
    rates = phase(lambda alpha, sent: shares(alpha, sent.keys()))
    assert rates[0] > 2 * rates[1]
    assert jain(rates) < 0.8


def test_marks_divided_by_bytes_sent_are_fair() -> None:
    rates = phase(shares_by_bytes)
    assert jain(rates) > 0.98
    assert max(rates) < 1.3 * CAPACITY / 4
