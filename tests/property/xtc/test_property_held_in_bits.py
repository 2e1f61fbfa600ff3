"""The loop in bits/s on the simulated plant, for any setpoint and any sizes of frames."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_rig import Rig, plan

from xtc.modes import Finding
from xtc.wire import Activate

SETTLED = 10
"""Samples after which a loop has settled on frames of another size."""


@given(
    sizes=st.lists(st.floats(64, 1514), min_size=1, max_size=4),
    setpoint=st.floats(5e6, 40e6),  # what the plant can forward of each size
)
@settings(max_examples=30)
def test_a_bit_rate_is_held_whatever_the_size_of_frames(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[float], setpoint: float
) -> None:
    rig = Rig(tmp_path_factory.mktemp("bits"), {"r": plan("r")})
    rig.ask(Activate("r", setpoint_bps=setpoint))
    router = rig.plant.routers["r"]
    for size in sizes:
        router.frame_bytes = size
        rig.tick(SETTLED)
        assert 8 * size * router.state.throughput == pytest.approx(setpoint, rel=0.02)
        assert rig.report("r").finding is Finding.NONE
    rig.crash()
