"""Ports that drain before they go; and threads that hand ports over while frames move."""

import subprocess

import pytest
from zovn_rig import BROADCAST, BUILD_S, CORE, Rig, address, build, frame

from zovn.native.switch import Settings


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def test_a_port_that_drains_delivers_what_was_taken_and_takes_nothing_new() -> None:
    rig = Rig(2, sent=16, received=4)
    rig.know()
    sent = [rig.send(0, 1) for _ in range(8)]
    rig.step()
    rig.send(0, 1)
    assert not rig.switch.drain(0)
    rig.settle()
    assert rig.ports[1].receive_all() == sent[:4]
    rig.settle()
    assert rig.ports[1].receive_all() == sent[4:]
    assert rig.switch.drain(0)
    assert rig.counters(0).into == 9, "one was to learn its address; the last one stays"
    last = rig.remove(0)
    assert not any(last.drops.values())


def test_a_port_that_drains_waits_for_its_floods() -> None:
    rig = Rig(3, sent=4, received=1)
    for number in range(2):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.step()
    assert not rig.switch.drain(0)
    rig.drain()
    assert rig.switch.drain(0)


def test_a_port_that_drains_still_receives() -> None:
    rig = Rig(2)
    rig.know()
    assert rig.switch.drain(1)
    sent = rig.send(0, 1)
    rig.settle()
    assert rig.ports[1].receive_all() == [sent]


def test_a_port_that_is_not_there_has_nothing_left() -> None:
    assert Rig(0, Settings()).switch.drain(3)


@pytest.mark.timeout(2 * BUILD_S)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_no_two_threads_touch_a_port_at_once(threads: int) -> None:
    """The thread sanitizer watches; peers see each frame once, and in order."""
    build("races")
    done = subprocess.run(
        [CORE / "build" / "zovn-forward-races", "50", str(threads)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.removesuffix(" frames\n")) > 1000
