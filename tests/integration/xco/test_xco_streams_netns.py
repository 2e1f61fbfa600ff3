"""The end of a TCP stream waits behind its data: ahead of it, TCP sends all of that again."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_frames import ACK, ENDLESS, FIN_ACK, ethernet, sent, tcp4, wrapped

from benchmarks.xco.gates.rig import RECEIVER, Rig, StandIn, rig
from lab.system import namespaces
from xco.protocol.wire import Mode, Permit, Strategy

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
STREAMS = 20
BYTES = 11_500
RATE_BPS = 10_000_000
SMALL = "7c01:2"
"""The class of small packets."""
DATA, ENDS = ethernet(tcp4(ACK) + "00" * 1400), wrapped(FIN_ACK)
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


def waiting(stand_in: StandIn) -> int:
    return sum(one.backlog_bytes for one in stand_in.reports[-1].waiting if one.destination == 1)


def fast_retransmissions(bench: Rig) -> int:
    text = namespaces.inside(bench.near, Path("/proc/thread-self/net/netstat").read_text)
    names, values = (line.split()[1:] for line in text.splitlines() if line.startswith("TcpExt:"))
    return int(dict(zip(names, values, strict=True))["TCPFastRetrans"])


def test_tcp_sends_nothing_again_for_a_stream_that_ends_behind_a_gate(bench: Rig) -> None:
    """Each stream had its data twice: 5.7 retransmissions for 8 segments."""
    stand_in = joined(bench)
    bench.run(sys.executable, "-c", ENDLESS, DATA)  # wants a gate
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


@pytest.mark.parametrize("frame", ENDS.values(), ids=ENDS)
def test_the_end_waits_where_data_waits(bench: Rig, frame: str) -> None:
    stand_in = joined(bench)
    data = bench.run(sys.executable, "-c", ENDLESS, DATA)
    stand_in.keep_until(lambda: waiting(stand_in) > 20_000, Mode.CLOSED)
    data.kill()
    data.wait()
    stand_in.keep_through(3, Mode.CLOSED)
    before = waiting(stand_in)
    bench.run(sys.executable, "-c", ENDLESS, frame)
    stand_in.keep_until(lambda: waiting(stand_in) > before + 5_000, Mode.CLOSED)


@pytest.mark.parametrize("frame", ENDS.values(), ids=ENDS)
def test_an_end_alone_asks_for_no_turn(bench: Rig, frame: str) -> None:
    stand_in = joined(bench)
    before = sent(bench, SMALL)
    bench.run(sys.executable, "-c", ENDLESS, frame)
    stand_in.keep_until(lambda: sent(bench, SMALL) > before + 5_000, Mode.CLOSED)
    assert waiting(stand_in) == 0


def test_an_acknowledgement_waits_for_nothing(bench: Rig) -> None:
    stand_in = joined(bench)
    bench.run(sys.executable, "-c", ENDLESS, DATA)
    stand_in.keep_until(lambda: waiting(stand_in) > 20_000, Mode.CLOSED)
    before = sent(bench, SMALL)
    bench.run(sys.executable, "-c", ENDLESS, ethernet(tcp4(ACK)))
    stand_in.keep_until(lambda: sent(bench, SMALL) > before + 5_000, Mode.CLOSED)
