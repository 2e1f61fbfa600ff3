"""BIG TCP: a packet of more than 64 KB to a host waits at its gate like any other."""

import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyroute2 import Ethtool

from benchmarks.xco.gates.rig import LINE_BPS, RECEIVER, Rig, StandIn, rig
from lab.system import namespaces
from lab.system.links import OFFLOADS
from xco.protocol.wire import Mode, Permit

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
TO_B = Permit(1, LINE_BPS)
SIZE = 131_072
GSO, GRO, GSO_IPV4, GRO_IPV4 = 41, 58, 63, 64
"""IFLA_GSO_MAX_SIZE and so on (linux/if_link.h); those of IPv4 since Linux 6.3."""
GATE, OTHERS = "7c01:10", ("7c01:2", "7c01:3", "7c01:50")
COUNTER = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} xco_big SEC(".maps");
SEC("tc") int count(struct __sk_buff *skb) {
    __u32 zero = 0;
    __u64 *bytes = bpf_map_lookup_elem(&xco_big, &zero);
    if (bytes && skb->len > 65536) {
        __sync_fetch_and_add(bytes, skb->len);
    }
    return -1; /* the next filter, which classifies, has its say */
}
char _license[] SEC("license") = "Dual BSD/GPL";
"""
"""Counts the bytes of packets above 64 KB before they are classified."""
SENDER = """
import socket, sys
out = socket.create_connection((sys.argv[1], 5001))
while True:
    out.sendall(bytes(4_000_000))
"""


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcobt") as made:
        made.classifier = "bpf"
        yield made


def attribute(kind: int, value: int) -> bytes:
    return struct.pack("=HHI", 8, kind, value)


def allow(name: str, *kinds: int) -> bool:
    """Let e0 of a namespace carry larger packets; whether the kernel knows how."""

    def ask() -> int:
        body = struct.pack("=BxHiII", 0, 0, socket.if_nametoindex("e0"), 0, 0)
        body += b"".join(attribute(kind, SIZE) for kind in kinds)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asked:
            asked.send(struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body)
            return int(struct.unpack_from("=i", asked.recv(4096), 16)[0])

    return namespaces.inside(name, ask) == 0


def turn_offloads_on() -> None:
    with Ethtool() as ethtool:
        for offload in OFFLOADS:
            ethtool.set_offload_flag("e0", offload, 1)


def give_ipv6(bench: Rig) -> None:
    for name, end in ((bench.near, "fd77::1"), (bench.far, "fd77::100")):
        keys: dict[str, int | str] = {"disable_ipv6": 0, "accept_dad": 0}
        namespaces.write_sysctls(name, {f"ipv6/conf/e0/{key}": keys[key] for key in keys})
        command = ["ip", "-n", name, "addr", "add", f"{end}/64", "dev", "e0", "nodad"]
        subprocess.run(command, check=True)


@dataclass
class Counted:
    """What the counting program has counted."""

    descriptor: int

    def bytes(self) -> int:
        """Return the bytes of packets above 64 KB that were to leave."""
        key, value = ctypes.c_uint32(0), ctypes.c_uint64()
        bpf = ctypes.CDLL("libbpf.so.1")
        assert bpf.bpf_map_lookup_elem(self.descriptor, ctypes.byref(key), ctypes.byref(value)) == 0
        return value.value


@pytest.fixture
def counted(bench: Rig, tmp_path: Path) -> Iterator[Counted]:
    """Count before the classifier, which stands at a higher priority's number."""
    source, compiled = tmp_path / "big.c", tmp_path / "big.o"
    source.write_text(COUNTER)
    headers = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    command = ["clang", "-O2", "-g", "-target", "bpf", headers, "-c", source, "-o", compiled]
    subprocess.run(command, check=True)
    to = ["tc", "-n", bench.near]
    subprocess.run([*to, "qdisc", "add", "dev", "e0", "clsact"], check=True)
    place = ["dev", "e0", "egress", "pref", "1", "bpf", "da", "obj", compiled, "sec", "tc"]
    subprocess.run([*to, "filter", "add", *place], check=True)
    descriptor = newest_map(b"xco_big")
    yield Counted(descriptor)
    os.close(descriptor)


