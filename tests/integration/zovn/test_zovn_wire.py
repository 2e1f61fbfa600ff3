"""Wires between hosts: the kernel's VXLAN device, PFC by byte, and buffers that lose or do not."""

import select
import socket
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rigs.zovn_rig import BROADCAST, address, build, serial
from rigs.zovn_wire_peer import FAR, HERE, SINK, THERE, Peer, mac, switch, tagged
from rigs.zovn_wire_rig import (
    CLASSES,
    TRUSTING,
    VNI,
    Wired,
    connect,
    hosts,
    ip,
    map_of,
    name,
    packets,
    passing,
    received,
    vxlan,
)

from lab.programs.processes import Place
from lab.system import namespaces
from lab.traffic.cable import wire as cable
from zovn.errors import SettingsError
from zovn.native.switch import Class, Settings
from zovn.native.wire import (
    RawPath,
    WirePort,
    WireSettings,
    encapsulated,
    endpoint,
    pfc_quanta,
)

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
MOST_QUANTA = 0xFFFF


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


# --- with the kernel's device


@pytest.fixture
def kernels() -> Iterator[Wired]:
    """Two hosts with the kernel's device, and between them a switch with a wire to each."""
    stations = {"one": address(1), "two": address(2)}
    with hosts("middle", *stations):
        rig = Wired([], Settings())
        for number, host in enumerate(stations, 1):
            here, there = f"10.9.{number}.1", f"10.9.{number}.2"
            connect("middle", f"w{number}", host, "w0")
            ip("middle", "address", "add", f"{here}/24", "dev", f"w{number}")
            vxlan(host, there, here, stations[host], f"10.8.0.{number}")
            rig.wire("middle", f"w{number}", here, map_of({stations[host]: there}))
        yield rig


