"""Telemetry of a host, from any messages: nothing old or impossible is believed."""

import math

from hypothesis import given
from hypothesis import strategies as st
from policer_plant import report_of

from policer.contracts.contract import MAX_PPS
from policer.decide.telemetry import BEYOND, REBOOT_S, HostTelemetry, seen
from xtc.wire import Report, Telemetry

CAPACITY = 1e5
values = st.none() | st.floats() | st.floats(0, 1e5)
reports = st.builds(
    lambda vr, throughput, offered, cap: report_of(
        vr, throughput_pps=throughput, offered_pps=offered, cap=cap
    ),
    st.sampled_from("abc"),
    values,
    values,
    values,
)
messages = st.builds(
    Telemetry,
    at=st.floats() | st.floats(0, 100),
    tick=st.integers(),
    routers=st.lists(reports, max_size=4).map(tuple),
)
histories = st.lists(st.tuples(st.floats(0.01, 10), messages), max_size=30)


def possible(report: Report) -> bool:
    return all(
        value is None or 0 <= value <= MAX_PPS
        for value in (report.throughput_pps, report.offered_pps, report.cap)
    )


@given(histories)
def test_what_is_kept_is_possible_and_in_order(history: list[tuple[float, Telemetry]]) -> None:
    now, telemetry = 0.0, HostTelemetry()
    for passed, message in history:
        now += passed
        after = seen(telemetry, message, now, CAPACITY)
        assert math.isfinite(after.host_clock)
        assert all(possible(report) for report in after.routers.values())
        total = sum(report.throughput_pps or 0.0 for report in after.routers.values())
        assert total <= BEYOND * CAPACITY
        back = after.host_clock < telemetry.host_clock
        silent = telemetry.heard_at is None or now - telemetry.heard_at >= REBOOT_S
        assert not back or silent
        if after.routers is not telemetry.routers:
            assert message.at > telemetry.host_clock or silent
        telemetry = after


@given(histories)
def test_whatever_was_heard_a_host_that_speaks_sense_is_soon_believed(
    history: list[tuple[float, Telemetry]],
) -> None:
    now, telemetry = 0.0, HostTelemetry()
    for passed, message in history:
        now += passed
        telemetry = seen(telemetry, message, now, CAPACITY)
    for second in range(8):
        now += 1.0
        telemetry = seen(telemetry, Telemetry(200.0 + second, second, ()), now, CAPACITY)
    assert telemetry.reachable(now)
    assert telemetry.distrust == ""
    assert telemetry.host_clock == 207.0
