"""Classes: strict ones, weights, DSCP, and those that lose above a limit."""

from collections import Counter
from collections.abc import Sequence

import pytest
from zovn_rig import PRIORITIES, Rig, address, build, known

from zovn.native.switch import Class, PortSettings, Settings


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def overloaded(classes: tuple[Class, ...], seconds: int = 400) -> dict[int, int]:
    """Return the bytes of each class, of two at one destination that is always full."""
    settings = Settings(classes=classes, class_of_priority=PRIORITIES)
    trunk = PortSettings(vlan=1, tagged=(), trust="priority")
    rig = Rig([trunk, trunk, PortSettings()], settings, received=1)
    rig.know()
    taken: dict[int, int] = {}
    for _ in range(seconds):
        for source, priority, length in ((0, 2, 1500), (1, 5, 300)):
            while rig.send(source, 2, length, tag=priority << 13):
                pass
        rig.step()
        for got in rig.ports[2].receive_all():
            taken[got[11]] = taken.get(got[11], 0) + len(got)
    return taken


@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 3), (4, 1)])
def test_classes_share_by_weight_in_bytes(low: int, high: int) -> None:
    classes = [Class()] * 8
    classes[2], classes[5] = Class(weight=low), Class(weight=high)
    taken = overloaded(tuple(classes), 3000)
    assert taken[0] / taken[1] == pytest.approx(low / high, rel=0.1)


def test_a_strict_class_goes_before_those_with_weights() -> None:
    classes = [Class(weight=1000)] * 8
    classes[5] = Class(weight=0)
    taken = overloaded(tuple(classes))
    assert taken.get(0, 0) == 0
    assert taken[1] > 0


def test_the_higher_of_two_strict_classes_goes_first() -> None:
    taken = overloaded((Class(weight=0),) * 8)
    assert taken.get(0, 0) == 0


@pytest.mark.parametrize(("kind", "header"), [(0x0800, b"\x45\xb8"), (0x86DD, b"\x6b\x80")])
def test_a_class_by_dscp(kind: int, header: bytes) -> None:
    """Expedited forwarding, 46: to the strict class, which overtakes."""
    classes = (Class(), Class(weight=0), *[Class()] * 6)
    settings = Settings(classes=classes, class_of_dscp={46: 1})
    rig = Rig([PortSettings(trust="dscp"), PortSettings(), PortSettings()], settings, received=1)
    rig.know()
    for _ in range(4):
        rig.send(1, 2)
    rig.settle()
    urgent = address(2) + address(0) + kind.to_bytes(2, "big") + header.ljust(50, b"\0")
    rig.ports[0].send(urgent)
    rig.settle()
    got = rig.drain()[2]
    assert got.index(urgent) == 1, "only what was in the ring already is before it"


def test_the_lossy_mode_loses_where_the_lossless_one_does_not() -> None:
    lost = {}
    for limit in (0, 2000):
        settings = Settings(classes=(Class(limit_bytes=limit),) * 8)
        rig = known(9, settings, received=4)
        before = sum(sum(rig.drops(port).values()) for port in range(8))
        sent = sum(rig.send(source, 8) is not None for _ in range(16) for source in range(8))
        got = rig.drain()[8]
        drops = [rig.drops(port) for port in range(8)]
        lost[limit] = sum(each.get("congestion", 0) for each in drops)
        assert sum(sum(each.values()) for each in drops) - before == lost[limit]
        assert len(got) + lost[limit] == sent == 128
    assert lost[0] == 0
    assert lost[2000] > 64


def test_a_lossy_class_holds_no_more_than_its_limit() -> None:
    rig = known(2, Settings(classes=(Class(limit_bytes=200),) * 8), received=1)
    for _ in range(10):
        rig.send(0, 1)
    rig.step()
    counters = rig.counters(0)
    assert (counters.held, counters.drops["congestion"]) == (2, 7)


@pytest.mark.parametrize("takes", [1, 2, 3])
@pytest.mark.parametrize("senders", [(0, 1), (0, 1, 2), (1, 4)])
def test_a_lossy_class_is_fair_to_ports_that_flood_a_slow_one(
    senders: tuple[int, ...], takes: int
) -> None:
    shares = lossy_shares(senders, 1000, takes=takes)
    assert shares == pytest.approx([1 / len(senders)] * len(senders), rel=0.1)


@pytest.mark.parametrize("senders", [(1, 2), (1, 4), tuple(range(6))])
@pytest.mark.parametrize("every", [1, 2, 3, 4])
def test_a_lossy_class_is_fair_whoever_else_sends_and_whenever_there_is_room(
    senders: tuple[int, ...], every: int
) -> None:
    shares = lossy_shares(senders, 2000 * every, every=every, busy=(0, 3))
    assert shares == pytest.approx([1 / len(senders)] * len(senders), rel=0.2)


def lossy_shares(
    senders: Sequence[int],
    steps: int,
    *,
    takes: int = 1,
    every: int = 1,
    busy: Sequence[int] = (),
) -> list[float]:
    """Return what each sender has of a port that takes some frames in every n-th step.

    Ports that are busy send to another port in each step. A sender has twice as many heads as
    its frames can have places in the queue, so that it always has some to offer.
    """
    other, sink = 6, 7
    settings = Settings(classes=(Class(limit_bytes=4 * 64),) * 8)
    rig = known(8, settings, sent=8, received=4)
    got: Counter[int] = Counter()
    for step in range(steps):
        for source in busy:
            rig.send(source, other)
        for source in senders:
            while rig.send(source, sink):
                pass
        rig.switch.step()
        rig.ports[other].receive_all()
        for _ in range(0 if step % every else takes):
            if one := rig.ports[sink].receive():
                got[one[11]] += 1
    rig.check()
    assert set(rig.drops(senders[0])) == {"congestion"}
    return [got[source] / got.total() for source in senders]
