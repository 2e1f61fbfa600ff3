"""A delayed management network in real namespaces: both ways, both ends of the range, and back."""

import os
from collections.abc import Iterator

import pytest
from support.waiting import eventually

from lab.errors import BadRequestError, LabError
from lab.fabric.fabric import Fabric
from lab.fabric.plan import CONTROLLER_ADDRESS, FabricHost
from lab.traffic import roles

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(120),
]
DELAY_S = 0.02


@pytest.fixture
def fabric() -> Iterator[Fabric]:
    with Fabric(f"y{os.getpid()}") as made:
        yield made.incast(2, "100Mbps")


def shortest_s(fabric: Fabric, host: FabricHost | None, to: str) -> float:
    """Return the shortest round trip of some pings; a busy machine only adds to it."""
    times = list[int]()

    def heard() -> bool:
        times.extend(ping.counts().rtt_ns)
        return len(times) > 4

    with roles.ping(fabric.place(host), to) as ping:
        assert eventually(heard)
    return min(times) / 1e9


def test_round_trips_to_the_controller_take_twice_the_delay_and_others_do_not(
    fabric: Fabric,
) -> None:
    fabric.delay(DELAY_S)
    host, other = fabric.senders
    assert shortest_s(fabric, host, CONTROLLER_ADDRESS) >= 2 * DELAY_S
    assert shortest_s(fabric, None, other.control_address) >= 2 * DELAY_S
    assert shortest_s(fabric, host, other.address) < 2 * DELAY_S
    counts = fabric.delayed()
    assert counts.packets >= 20
    assert counts.lost == 0


def test_the_delay_may_be_changed_and_removed(fabric: Fabric) -> None:
    fabric.delay(DELAY_S)
    fabric.delay(2 * DELAY_S)
    assert shortest_s(fabric, fabric.senders[0], CONTROLLER_ADDRESS) >= 4 * DELAY_S
    fabric.undelay()
    assert shortest_s(fabric, fabric.senders[0], CONTROLLER_ADDRESS) < 2 * DELAY_S
    with pytest.raises(LabError, match="call delay"):
        fabric.delayed()


@pytest.mark.parametrize("delay_s", [-0.001, 1.1])
def test_a_delay_out_of_range_is_refused_and_nothing_is_changed(
    fabric: Fabric, delay_s: float
) -> None:
    with pytest.raises(BadRequestError):
        fabric.delay(delay_s)
    assert shortest_s(fabric, fabric.senders[0], CONTROLLER_ADDRESS) < 2 * DELAY_S
