"""Setpoints: read in either unit, refused with the fix, and counted as a loop does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UnitError
from common.setpoint import Setpoint, Unit, counted, one_of, parse_setpoint
from common.units import MAX_BIT_RATE, MAX_RATE

BITS = st.floats(1e3, 1e12).map(lambda rate: Setpoint(rate, Unit.BITS))
PACKETS = st.floats(1e-3, MAX_RATE).map(Setpoint)
TYPED = st.text() | st.from_regex(r"\A\s?[0-9.e+-]{0,9} ?[kMG]?(pps|p/s|b/s|bit/s|bps|B/s|b|)\Z")


@pytest.mark.parametrize(
    ("text", "setpoint"),
    [
        ("20kpps", Setpoint(20e3)),
        ("20k", Setpoint(20e3)),
        ("50M", Setpoint(50e6)),
        ("20000", Setpoint(20e3)),
        ("50Mb/s", Setpoint(50e6, Unit.BITS)),
        ("50 Mbit/s", Setpoint(50e6, Unit.BITS)),
    ],
)
def test_the_unit_is_read_with_the_rate(text: str, setpoint: Setpoint) -> None:
    assert parse_setpoint(text) == setpoint


NEITHER = "is not a rate such as 20kpps (packets) or 50Mb/s (bits)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("50Mb", "'50Mb' is not a rate: write 50Mb/s"),
        ("50 Mbit", "'50 Mbit' is not a rate: write 50Mb/s"),
        ("20kbps", "'20kbps' is not clear: write 20kb/s for bits, or packets as in 20kpps"),
        ("6MB/s", "'6MB/s' is not a rate in bits: bytes are not counted, write bits as in 50Mb/s"),
        ("-5Mb/s", f"'-5Mb/s' {NEITHER}"),
        ("fast", f"'fast' {NEITHER}"),
        ("0.5kb/s", "'500 b/s' is not a bit rate from 1kb/s to 1000Gb/s"),
        ("0", "'0' is not a rate above 0 and at most 1e9 packets/s"),
    ],
)
def test_a_slip_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_setpoint(text, field="router.r.setpoint")
    assert str(caught.value) == f"router.r.setpoint: {words}"


@given(TYPED)
def test_every_text_is_a_setpoint_in_range_or_refused(text: str) -> None:
    try:
        setpoint = parse_setpoint(text)
    except UnitError:
        return
    assert 0 < setpoint.target <= MAX_RATE
    assert setpoint.unit is Unit.PACKETS or 1e3 <= setpoint.rate <= MAX_BIT_RATE


@given(BITS | PACKETS)
def test_a_setpoint_that_is_shown_can_be_read_back(setpoint: Setpoint) -> None:
    read = parse_setpoint(str(setpoint))
    assert read.unit is setpoint.unit
    assert read.rate == pytest.approx(setpoint.rate, rel=0.0051)


@given(BITS | PACKETS)
def test_a_setpoint_stands_in_its_own_unit_alone(setpoint: Setpoint) -> None:
    assert one_of(setpoint.pps, setpoint.bps) == setpoint
    assert None in {setpoint.pps, setpoint.bps}
    assert counted(setpoint.unit, setpoint.pps, setpoint.bps) == setpoint.target


@pytest.mark.parametrize("rates", [(None, None), (1e3, 1e3)])
def test_a_setpoint_is_given_once(rates: tuple[float | None, float | None]) -> None:
    with pytest.raises(ValueError, match="not both"):
        one_of(*rates)


def test_a_rate_that_is_not_known_is_none_in_any_unit() -> None:
    assert counted(Unit.PACKETS, None, 1e6) is None
    assert counted(Unit.BITS, 1e6, None) is None
