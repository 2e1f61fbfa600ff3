"""HyGenICC's published laws, on both sides of every bound; errata as decision 0073 settles them."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.laws.hygenicc import (
    INACTIVITY_S,
    Received,
    Sent,
    feedback_arrived,
    packet_arrived,
    packet_departs,
    scale,
    timer,
)
from xco.laws.token_bucket import Bucket, departure, full

UNIT, SHARE, TIMEOUT = 1e6, 250e6, 2e-3
SENT = Sent(R=100e6, senttime=10.0)


def after(sent: Sent, now: float = 10.0) -> Sent:
    found = timer(sent, now, SHARE, UNIT, TIMEOUT)
    assert found is not None
    return found


def test_the_papers_example_of_a_unit_and_its_misprint() -> None:
    assert scale(1e9, 1000, 100e-6) == pytest.approx(80e6)
    assert scale(1e9, 1000, 10e-3) == pytest.approx(0.8e6), "8 Mb/s in the paper"
    assert scale(50e6, 1000, 100e-6) == 50e6


def test_without_marks_the_rate_rises_by_a_unit_up_to_the_share() -> None:
    assert after(SENT).R == 101e6
    assert after(replace(SENT, R=SHARE - 1)).R == SHARE


def test_each_mark_takes_a_unit_down_to_nothing() -> None:
    assert after(feedback_arrived(SENT, 3, 10.0)).R == 97e6
    assert after(feedback_arrived(SENT, 1000, 10.0)).R == 0.0


def test_a_period_without_marks_raises_the_rate_though_congestion_was_reported() -> None:
    """As published, `feedback >= 0` is always true, and the rate would stay."""
    reported = after(feedback_arrived(SENT, 2, 10.0))
    assert reported.isdetected
    assert after(reported, 10.0 + TIMEOUT / 2).R == reported.R + UNIT


def test_marks_are_counted_once() -> None:
    assert after(feedback_arrived(SENT, 3, 10.0)).feedback == 0


@pytest.mark.parametrize(("passed", "known"), [(0.9 * TIMEOUT, True), (TIMEOUT, False)])
def test_congestion_is_over_after_the_timeout(passed: float, *, known: bool) -> None:
    sent = replace(feedback_arrived(SENT, 5, 10.0), senttime=10.0)
    assert after(sent, 10.0 + passed).isdetected is known


@pytest.mark.parametrize(("idle", "active"), [(0.99, True), (INACTIVITY_S, False)])
def test_who_sends_nothing_for_a_second_gives_its_share_back(idle: float, *, active: bool) -> None:
    assert (timer(SENT, 10.0 + idle, SHARE, UNIT, TIMEOUT) is not None) is active


@given(st.lists(st.integers(0, 50), max_size=60), st.floats(0, 250e6))
def test_a_rate_stays_between_nothing_and_the_share(marks: list[int], rate: float) -> None:
    sent = replace(SENT, R=rate)
    for number, count in enumerate(marks):
        now = 10.0 + number * 5e-4
        if count:
            sent = feedback_arrived(sent, count, now)
        sent = after(replace(sent, senttime=now), now)
        assert 0 <= sent.R <= SHARE


@given(st.lists(st.tuples(st.sampled_from("mpd"), st.floats(0, 1e-3)), max_size=80))
def test_every_mark_is_reflected_once_or_still_waits(events: list[tuple[str, float]]) -> None:
    received, now, marks, reflected = Received(), 0.0, 0, 0
    for kind, pause in events:
        now += pause
        if kind == "d":
            received, bit = packet_departs(received, now)
            reflected += bit
            continue
        marks += kind == "m"
        received, message = packet_arrived(received, now, 1e-3, marked=kind == "m")
        reflected += message
    assert reflected + received.ecnmarks == marks


def test_marks_go_back_in_a_message_only_where_no_packet_took_them() -> None:
    received, message = packet_arrived(Received(), 5.0, 1e-3, marked=True)
    assert (received.ecnmarks, message) == (0, 1)
    received, message = packet_arrived(received, 5.0 + 0.5e-3, 1e-3, marked=True)
    assert (received.ecnmarks, message) == (1, 0), "one was sent just now"
    received, bit = packet_departs(received, 5.0 + 0.6e-3)
    assert (received.ecnmarks, bit) == (0, True)
    assert packet_departs(received, 6.0) == (received, False)


def test_a_sender_gains_no_tokens_by_being_refused() -> None:
    """As published, each refused packet adds the tokens since the last one sent."""
    bucket = replace(full(1000.0, 100.0, 0.0), T=0.0)
    passed, now = 0, 0.0
    for _ in range(1000):
        now += 1e-3
        bucket, leaves = departure(bucket, 50.0, now)
        passed += 50 * leaves
    assert passed <= 1000 * 1.0 + 100


@given(st.lists(st.tuples(st.floats(0, 0.1), st.floats(1, 1500)), max_size=60))
def test_a_bucket_passes_its_rate_and_depth_at_most(packets: list[tuple[float, float]]) -> None:
    bucket, now, passed = Bucket(5000.0, 3000.0, 3000.0, 0.0), 0.0, 0.0
    for pause, size in packets:
        now += pause
        bucket, leaves = departure(bucket, size, now)
        passed += size * leaves
        assert passed <= 5000.0 * now + 3000.0 + 1e-6
        assert 0 <= bucket.T <= bucket.B
    assert math.isfinite(passed)
