"""The rate of a port: kept, used, and never the cause of a loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zovn_rig import Rig, build

from zovn.errors import SettingsError
from zovn.native.switch import PortSettings, Settings

TOLERANCE_S = 100e-6
SHORT_STALL = Settings(stall_s=0.001)
RATES = st.integers(1_000_000, 10_000_000_000)
LENGTHS = st.integers(60, 1_514)
PAUSES = st.lists(st.floats(0, 0.003), min_size=1, max_size=60)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def limited(rate_bps: int, settings: Settings | None = None) -> Rig:
    """Return a switch of which port 1 has a rate; addresses are known, and its line is free."""
    rig = Rig([PortSettings(), PortSettings(rate_bps=rate_bps)], settings, received=256)
    rig.know()
    rig.step(1.0)
    rig.drain()
    return rig


@given(RATES, LENGTHS, PAUSES)
def test_in_no_time_more_than_the_rate_goes_out(
    rate_bps: int, length: int, pauses: list[float]
) -> None:
    rig = limited(rate_bps)
    sent: list[tuple[float, int]] = []
    now_s = 0.0
    for pause in pauses:
        while rig.send(0, 1, length):
            pass
        rig.step(pause)
        now_s += pause
        sent.append((now_s, sum(map(len, rig.ports[1].receive_all()))))
    for first in range(len(sent)):
        total = 0
        for at_s, size in sent[first:]:
            total += size
            allowed = rate_bps / 8 * (at_s - sent[first][0] + TOLERANCE_S) + length
            assert total <= allowed + 1e-6 * rate_bps


@given(st.integers(1_000_000, 1_000_000_000), LENGTHS, st.integers(20, 200))
def test_a_switch_that_steps_when_due_uses_all_of_the_rate(
    rate_bps: int, length: int, frames: int
) -> None:
    rig = limited(rate_bps)
    delivered, elapsed_s = 0, 0.0
    while delivered < frames:
        while rig.send(0, 1, length):
            pass
        rig.step()
        delivered += len(rig.ports[1].receive_all())
        due_s = rig.switch.due_s() or 0.0  # none waits where all fit into the tolerance
        rig.switch.now_ns += round(due_s * 1e9)
        elapsed_s += due_s
    needed_s = frames * length * 8 / rate_bps
    assert elapsed_s <= needed_s + length * 8 / rate_bps + 1e-9 * frames


@given(RATES, LENGTHS)
def test_waiting_for_the_rate_is_no_stall_and_loses_nothing(rate_bps: int, length: int) -> None:
    rig = limited(rate_bps, SHORT_STALL)
    sent = [rig.send(0, 1, length) for _ in range(10)]
    got = []
    for _ in range(200):
        rig.step(0.001)
        got += rig.ports[1].receive_all()
    assert got == sent
    assert not rig.drops(0)
    assert rig.counters(1).stalls == 0


def test_without_a_rate_nothing_is_due() -> None:
    rig = limited(0)
    rig.send(0, 1)
    rig.step()
    assert rig.switch.due_s() is None


@pytest.mark.parametrize("rate_bps", [1, 999_999, 1_000_000_000_001, 2**64 - 1])
def test_a_rate_out_of_range_is_refused(rate_bps: int) -> None:
    with pytest.raises(SettingsError, match="rate: from 1 Mb/s to 1 Tb/s"):
        limited(rate_bps)
