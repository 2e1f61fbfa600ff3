"""Bursts: read in packets, bits or time, kept within bounds, refused with what to write."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.burst import burst_bounds, check_burst, parse_burst
from common.errors import UnitError
from common.setpoint import BURST_S, LEAST_BURST, Setpoint, Unit

PACKETS = Setpoint(20e3)
BITS = Setpoint(50e6, Unit.BITS)
SETPOINTS = st.floats(1e-3, 1e9).map(Setpoint) | st.floats(1e3, 1e12).map(
    lambda rate: Setpoint(rate, Unit.BITS)
)
TYPED = st.text() | st.from_regex(r"\A\s?-?[0-9.e+-]{0,9} ?[kMG]?(p|b|bit|ms|s|min|h|)\Z")


@pytest.mark.parametrize(
    ("text", "setpoint", "burst"),
    [
        ("4000", PACKETS, 4e3),
        ("4k", PACKETS, 4e3),
        ("4 kp", PACKETS, 4e3),
        ("1", PACKETS, 1.0),
        ("500ms", PACKETS, 10e3),
        ("1min", PACKETS, 1.2e6),
        ("2Mb", BITS, 2e6),
        ("2 Mbit", BITS, 2e6),
        ("0.5s", BITS, 25e6),
        ("1Gb", BITS, 1e9),
    ],
)
def test_a_burst_is_read_in_the_setpoints_unit(text: str, setpoint: Setpoint, burst: float) -> None:
    assert parse_burst(text, setpoint) == pytest.approx(burst)


PACKETS_AS = "is not a burst such as 4000 (packets) or 200ms (of the setpoint)"
BITS_AS = "is not a burst such as 2Mb (bits) or 200ms (of the setpoint)"
PACKETS_IN = (
    "is not between 1 and 1.2e+06 packets: at least one packet, at most 60 s of the setpoint"
)
BITS_IN = "is not between 12144 and 3e+09 bits: at least one frame, at most 60 s of the setpoint"


@pytest.mark.parametrize(
    ("text", "setpoint", "words"),
    [
        ("0", PACKETS, f"'0' {PACKETS_IN}"),
        ("-5", PACKETS, f"'-5' {PACKETS_IN}"),
        ("0.5", PACKETS, f"'0.5' {PACKETS_IN}"),
        ("61s", PACKETS, f"'1.22e+06' {PACKETS_IN}"),
        ("0ms", PACKETS, f"'0' {PACKETS_IN}"),
        ("1e99", PACKETS, f"'1e+99' {PACKETS_IN}"),
        ("1500b", BITS, f"'1500' {BITS_IN}"),
        ("-1s", PACKETS, f"'-1s' {PACKETS_AS}"),
        ("nan", PACKETS, f"'nan' {PACKETS_AS}"),
        ("1.2.3", PACKETS, f"'1.2.3' {PACKETS_AS}"),
        ("1.2.3s", PACKETS, f"'1.2.3s' {PACKETS_AS}"),
        ("", PACKETS, f"'' {PACKETS_AS}"),
        ("2Mb", PACKETS, f"'2Mb' {PACKETS_AS}"),
        ("4kpps", PACKETS, f"'4kpps' {PACKETS_AS}"),
        ("4000", BITS, f"'4000' {BITS_AS}"),
    ],
)
def test_a_slip_is_refused_with_what_to_write(text: str, setpoint: Setpoint, words: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_burst(text, setpoint, field="router.r.burst")
    assert str(caught.value) == f"router.r.burst: {words}"


@given(TYPED, SETPOINTS)
def test_every_text_is_a_burst_in_range_or_refused(text: str, setpoint: Setpoint) -> None:
    try:
        burst = parse_burst(text, setpoint)
    except UnitError:
        return
    least, most = burst_bounds(setpoint)
    assert least <= burst <= most


@pytest.mark.parametrize("burst", [math.nan, math.inf, -math.inf, 0.0, -1.0])
@pytest.mark.parametrize("setpoint", [PACKETS, BITS])
def test_what_is_no_burst_is_refused(burst: float, setpoint: Setpoint) -> None:
    with pytest.raises(UnitError):
        check_burst(burst, setpoint)


@given(SETPOINTS)
def test_the_default_is_within_bounds_and_never_less_than_a_packet_or_frame(
    setpoint: Setpoint,
) -> None:
    assert check_burst(setpoint.allowance, setpoint) == setpoint.allowance
    assert setpoint.allowance >= LEAST_BURST[setpoint.unit]
    assert setpoint.allowance >= BURST_S * setpoint.rate
