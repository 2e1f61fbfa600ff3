"""Turns of sources at a destination, by bytes."""

import pytest
from zovn_rig import Rig, build, jain, known


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


@pytest.mark.parametrize("sources", [8, 32])
@pytest.mark.parametrize("received", [1, 3, 64])
def test_sources_with_frames_of_any_length_share_in_bytes(sources: int, received: int) -> None:
    rig = known(sources + 1, sent=128, received=received)
    sink, taken = sources, dict.fromkeys(range(sources), 0)
    lengths = (64, 1500, 590, 9000)
    drained = 0
    while drained < 60 * 3028 * sources:
        for source in range(sources):
            while rig.send(source, sink, lengths[source % len(lengths)]):
                pass
        rig.switch.step()
        for got in rig.ports[sink].receive_all():
            taken[got[11]] += len(got)
            drained += len(got)
    assert jain(list(taken.values())) >= 0.99
    rig.check()


def test_a_turn_survives_a_full_ring() -> None:
    """With room for one frame at a time, each source still sends a whole quantum in a turn."""
    rig = known(3, received=1)
    order = []
    for _ in range(200):
        for source in (0, 1):
            while rig.send(source, 2, 1000):
                pass
        rig.step()
        order += [got[11] for got in rig.ports[2].receive_all()]
    assert order[:12] == [1, 1, 1, 0, 0, 0] * 2 or order[:12] == [0, 0, 0, 1, 1, 1] * 2


def windows(rig: Rig, sinks: dict[int, int], rounds: int, window: int = 4) -> dict[int, int]:
    """Let sources 0 and 1 send to sinks, each pair with a window; a sink takes every n-th round."""
    open_: dict[tuple[int, int], int] = {}
    taken = dict.fromkeys(sinks, 0)
    for round_ in range(rounds):
        for source in (0, 1):
            for sink in sinks:
                while open_.get((source, sink), 0) < window and rig.send(source, sink):
                    open_[source, sink] = open_.get((source, sink), 0) + 1
        rig.switch.step()
        for sink, every in sinks.items():
            got = [] if round_ % every else rig.ports[sink].receive_all()
            taken[sink] += len(got)
            for one in got:
                open_[one[11], sink] -= 1
    rig.check()
    return taken


def test_a_slow_destination_does_not_hold_a_fast_one_up() -> None:
    taken = windows(known(4, received=2), {2: 1, 3: 100}, 1000)
    alone = windows(known(4, received=2), {2: 1}, 1000)
    assert taken[2] == alone[2]
    assert taken[3] < 30
