"""The shim on a real interface: packets leave ECN-capable, marks are counted and never seen."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lab.system import namespaces
from xco.core_files import BUILD

pytestmark = [pytest.mark.root, pytest.mark.timeout(60)]
HOST, GUEST, FAR = "xcoshim-host", "xcoshim-guest", "xcoshim-far"
ENDS = {GUEST: 1, FAR: 2}
"""The last part of the addresses on the wire."""
MACS = {GUEST: "020000000001", FAR: "020000000002"}
NOT_ECT, ECT_1, ECT_0, CE = range(4)
PORT = 4000
IP_RECVTOS, IPV6_RECVTCLASS, UDP_SEGMENT = 13, 66, 103
UDP_HEADERS = 14 + 20 + 8
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 3, 263, 8, 0x10


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.fixture
def wire() -> Iterator[None]:
    """A guest behind a bridge of its host, and a far host: the wire is the host's e0."""
    names = (HOST, GUEST, FAR)
    for name in names:
        namespaces.remove(name)
        namespaces.create(name)
    try:
        ip("-n", HOST, "link", "add", "br0", "type", "bridge")
        for port, name in (("e0", FAR), ("g0", GUEST)):
            join(port, name)
        ip("-n", HOST, "link", "set", "br0", "up")
        yield
    finally:
        for name in names:
            namespaces.remove(name)


def join(port: str, name: str) -> None:
    """Connect a namespace to a port of the bridge."""
    mac = bytes.fromhex(MACS[name]).hex(":")
    end = ("peer", "name", "e0", "address", mac, "netns", name)
    ip("-n", HOST, "link", "add", port, "type", "veth", *end)
    ip("-n", HOST, "link", "set", port, "master", "br0", "up")
    keys = {"disable_ipv6": 0, "accept_dad": 0}
    namespaces.write_sysctls(name, {f"ipv6/conf/e0/{key}": v for key, v in keys.items()})
    ip("-n", name, "address", "add", f"10.77.0.{ENDS[name]}/24", "dev", "e0")
    ip("-n", name, "address", "add", f"fd77::{ENDS[name]}/64", "dev", "e0", "nodad")
    ip("-n", name, "link", "set", "e0", "up")


@dataclass
class Shim:
    """A running xco-shim-watch."""

    process: subprocess.Popen[str]

    def tell(self, words: str) -> list[str]:
        """Send a line; return the lines of the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        lines = iter(self.process.stdout.readline, "")
        return [line.strip() for line in iter(lambda: next(lines).strip(), ".")]

    def counts(self, host: int) -> tuple[int, int, int]:
        """Return packets, bytes and marks of a host, or (2) of all others."""
        _, packets, size, marks = map(int, self.tell("counts")[host].split())
        return packets, size, marks


@contextlib.contextmanager
def shim(mode: str = "hide") -> Iterator[Shim]:
    subprocess.run(["make", "-s", "-C", str(BUILD.parent), "load"], check=True)
    program, programs = BUILD / "xco-shim-watch", BUILD / "shim.bpf.o"
    command = ["ip", "netns", "exec", HOST, program, programs, "e0", "2", mode]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if process.stdout.readline() != "attached\n":
            reason = process.stderr.read()
            if "not supported" in reason:
                pytest.skip(f"this kernel attaches no links to interfaces: {reason}")
            pytest.fail(reason)
        yield Shim(process)
        process.kill()


def opened(name: str, family: socket.AddressFamily, address: str) -> socket.socket:
    def create() -> socket.socket:
        made = socket.socket(family, socket.SOCK_DGRAM)
        made.bind((address, PORT))
        made.settimeout(5.0)
        return made

    return namespaces.inside(name, create)


@contextlib.contextmanager
def pair(
    sender: str = FAR, family: socket.AddressFamily = socket.AF_INET
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A socket of the sender, and one of the receiver that tells types of service."""
    receiver = GUEST if sender == FAR else FAR
    subnet = "fd77::" if family is socket.AF_INET6 else "10.77.0."
    with (
        opened(sender, family, f"{subnet}{ENDS[sender]}") as out,
        opened(receiver, family, f"{subnet}{ENDS[receiver]}") as to,
    ):
        if family is socket.AF_INET6:
            to.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVTCLASS, 1)
        else:
            to.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        out.connect((f"{subnet}{ENDS[receiver]}", PORT))
        yield out, to


