"""A wire whose frames wait in a gate of its interface, as of xco: what a pause still stops."""

import select
from collections.abc import Iterator
from pathlib import Path

import pytest
from rigs.zovn_rig import BROADCAST, address, build, frame
from rigs.zovn_wire_peer import FAR, HERE, SINK, THERE, Peer, switch, tagged
from rigs.zovn_wire_rig import connect, hosts, ip, name, packets, passing, run

from lab.system import namespaces
from zovn.errors import SettingsError
from zovn.native.wire import WirePort, WireSettings

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
MOST_QUANTA = 0xFFFF
OVERHEAD = 24
"""Bytes of the line for each frame: preamble, checksum and gap."""
RING = 32_768
SLOW = ("rate", "100bit", "burst", "1600", "limit", "10000000")
"""Closed: a frame passes, and the next one after a hundred seconds."""
FAST = ("rate", "1gbit", "burst", "10000000", "limit", "10000000")
EVERY = ("u32", "match", "u32", "0", "0")
GATE = (
    ("qdisc", "add", "dev", "w0", "root", "handle", "1:", "htb", "default", "1"),
    ("class", "add", "dev", "w0", "parent", "1:", "classid", "1:1", "htb", "rate", "1gbit"),
    ("class", "add", "dev", "w0", "parent", "1:", "classid", "1:2", "htb", "rate", "1gbit"),
    ("qdisc", "add", "dev", "w0", "parent", "1:2", "handle", "2:", "tbf", *SLOW),
    ("filter", "add", "dev", "w0", "parent", "1:", "protocol", "802.1q", *EVERY, "flowid", "1:2"),
)
"""Frames of a tunnel, which have an outer tag, wait in a gate; what is not IP passes it by."""
FULL = ("qdisc", "add", "dev", "w0", "parent", "1:1", "bfifo", "limit", "1")
"""What passes the gate by is refused."""


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    with hosts("here", "there"):
        connect("here", "w0", "there", "w0")
        yield


def gated(**settings: object) -> Peer:
    """Return a wire at 1 Mb/s, of which as many frames of class 3 as it sends wait in a gate."""
    peer = Peer(switch(), rate_bps=10**6, **settings)
    peer.know()
    for command in GATE:
        run("tc", "-n", name("here"), *command)
    fill(peer)
    return peer


def fill(peer: Peer) -> None:
    """Send until the wire takes no more for a while."""
    idle, before = 0, 0

    def full() -> bool:
        nonlocal idle, before
        while peer.rig.ports[0].send(tagged(FAR, 3, 1, 1400)):
            pass
        delivered = peer.rig.counters(0).delivered
        idle = idle + 1 if delivered == before else 0
        before = delivered
        return idle > 100  # a frame takes 12 ms of the line

    passing(peer.rig, until=full)


def open_gate() -> None:
    """Open it, and send a frame past it: a change does not make the kernel look at its queues."""
    change = ("qdisc", "change", "dev", "w0", "parent", "1:2", "handle", "2:", "tbf", *FAST)
    run("tc", "-n", name("here"), *change)
    with packets("here", "w0") as raw:
        raw.send(frame(address(9), BROADCAST))


def on_line(peer: Peer) -> int:
    """Return the bytes of the line that frames of class 3 have taken so far."""
    peer.frames()
    return sum(len(one) + OVERHEAD for one in peer.seen if one[12:15] == b"\x81\0\x60")


def settled(peer: Peer) -> int:
    """Return these bytes when no more come."""
    last, same = -1, 0

    def quiet() -> bool:
        nonlocal last, same
        now = on_line(peer)
        same = same + 1 if now == last else 0
        last = now
        return same > 200

    passing(peer.rig, until=quiet)
    return last


def test_a_pause_is_sent_though_frames_wait_in_a_closed_gate() -> None:
    peer = gated()
    before = on_line(peer)
    crowd(peer)
    passing(peer.rig, until=lambda: peer.pauses()[:1] == [{3: MOST_QUANTA}])
    assert on_line(peer) == before, "the frames themselves still wait"


def test_a_pause_that_the_interface_refuses_is_tried_again_soon_though_nothing_comes() -> None:
    peer = gated()
    run("tc", "-n", name("here"), *FULL)
    wire = peer.rig.wires[peer.port]
    wire.ask(notify=True)
    crowd(peer)
    for _ in range(20):
        peer.rig.step()
    assert not peer.pauses()
    assert select.select([wire.wake], [], [], 5)[0], "a thread would sleep on"
    run("tc", "-n", name("here"), "qdisc", "delete", "dev", "w0", "parent", "1:1")
    passing(peer.rig, until=lambda: peer.pauses()[:1] == [{3: MOST_QUANTA}])


def crowd(peer: Peer) -> None:
    """Send so many frames to a station that does not take them that their class is to be paused."""
    for number in range(300):
        peer.send(tagged(address(SINK), 3, number, 1400), klass=3)
        peer.rig.step()


def paused_then_open(peer: Peer) -> int:
    """Pause the class, then open the gate; return the bytes that come nevertheless."""
    before = settled(peer)
    pauses = peer.rig.counters(peer.port).pauses
    peer.pause({3: MOST_QUANTA})  # for 33 s
    passing(peer.rig, until=lambda: peer.rig.counters(peer.port).pauses > pauses)
    open_gate()
    return settled(peer) - before


def test_no_more_than_the_ring_comes_after_a_pause() -> None:
    assert RING // 4 < paused_then_open(gated(ring_bytes=RING)) <= RING


def test_without_a_ring_as_much_comes_as_the_send_buffer_holds() -> None:
    assert paused_then_open(gated()) > 2 * RING


def test_a_ring_needs_its_room_in_the_buffer(tmp_path: Path) -> None:
    ip("here", "address", "add", f"{HERE}/24", "dev", "w0")
    (tmp_path / "map").write_text(f"host {THERE}\n")
    chosen = WireSettings("w0", HERE, tmp_path / "map", ring_bytes=344_064)
    with pytest.raises(SettingsError, match="344064 bytes are too few"):
        namespaces.inside(name("here"), lambda: WirePort(chosen))
