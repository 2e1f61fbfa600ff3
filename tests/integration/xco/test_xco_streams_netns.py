"""The end of a TCP stream waits behind its data: ahead of it, TCP sends all of that again."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.xco.gates.rig import HOST, RECEIVER, Rig, StandIn, rig
from lab.system import namespaces
from xco.protocol.wire import Mode, Permit, Strategy

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
ACK, FIN = 0x10, 0x11
STREAMS = 20
BYTES = 11_500
RATE_BPS = 10_000_000
SINK = f"""
import socket
listener = socket.create_server(("{RECEIVER}", 5001))
while True:
    one = listener.accept()[0]
    while one.recv(65536):
        pass
    one.close()
"""
SOURCE = f"""
import contextlib, socket
one = None
while one is None:
    with contextlib.suppress(ConnectionRefusedError):
        one = socket.create_connection(("{RECEIVER}", 5001))
for _ in range({STREAMS}):
    one = socket.create_connection(("{RECEIVER}", 5001))
    one.sendall(b"x" * {BYTES})
    one.shutdown(socket.SHUT_WR)
    one.recv(1)
    one.close()
"""
RAW = """
import socket, sys, time
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("e0", 0))
while True:
    out.send(bytes.fromhex(sys.argv[1]))
    time.sleep(0.0003)
"""
"""Sends a frame as it is, without an end."""


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcost") as made:
        made.classifier = "bpf"
        yield made


def joined(bench: Rig) -> StandIn:
    stand_in = bench.stand_in()
    stand_in.strategy = Strategy.RATE
    bench.start(bench.config())
    stand_in.wait_for(lambda: stand_in.reports)
    return stand_in


def address(text: str) -> str:
    return bytes(map(int, text.split("."))).hex()


def tcp(flags: int) -> str:
    return f"04001389{1:08x}{1:08x}50{flags:02x}ffff00000000"


def ip4(flags: int) -> str:
    return f"4500002800014000{64:02x}06{0:04x}{address(HOST)}{address(RECEIVER)}{tcp(flags)}"


def with_options(flags: int) -> str:
    head = f"4600002c00014000{64:02x}06{0:04x}{address(HOST)}{address(RECEIVER)}"
    return f"{head}01010100{tcp(flags)}"


def ip6(flags: int) -> str:
    ends = "".join(f"fd77{0:024x}{last:04x}" for last in (0x1, 0x100))
    return f"60000000001406{64:02x}{ends}{tcp(flags)}"


def ethernet(payload: str, kind: str, tags: str = "") -> str:
    return f"02aa00000001020000000009{tags}{kind}{payload}"


FRAMES = {
    "ipv4": ethernet(ip4(FIN), "0800"),
    "options": ethernet(with_options(FIN), "0800"),
    "ipv6": ethernet(ip6(FIN), "86dd"),
    "vlan": ethernet(ip4(FIN), "0800", "81000064"),
}


def waiting(stand_in: StandIn) -> int:
    return sum(one.backlog_bytes for one in stand_in.reports[-1].waiting if one.destination == 1)


def small_bytes(bench: Rig) -> int:
    """Return what the class of small packets has passed on."""
    command = ["tc", "-n", bench.near, "-s", "class", "show", "dev", "e0", "classid", "7c01:2"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(shown.split("Sent ", 1)[1].split()[0])


def fast_retransmissions(bench: Rig) -> int:
    text = namespaces.inside(bench.near, Path("/proc/thread-self/net/netstat").read_text)
    names, values = (line.split()[1:] for line in text.splitlines() if line.startswith("TcpExt:"))
    return int(dict(zip(names, values, strict=True))["TCPFastRetrans"])


def test_tcp_sends_nothing_again_for_a_stream_that_ends_behind_a_gate(bench: Rig) -> None:
    """Each stream had its data twice: 5.7 retransmissions for 8 segments."""
    stand_in = joined(bench)
    bench.run(sys.executable, "-c", RAW, ethernet(ip4(ACK) + "00" * 1400, "0800"))  # wants a gate
    stand_in.keep_until(lambda: waiting(stand_in) > 0, Mode.CLOSED)
    launch = ["ip", "netns", "exec", bench.far, sys.executable, "-c", SINK]
    with subprocess.Popen(launch) as sink:
        source = bench.run(sys.executable, "-c", SOURCE)
        stand_in.keep_until(
            lambda: source.poll() is not None, Mode.RATE, Permit(1, RATE_BPS), seconds=120
        )
        sink.kill()
    assert source.returncode == 0
    assert fast_retransmissions(bench) <= STREAMS


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_the_end_waits_where_data_waits(bench: Rig, frame: str) -> None:
    stand_in = joined(bench)
    data = bench.run(sys.executable, "-c", RAW, ethernet(ip4(ACK) + "00" * 1400, "0800"))
    stand_in.keep_until(lambda: waiting(stand_in) > 20_000, Mode.CLOSED)
    data.kill()
    data.wait()
    stand_in.keep_through(3, Mode.CLOSED)
    before = waiting(stand_in)
    bench.run(sys.executable, "-c", RAW, frame)
    stand_in.keep_until(lambda: waiting(stand_in) > before + 5_000, Mode.CLOSED)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_an_end_alone_asks_for_no_turn(bench: Rig, frame: str) -> None:
    stand_in = joined(bench)
    before = small_bytes(bench)
    bench.run(sys.executable, "-c", RAW, frame)
    stand_in.keep_until(lambda: small_bytes(bench) > before + 5_000, Mode.CLOSED)
    assert waiting(stand_in) == 0


def test_an_acknowledgement_waits_for_nothing(bench: Rig) -> None:
    stand_in = joined(bench)
    bench.run(sys.executable, "-c", RAW, ethernet(ip4(ACK) + "00" * 1400, "0800"))
    stand_in.keep_until(lambda: waiting(stand_in) > 20_000, Mode.CLOSED)
    before = small_bytes(bench)
    bench.run(sys.executable, "-c", RAW, ethernet(ip4(ACK), "0800"))
    stand_in.keep_until(lambda: small_bytes(bench) > before + 5_000, Mode.CLOSED)