def arrives(out: socket.socket, to: socket.socket, tos: int) -> int:
    """Send a datagram with a type of service; return that of its arrival."""
    if out.family is socket.AF_INET6:
        out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tos)
    else:
        out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    out.send(bytes(1000))
    _, [(_, _, value)], _, _ = to.recvmsg(2000, 100)
    return int.from_bytes(value, "little")


FAR_IPS = {
    socket.AF_INET: "00" * 10 + "ffff0a4d0002",
    socket.AF_INET6: "fd77" + "00" * 13 + "02",
}
FAMILIES = pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])


@FAMILIES
@pytest.mark.usefixtures("wire")
def test_every_packet_leaves_capable_whatever_a_guest_sets(family: socket.AddressFamily) -> None:
    with shim() as running, pair(GUEST, family) as (out, to):
        running.tell(f"ip {FAR_IPS[family]} 1")
        for bits in (NOT_ECT, ECT_1, ECT_0, CE):
            assert arrives(out, to, 0x28 | bits) == 0x28 | ECT_0


@FAMILIES
@pytest.mark.usefixtures("wire")
def test_marks_are_counted_by_source_and_never_seen(family: socket.AddressFamily) -> None:
    with shim() as running, pair(FAR, family) as (out, to):
        running.tell(f"ip {FAR_IPS[family]} 1")
        arrives(out, to, NOT_ECT)
        before = running.counts(1)
        for bits in (NOT_ECT, ECT_0, CE, CE):
            assert arrives(out, to, 0x28 | bits) == 0x28
        packets, size, marks = (b - a for a, b in zip(before, running.counts(1), strict=True))
        assert (packets, marks) == (4, 2)
        assert size >= 4 * 1000
        assert running.counts(0) == (0, 0, 0)


@pytest.mark.usefixtures("wire")
def test_sources_that_are_not_listed_are_counted_together_and_macs_come_first() -> None:
    with shim() as running, pair() as (out, to):
        assert arrives(out, to, CE) == CE
        assert running.counts(2)[2] == 1
        running.tell(f"mac {MACS[FAR]} 0")
        arrives(out, to, CE)
        assert (running.counts(0)[2], running.counts(2)[2]) == (1, 1)


def ip4(bits: int, payload: bytes, protocol: int = 17) -> bytes:
    """Return an IPv4 packet, to the guest from the far host."""
    head = bytes([0x45, bits]) + (20 + len(payload)).to_bytes(2) + bytes([0, 1, 0, 0, 64, protocol])
    ends = bytes([10, 77, 0, ENDS[FAR], 10, 77, 0, ENDS[GUEST]])
    return head + check_sum(head + bytes(2) + ends) + ends + payload


def check_sum(header: bytes) -> bytes:
    """Return that of RFC 1071."""
    total = sum(int.from_bytes(header[at : at + 2]) for at in range(0, len(header), 2))
    total = (total & 0xFFFF) + (total >> 16)
    return (~(total + (total >> 16)) & 0xFFFF).to_bytes(2)


def frame(packet: bytes, tags: str = "") -> bytes:
    return bytes.fromhex(MACS[GUEST] + MACS[FAR] + tags + "0800") + packet