def newest_map(name: bytes) -> int:
    """Return a descriptor of the newest BPF map of this name."""
    bpf, number, found = ctypes.CDLL("libbpf.so.1"), ctypes.c_uint32(0), -1
    while bpf.bpf_map_get_next_id(number, ctypes.byref(number)) == 0:
        descriptor = bpf.bpf_map_get_fd_by_id(number)
        told, length = (ctypes.c_char * 256)(), ctypes.c_uint32(256)
        bpf.bpf_obj_get_info_by_fd(descriptor, told, ctypes.byref(length))
        if told.raw[24:40].rstrip(b"\0") == name:
            descriptor, found = found, descriptor
        if descriptor >= 0:
            os.close(descriptor)
    assert found >= 0
    return found


def take_all(bench: Rig, address: str) -> None:
    """Receive one TCP connection at an address of the far end, for as long as it lasts."""

    def listen() -> socket.socket:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, 5001), family=family)

    def take(listener: socket.socket) -> None:
        with listener, listener.accept()[0] as one, contextlib.suppress(OSError):
            while one.recv(1 << 20):
                pass

    listener = namespaces.inside(bench.far, listen)
    threading.Thread(target=take, args=[listener], daemon=True).start()


def passed(bench: Rig, kind: str) -> int:
    command = ["tc", "-n", bench.near, "-s", "class", "show", "dev", "e0", "classid", kind]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(shown.split("Sent ", 1)[1].split()[0])


def waiting(stand_in: StandIn) -> int:
    return sum(one.backlog_bytes for one in stand_in.reports[-1].waiting if one.destination == 1)


def large(bench: Rig, version: int) -> str:
    """Let packets of a version of IP be larger than 64 KB; return where to send them."""
    kinds = (GSO, GRO) if version == 6 else (GSO_IPV4, GRO_IPV4)
    for name in (bench.near, bench.far):
        namespaces.inside(name, turn_offloads_on)
        if not allow(name, *kinds):
            pytest.skip(f"no BIG TCP of IPv{version}: this kernel refuses it")
    if version == 6:
        give_ipv6(bench)
    return "fd77::100" if version == 6 else RECEIVER


@pytest.mark.parametrize("version", [6, 4])
def test_packets_above_64_kb_wait_at_the_gate_of_their_host(
    bench: Rig, counted: Counted, version: int
) -> None:
    """To u32 they are small, for their header says length 0: they shared what ARP has."""
    address = large(bench, version)
    stand_in = bench.stand_in()
    take_all(bench, address)
    running = bench.start(bench.config())
    stand_in.wait_for(lambda: stand_in.reports)
    bench.run("python3", "-c", SENDER, address)
    stand_in.keep_until(lambda: running.statistics().values["flows"] == 1, Mode.RATE, TO_B)
    stand_in.keep_until(lambda: counted.bytes() > 0, Mode.RATE, TO_B)
    begun, gate = counted.bytes(), passed(bench, GATE)
    others = sum(passed(bench, kind) for kind in OTHERS)
    stand_in.keep_until(lambda: counted.bytes() > begun + 5_000_000, Mode.RATE, TO_B)
    stand_in.keep_until(lambda: passed(bench, GATE) > gate + 5_000_000, Mode.RATE, TO_B)
    assert sum(passed(bench, kind) for kind in OTHERS) < others + 65_536
    stand_in.keep_until(lambda: waiting(stand_in) > 65_536, Mode.CLOSED)
    stand_in.keep_through(4, Mode.CLOSED)
    gate = passed(bench, GATE)
    stand_in.keep(0.3, Mode.CLOSED)
    assert passed(bench, GATE) == gate