def runs(host: str, *words: str) -> subprocess.Popen[str]:
    command = ["ip", "netns", "exec", name(host), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_hosts_with_the_kernels_device_ping_each_other(kernels: Wired) -> None:
    with runs("one", "ping", "-c", "5", "-i", "0.2", "-W", "10", "10.8.0.2") as ping:
        passing(kernels, until=lambda: ping.poll() is not None)
        assert ping.stdout is not None
        assert "5 packets transmitted, 5 received" in ping.stdout.read()
    for wire in kernels.wires:
        assert kernels.counters(wire).unsound == kernels.counters(wire).beyond == 0


def test_full_packets_and_broadcasts_pass_as_well(kernels: Wired) -> None:
    full = ("-s", str(1450 - 28), "-M", "do")
    with runs("two", "ping", "-c", "3", "-i", "0.2", "-W", "10", *full, "10.8.0.1") as ping:
        passing(kernels, until=lambda: ping.poll() is not None)
        assert ping.returncode == 0


def test_the_kernel_does_not_answer_that_the_port_is_closed(kernels: Wired) -> None:
    raw = packets("one", "w0")
    with raw, runs("one", "ping", "-c", "1", "-W", "10", "10.8.0.2") as ping:
        passing(kernels, until=lambda: ping.poll() is not None)
        frames = list(iter(lambda: received(raw), None))
    assert not [one for one in frames if one[12:14] == b"\x08\0" and one[23] == 1]


# --- by byte


@pytest.fixture
def ends() -> Iterator[None]:
    with hosts("here", "there"):
        connect("here", "w0", "there", "w0")
        yield


@pytest.mark.usefixtures("ends")
def test_frames_come_with_the_headers_of_their_class() -> None:
    peer = Peer(switch())
    peer.know()
    for klass in range(8):
        peer.rig.ports[0].send(tagged(FAR, klass, 10 + klass))
    passing(peer.rig, until=lambda: len(numbered(peer)) == 8)
    assert numbered(peer) == {10 + klass: klass for klass in range(8)}
    outer = next(one for one in peer.seen if one[14] == 7 << 5)
    assert outer[:12] == bytes(peer.there.ethernet) + bytes(peer.here.ethernet)
    assert outer[12:18].hex() == "8100e0000800"
    assert outer[19] == 7 << 5


def numbered(peer: Peer) -> dict[int, int]:
    """Return the classes of the frames with a number from 10 on."""
    return {serial(inner): klass for inner, klass in peer.frames() if serial(inner) >= 10}


@pytest.mark.usefixtures("ends")
def test_a_flood_goes_to_all_hosts_and_an_unknown_station_nowhere() -> None:
    peer = Peer(switch())
    peer.know()
    rig, known = peer.rig, peer.rig.counters(0).drops.get("no_location", 0)
    rig.switch.fix(peer.port, 7, address(9))
    rig.ports[0].send(tagged(BROADCAST, 2, 5))
    rig.ports[0].send(tagged(address(9), 2, 6))
    passing(rig, until=lambda: [serial(i) for i, k in peer.frames() if k == 2] == [5])
    assert dict(rig.counters(0).drops) == {"no_location": known + 1}


@pytest.mark.usefixtures("ends")
def test_a_full_class_is_paused_refreshed_and_resumed_by_the_bytes_of_the_standard() -> None:
    """At 100 Mb/s a pause lasts for 336 ms; the sink takes nothing until the test has seen two."""
    peer = Peer(switch(), rate_bps=10**8)
    peer.know()
    for number in range(300):
        peer.send(tagged(address(SINK), 3, number, 1400), klass=3)
        peer.rig.step()
    passing(peer.rig, until=lambda: len(peer.pauses()) >= 2)
    assert peer.pauses()[:2] == [{3: MOST_QUANTA}] * 2
    (first, second, *_) = [one for one in peer.seen if pfc_quanta(one)]
    assert first == second
    source = bytes(peer.here.ethernet).hex()
    zeros = "0000" * 3
    assert first.hex() == (f"0180c2000001{source}880801010008{zeros}ffff{zeros}0000" + "00" * 26)
    got: list[bytes] = []

    def drained() -> bool:
        got.extend(peer.rig.ports[SINK].receive_all())
        return peer.pauses()[-1] == {3: 0}

    passing(peer.rig, until=drained)
    counters = peer.rig.counters(peer.port)
    assert counters.pauses_sent == len(peer.pauses())
    passing(peer.rig, until=lambda: drained() and len(got) + counters.beyond == 300)


@pytest.mark.usefixtures("ends")
def test_what_comes_beyond_the_buffer_is_dropped_and_counted_by_itself() -> None:
    """The peer ignores PFC. The other classes have their own buffers."""
    peer = Peer(switch(), buffer_bytes=65_536)
    for number in range(200):
        peer.send(tagged(address(SINK), 3, number, 1000), klass=3)
        peer.rig.step()
    passing(peer.rig, until=lambda: peer.rig.counters(peer.port).beyond > 100)
    peer.send(tagged(address(SINK), 4, 999), klass=4)
    got: list[int] = []

    def all_came() -> bool:
        got.extend(map(serial, peer.rig.ports[SINK].receive_all()))
        return 999 in got and len(got) + peer.rig.counters(peer.port).beyond == 201

    passing(peer.rig, until=all_came)
    threes = [one for one in got if one != 999]
    assert threes == sorted(threes)


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize(("count", "length"), [(400, 100), (100, 1400)])
def test_what_waits_in_the_socket_stays_there_until_the_switch_takes_it(
    count: int, length: int
) -> None:
    """A buffer has room for 92 short frames or 10 long ones; the switch takes 64 in a step."""
    peer = Peer(switch(received=128), buffer_bytes=16_384, pfc=())
    for number in range(count):
        peer.send(tagged(address(SINK), 3, number, length), klass=3)
    got: list[int] = []

    def all_came() -> bool:
        got.extend(map(serial, peer.rig.ports[SINK].receive_all()))
        return len(got) + peer.rig.counters(peer.port).beyond == count

    passing(peer.rig, until=all_came)
    assert got == list(range(count))
    assert peer.rig.counters(peer.port).overruns == 0


@pytest.mark.usefixtures("ends")
def test_a_switch_that_is_too_slow_itself_pauses_its_peer() -> None:
    """The sink has room for all; more comes in each step than the switch takes in one."""
    peer = Peer(switch(received=128), buffer_bytes=65_536)
    peer.know()
    for _ in range(20):
        for number in range(300):
            peer.send(tagged(address(SINK), 3, number), klass=3)
        peer.rig.step()
        peer.rig.ports[SINK].receive_all()
    counters = peer.rig.counters(peer.port)
    assert counters.pauses_sent > 0
    assert (counters.overruns, counters.beyond) == (0, 0)


@pytest.mark.usefixtures("ends")
def test_a_class_that_the_peer_pauses_waits_alone_until_it_is_resumed() -> None:
    peer = Peer(switch(), rate_bps=10**6)  # a pause lasts for 33 s
    peer.know()
    peer.pause({3: MOST_QUANTA})
    passing(peer.rig, until=lambda: peer.rig.counters(peer.port).pauses == 1)
    for number in range(5):
        peer.rig.ports[0].send(tagged(FAR, 3, 10 + number))
        peer.rig.ports[0].send(tagged(FAR, 5, 20 + number))
    passing(peer.rig, until=lambda: len(of_class(peer, 5)) == 5)
    assert of_class(peer, 3) == []
    peer.pause({3: 0})
    passing(peer.rig, until=lambda: of_class(peer, 3) == [10, 11, 12, 13, 14])
    assert of_class(peer, 5) == [20, 21, 22, 23, 24]
    assert peer.rig.counters(peer.port).paused_ns > 0


def of_class(peer: Peer, klass: int) -> list[int]:
    return [serial(inner) for inner, one in peer.frames() if one == klass]


@pytest.mark.usefixtures("ends")
def test_a_pause_expires_without_a_refresh() -> None:
    peer = Peer(switch(), rate_bps=10**6)
    peer.know()
    peer.pause({3: 400})  # for 0.2 s
    passing(peer.rig, until=lambda: peer.rig.counters(peer.port).pauses == 1)
    peer.rig.ports[0].send(tagged(FAR, 3, 1))
    passing(peer.rig, until=lambda: of_class(peer, 3) == [1])
    assert peer.rig.counters(peer.port).paused_ns >= 0.2e9


@pytest.mark.usefixtures("ends")
def test_classes_share_the_line_by_weight_though_frames_wait_for_it() -> None:
    classes = [Class(weight=1), Class(weight=3), *[Class()] * 6]
    peer = Peer(switch(Settings(classes, {0: 0, 1: 1})), rate_bps=10**7)
    peer.know()

    def enough() -> bool:
        for port, klass in ((0, 0), (SINK, 1)):
            while peer.rig.ports[port].send(tagged(FAR, klass, 10 + klass, 1000)):
                pass
        return len(classes_of(peer)) >= 800

    passing(peer.rig, until=enough)
    sent = Counter(classes_of(peer)[100:800])
    assert sent[1] / sent[0] == pytest.approx(3, rel=0.1)


def classes_of(peer: Peer) -> list[int]:
    """Return the classes of the frames with a number from 10 on, in order."""
    return [klass for inner, klass in peer.frames() if serial(inner) >= 10]


@pytest.mark.usefixtures("ends")
def test_a_peer_that_pauses_a_class_for_long_is_a_stall_of_that_class() -> None:
    settings = Settings(class_of_priority={one: one for one in range(8)}, stall_s=0.2)
    peer = Peer(switch(settings), rate_bps=10**6)
    peer.know()
    known = dict(peer.rig.counters(0).drops)
    peer.pause({3: MOST_QUANTA})
    passing(peer.rig, until=lambda: peer.rig.counters(peer.port).pauses == 1)
    peer.rig.ports[0].send(tagged(FAR, 3, 1))
    passing(peer.rig, until=lambda: peer.rig.counters(0).drops.get("stalled") == 1)
    peer.rig.ports[0].send(tagged(FAR, 3, 2))
    peer.rig.ports[0].send(tagged(FAR, 5, 3))
    passing(peer.rig, until=lambda: of_class(peer, 5) == [3])
    assert of_class(peer, 3) == []
    assert dict(peer.rig.counters(0).drops) == known | {"stalled": 2}


@pytest.mark.usefixtures("ends")
def test_a_strict_class_that_fills_the_line_does_not_have_the_others_dropped() -> None:
    """The line takes a frame in 9 ms, and the strict class fills it for a second."""
    classes = [*[Class()] * 7, Class(weight=0)]
    settings = Settings(classes, {one: one for one in range(8)}, stall_s=0.2)
    peer = Peer(switch(settings), rate_bps=10**6)
    peer.know()

    def held() -> int:
        while peer.rig.ports[0].send(tagged(FAR, 7, 11, 1000)):
            pass
        return peer.rig.counters(0).held

    passing(peer.rig, until=lambda: held() > 20)
    peer.rig.ports[SINK].send(tagged(FAR, 0, 10))
    passing(peer.rig, until=lambda: held() and len(of_class(peer, 7)) >= 120)
    assert 10 not in of_class(peer, 0)
    for port in peer.rig.ports:
        assert "stalled" not in peer.rig.counters(port).drops
    passing(peer.rig, until=lambda: 10 in of_class(peer, 0))
    assert not peer.rig.switch.stalled(peer.port)


@pytest.mark.usefixtures("ends")
def test_what_is_not_sound_or_of_others_is_refused_and_counted() -> None:
    """Of another network, or of a host that the map does not name."""
    peer = Peer(switch())
    peer.send(tagged(address(SINK), 0, 1), vni=VNI + 1)
    whole = encapsulated(tagged(address(SINK), 0, 1), RawPath(peer.there, peer.here, VNI, 0, True))
    peer.raw.send(whole[:28] + bytes((whole[28] ^ 1,)) + whole[29:])  # the outer checksum
    unlisted = endpoint(mac("there"), socket.inet_aton("10.9.0.99"))
    path = RawPath(unlisted, peer.here, VNI, 0, tagged=True)
    peer.raw.send(encapsulated(tagged(address(SINK), 0, 1), path))
    peer.send(tagged(address(SINK), 0, 2))
    passing(peer.rig, until=peer.rig.ports[SINK].receive)
    assert peer.rig.counters(peer.port).unsound == 3
    assert peer.rig.counters(peer.port).into == 1


def packet(to: bytes, port: int, protocol: int = 17) -> bytes:
    """Return an Ethernet frame of 1,500 bytes with a packet of another program."""
    ipv4 = struct.pack("!BBHHHBBH", 0x45, 0, 1486, 0, 0, 64, protocol, 0)
    ipv4 += socket.inet_aton(THERE) + socket.inet_aton(HERE)
    ports = struct.pack("!HHHH", 40_000, port, 1466, 0)
    return (to + address(9) + b"\x08\0" + ipv4 + ports).ljust(1500, b"\0")


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize("kind", ["tcp", "udp", "ipv6", "vlan"])
def test_the_hosts_own_traffic_takes_no_room_in_the_socket(kind: str) -> None:
    """The socket has room for some 7,000 of these frames."""
    peer = Peer(switch())
    here = bytes(peer.here.ethernet)
    own = {
        "tcp": packet(here, 4789, protocol=6),
        "udp": packet(here, 4790),
        "ipv6": packet(here, 4789)[:12] + b"\x86\xdd" + bytes(1486),
        "vlan": here + address(9) + b"\x81\0\0\7" + packet(here, 53)[12:-4],
    }
    for number in range(12_000):
        peer.raw.send(own[kind])
        if number % 100 == 0:
            time.sleep(0.0005)  # the kernel's queue between the two ends has room for 1,000
    peer.send(tagged(address(SINK), 0, 1))
    passing(peer.rig, until=peer.rig.ports[SINK].receive)
    counted = peer.rig.counters(peer.port)
    assert (counted.into, counted.overruns, counted.unsound) == (1, 0, 0)


@pytest.mark.usefixtures("ends")
def test_options_of_the_outer_packet_and_frames_without_a_tag_pass_the_filter() -> None:
    peer = Peer(switch())
    path = RawPath(peer.there, peer.here, VNI, 0, tagged=False)
    for number in range(2):
        whole = encapsulated(tagged(address(SINK), 0, number), path)
        peer.raw.send(with_options(whole) if number else whole)
    got: list[int] = []

    def both() -> bool:
        got.extend(map(serial, peer.rig.ports[SINK].receive_all()))
        return got == [0, 1]

    passing(peer.rig, until=both)
    assert peer.rig.counters(peer.port).unsound == 0


def with_options(whole: bytes) -> bytes:
    """Return an untagged frame of a tunnel, of which the IPv4 header has four bytes of options."""
    header = bytearray(whole[14:34] + b"\1\1\1\0")
    header[0] = 0x46
    header[2:4] = (int.from_bytes(header[2:4], "big") + 4).to_bytes(2, "big")
    header[10:12] = b"\0\0"
    total = sum(struct.unpack("!12H", header))
    total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = (~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
    return whole[:14] + bytes(header) + whole[34:]


@pytest.mark.usefixtures("ends")
def test_the_file_wakes_for_a_frame_and_for_what_is_due() -> None:
    peer = Peer(switch(), rate_bps=10**6)
    peer.know()
    wire = peer.rig.wires[peer.port]
    passing(peer.rig, until=lambda: not select.select([wire.wake], [], [], 0)[0])
    wire.ask(notify=True)
    peer.pause({3: 400})
    assert select.select([wire.wake], [], [], 30)[0]
    peer.rig.ports[0].send(tagged(FAR, 3, 1))
    passing(peer.rig, until=lambda: peer.rig.counters(peer.port).pauses == 1)
    assert select.select([wire.wake], [], [], 30)[0], "the pause expires"
    passing(peer.rig, until=lambda: of_class(peer, 3) == [1])


@pytest.mark.usefixtures("ends")
def test_a_map_can_change_and_a_bad_one_changes_nothing(tmp_path: Path) -> None:
    peer = Peer(switch())
    peer.know()
    wire, file = peer.rig.wires[peer.port], tmp_path / "map"
    file.write_text("host nowhere\n")
    with pytest.raises(SettingsError, match=r"^line 1: write the IPv4 address"):
        wire.locate(file)
    peer.rig.ports[0].send(tagged(FAR, 6, 1))
    passing(peer.rig, until=lambda: of_class(peer, 6) == [1])
    file.write_text(map_of({address(9): THERE}))
    wire.locate(file)
    peer.rig.switch.fix(peer.port, 7, address(9))
    peer.rig.ports[0].send(tagged(FAR, 6, 2))
    peer.rig.ports[0].send(tagged(address(9), 6, 3))
    passing(peer.rig, until=lambda: of_class(peer, 6) == [1, 3])


# --- what was put, and is never sent


def with_frames_that_wait() -> tuple[Peer, int]:
    """Have frames wait for a line of 1 Mb/s: 12 ms each. Return how many were put."""
    peer = Peer(switch(), rate_bps=10**6)
    peer.know()
    until = time.monotonic() + 0.1
    passing(peer.rig, until=lambda: time.monotonic() > until)
    before = peer.rig.counters(0).delivered
    for number in range(10, 16):
        assert peer.rig.ports[0].send(tagged(FAR, 0, number, 1400))
    peer.rig.step()
    return peer, peer.rig.counters(0).delivered - before


@pytest.mark.usefixtures("ends")
def test_frames_that_the_interface_no_longer_takes_are_counted_as_lost() -> None:
    peer, put = with_frames_that_wait()
    rig = peer.rig
    ip("here", "link", "set", "w0", "mtu", "1200")
    passing(rig, until=lambda: len(numbered(peer)) + rig.counters(peer.port).overruns == put == 6)
    assert rig.counters(peer.port).overruns >= 3
    rig.ports[0].send(tagged(FAR, 0, 20, 1400))
    passing(rig, until=lambda: rig.counters(0).drops.get("too_long") == 1)
    ip("here", "link", "set", "w0", "mtu", "9000")
    wire = rig.wires[peer.port]
    wire.limit(wire.mtu)
    rig.ports[0].send(tagged(FAR, 0, 21, 1400))
    rig.ports[0].send(tagged(FAR, 0, 22, 1490))  # the buffers are as long as the MTU was
    passing(rig, until=lambda: rig.counters(0).drops.get("too_long") == 2)
    passing(rig, until=lambda: 21 in numbered(peer))
    assert not {20, 22} & set(numbered(peer))


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize("pfc", [range(8), ()])
def test_a_frame_that_the_interface_does_not_take_lowers_the_limit_to_below_its_length(
    pfc: Sequence[int],
) -> None:
    """Shorter ones are tried, and lost, until the MTU is read again; with outer tags or without."""
    peer = Peer(switch(), rate_bps=10**9, pfc=pfc)
    peer.know()
    rig, wire = peer.rig, peer.rig.wires[peer.port]
    ip("here", "link", "set", "w0", "mtu", "1200")
    drops = []
    for number, length in enumerate((1404, 1404, 1405, 1403, 1403, 1404)):
        rig.ports[0].send(tagged(FAR, 0, number, length))
        rig.settle()
        drops.append(rig.drops(0).get("too_long", 0))
    assert (drops, rig.counters(peer.port).overruns) == ([0, 1, 2, 2, 3, 4], 2)
    wire.limit(wire.mtu)
    for number, length in ((10, 1165), (11, 1164)):
        rig.ports[0].send(tagged(FAR, 0, number, length))
    passing(rig, until=lambda: 11 in numbered(peer))
    assert rig.drops(0)["too_long"] == 5
    assert rig.counters(peer.port).overruns == 2


@pytest.mark.usefixtures("ends")
def test_an_mtu_is_that_of_the_interface_and_not_of_another_one_that_has_its_name() -> None:
    peer = Peer(switch())
    wire = peer.rig.wires[peer.port]
    ip("here", "link", "set", "w0", "down")
    ip("here", "link", "set", "w0", "name", "w7")
    ip("here", "link", "add", "w0", "type", "veth", "peer", "name", "w8")
    ip("here", "link", "set", "w0", "mtu", "9000")
    ip("here", "link", "set", "w7", "mtu", "1300")
    assert wire.mtu == 1300
    ip("here", "link", "delete", "w7")
    assert wire.mtu == 0


@pytest.mark.usefixtures("ends")
def test_frames_that_wait_when_a_wire_is_removed_are_counted_as_lost() -> None:
    peer, put = with_frames_that_wait()
    peer.rig.wires.pop(peer.port).end()
    last = peer.rig.switch.remove(peer.port)
    passing(peer.rig, until=lambda: len(numbered(peer)) + last.overruns == put == 6)
    assert last.overruns >= 3


# --- two switches over a cable with a buffer that drops


def flooded(pfc: range) -> tuple[list[int], Wired, Wired]:
    """Send 400 frames of 1,000 bytes over a cable to a sink that takes none until no more come."""
    with hosts("here", "there", "cable"):
        connect("here", "w0", "cable", "left")
        connect("there", "w0", "cable", "right")
        place = Place(netns=namespaces.path(name("cable")))
        rigs = []
        with cable(place, "left", "right", rate_bps=10**7, delay_s=0.001, buffer_bytes=100_000):
            for host, local, other, station in (
                ("here", HERE, THERE, address(SINK)),
                ("there", THERE, HERE, address(0)),
            ):
                ip(host, "address", "add", f"{local}/24", "dev", "w0")
                rig = Wired([TRUSTING, TRUSTING], CLASSES, sent=512, received=4)
                more = {"rate_bps": 10**7, "response_s": 0.2, "pfc": pfc}
                port = rig.wire(host, "w0", local, map_of({station: other}), TRUSTING, **more)
                rig.switch.fix(port, 7, station)
                rigs.append(rig)
            return sent_over(*rigs), *rigs


def sent_over(here: Wired, there: Wired) -> list[int]:
    there.switch.fix(SINK, 7, address(SINK))
    got: list[int] = []

    def first() -> bool:
        here.ports[0].send(tagged(address(SINK), 3, 0, 1000))
        got.extend(map(serial, there.ports[SINK].receive_all()))
        return bool(got)

    passing(here, there, until=first)
    for number in range(1, 401):
        assert here.ports[0].send(tagged(address(SINK), 3, number, 1000))
    wires = next(iter(here.wires)), next(iter(there.wires))
    passing(
        here,
        there,
        until=lambda: here.counters(wires[0]).pauses or there.counters(wires[1]).beyond,
    )

    def all_ended() -> bool:
        got.extend(map(serial, there.ports[SINK].receive_all()))
        last = there.counters(wires[1])
        return 400 in got and last.into == last.delivered and not here.counters(0).held

    passing(here, there, until=all_ended)
    return [one for one in got if one]


def test_a_wire_with_pfc_loses_nothing_to_a_receiver_that_stands_still() -> None:
    got, here, there = flooded(range(8))
    assert got == list(range(1, 401))
    assert {one.counters(wire).beyond for one in (here, there) for wire in one.wires} == {0}


def test_the_same_wire_without_pfc_loses() -> None:
    got, _, there = flooded(range(0))
    assert len(got) < 400
    assert got == sorted(got)
    (wire,) = there.wires
    assert there.counters(wire).beyond > 0


# --- settings


@pytest.fixture
def usable(tmp_path: Path) -> Iterator[dict[str, object]]:
    """Settings of a wire that can be opened, in a host with one interface more that is down."""
    file = tmp_path / "map"
    file.write_text(f"host {THERE}\n")
    with hosts("here", "there"):
        connect("here", "w0", "there", "w0")
        ip("here", "address", "add", f"{HERE}/24", "dev", "w0")
        ip("here", "link", "add", "w9", "type", "veth", "peer", "name", "w8")
        yield {"interface": "w0", "local": HERE, "locations": file}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"interface": "none0"}, "none0: there is no such interface in this network namespace"),
        ({"interface": "w9"}, "w9: it is down; set it up"),
        ({"interface": ""}, "no name of an interface"),
        ({"local": "10.9.0.77"}, "w0: `local` is no address of this host; add it first"),
        ({"vni": 2**24}, "vni: from 0 to 16777215"),
        ({"rate_bps": 10**5}, "line_rate: from 1 Mb/s to 1 Tb/s"),
        ({"delay_s": 2.0}, "delay, response: at most 1 s"),
        ({"buffer_bytes": 400_000}, "buffer: from 16384 to 344064 bytes"),
        ({"locations": Path("/no/map")}, "locations: /no/map: No such file or directory"),
        (
            {"rate_bps": 10**10, "response_s": 1e-3},
            "buffer: 344064 bytes are too few at this rate and delay; at least 1381253 are needed",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused(
    usable: dict[str, object], changed: dict[str, object], problem: str
) -> None:
    chosen = WireSettings(**(usable | changed))  # type: ignore[arg-type]
    with pytest.raises(SettingsError) as caught:
        namespaces.inside(name("here"), lambda: WirePort(chosen))
    assert problem in str(caught.value)


def test_a_port_of_the_kernels_device_is_refused(usable: dict[str, object]) -> None:
    ip("here", "link", "add", "t0", "type", "vxlan", "id", "1", "local", HERE, "dstport", "4789")
    ip("here", "link", "set", "t0", "up")
    chosen = WireSettings(**usable)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="a vxlan device, has UDP port 4789"):
        namespaces.inside(name("here"), lambda: WirePort(chosen))