def vxlan(outer: int, inner: int) -> bytes:
    """Return a frame in VXLAN (RFC 7348), without UDP's check sum."""
    inside = bytes.fromhex("0800000000000900") + frame(ip4(inner, bytes(60)))
    udp = bytes.fromhex("c00012b5") + (8 + len(inside)).to_bytes(2) + bytes(2)
    return frame(ip4(outer, udp + inside))


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        (frame(ip4(CE, bytes(60))), frame(ip4(NOT_ECT, bytes(60)))),
        (frame(ip4(CE, bytes(60)), "81000007"), frame(ip4(NOT_ECT, bytes(60)), "81000007")),
        (
            frame(ip4(CE, bytes(60)), "88a8000281000007"),
            frame(ip4(NOT_ECT, bytes(60)), "88a8000281000007"),
        ),
        (vxlan(CE, ECT_0), vxlan(NOT_ECT, ECT_0)),
        (vxlan(CE, NOT_ECT), vxlan(NOT_ECT, NOT_ECT)),
    ],
    ids=["plain", "vlan", "qinq", "vxlan", "vxlan, incapable"],
)
@pytest.mark.usefixtures("wire")
def test_marks_are_cleared_outside_however_a_packet_is_wrapped(sent: bytes, seen: bytes) -> None:
    """RFC 6040: a mark outside an incapable packet would have it dropped at the tunnel's end."""
    with shim() as running, raw(FAR) as out, raw(GUEST) as to:
        running.tell(f"mac {MACS[FAR]} 1")
        out.send(sent)
        assert (
            next(found for found in iter(lambda: captured(to), b"") if found[:12] == sent[:12])
            == seen
        )
        assert running.counts(1)[2] == 1


def captured(sniffer: socket.socket) -> bytes:
    """Return a whole frame: the kernel tells its outer tag beside it."""
    data, ancillary, _, _ = sniffer.recvmsg(4000, 100)
    for level, kind, value in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA) and value[0] & TP_STATUS_VLAN_VALID:
            tci, tpid = (int.from_bytes(value[at : at + 2], "little") for at in (16, 18))
            return data[:12] + tpid.to_bytes(2) + tci.to_bytes(2) + data[12:]
    return data


def raw(name: str) -> socket.socket:
    def create() -> socket.socket:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        made.bind(("e0", ETH_P_ALL))
        made.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        made.settimeout(5.0)
        return made

    return namespaces.inside(name, create)


@pytest.mark.usefixtures("wire")
def test_traffic_to_elsewhere_keeps_its_bits() -> None:
    with shim(), pair(GUEST) as (out, to):
        for bits in (NOT_ECT, ECT_1, ECT_0, CE):
            assert arrives(out, to, bits) == bits


@pytest.mark.usefixtures("wire")
def test_a_batch_of_merged_packets_counts_as_so_many() -> None:
    with shim() as running, pair() as (out, to):
        # the kernel's own packets, as of multicast, come from other addresses
        running.tell(f"ip {FAR_IPS[socket.AF_INET]} 1")
        arrives(out, to, CE)
        before = running.counts(1)
        out.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 1000)
        out.send(bytes(10_000))
        for _ in range(10):
            to.recv(2000)
        after = zip(before, running.counts(1), strict=True)
        assert [b - a for a, b in after] == [10, 10 * (1000 + UDP_HEADERS), 10]


@pytest.mark.usefixtures("wire")
def test_guests_may_keep_their_own_bits_and_marks() -> None:
    with shim("keep") as running:
        running.tell(f"mac {MACS[FAR]} 1")
        with pair(GUEST) as (out, to):
            sent = {bits: arrives(out, to, bits) for bits in (NOT_ECT, ECT_1, ECT_0, CE)}
            assert sent == {NOT_ECT: ECT_0, ECT_1: ECT_1, ECT_0: ECT_0, CE: ECT_0}
        with pair(FAR) as (out, to):
            assert arrives(out, to, CE) == CE
            assert running.counts(1)[2] == 1


@pytest.mark.usefixtures("wire")
def test_nothing_is_left_of_a_shim_that_is_killed() -> None:
    with pair(GUEST) as (out, to):
        with shim() as running:
            running.tell(f"mac {MACS[FAR]} 1")
            assert arrives(out, to, NOT_ECT) == ECT_0
        assert arrives(out, to, NOT_ECT) == NOT_ECT
