"""The lab's traffic on real links: each program counts what really went over the wire."""

import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from support.schedstat import turns
from support.stalls import Stalls
from support.waiting import eventually
from support.weights import make_punctual

from lab.errors import MissingRequirementError, ProgramError
from lab.fabric.fabric import Fabric
from lab.traffic import build, records, roles
from lab.traffic.counts import rate_bps, shares_bps

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(600),
]

LINK_BPS = 200_000_000
FULL_FRAME = 1_514
OVERLOADED = 300
"""So many packets are lost only where more is sent than the link carries."""


@pytest.fixture(scope="module")
def fabric() -> Iterator[Fabric]:
    with Fabric(f"w{os.getpid()}") as running:
        running.incast(2, LINK_BPS, vms=2)
        running.pace()
        yield running


def test_the_sources_compile_without_a_warning(tmp_path: Path) -> None:
    build.compile_to(tmp_path / "traffic", "-Werror")
    assert os.access(tmp_path / "traffic", os.X_OK)


def test_the_program_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = build.program()
    built = first.stat()
    assert build.program() == first
    assert first.stat().st_ino == built.st_ino
    assert [path.name for path in first.parent.iterdir()] == ["traffic"]


@pytest.mark.parametrize(
    ("compiler", "error"),
    [("no-such-compiler", MissingRequirementError), ("cc -DNS_PER_S=", ProgramError)],
)
def test_a_compiler_that_is_missing_or_refuses_is_named(
    compiler: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", compiler + (" -Werror" if " " in compiler else ""))
    with pytest.raises(error, match=compiler.split(maxsplit=1)[0]):
        build.program()


def test_blocks_are_read_whole_and_no_faster_than_the_link(fabric: Fabric) -> None:
    servers = [roles.serve_reads(fabric.place(host)) for host in fabric.senders]
    addresses = [host.address for host in fabric.senders]
    reader = roles.read_blocks(fabric.place(fabric.receivers[0]), addresses)
    eventually(lambda: reader.counts().blocks > 0)
    first = reader.counts()
    eventually(lambda: sum(server.counts().requests for server in servers) > 2 * first.blocks + 8)
    last = reader.finish()
    assert last.blocks > first.blocks > 0
    assert last.blocks * 1_000_000 <= last.bytes < (last.blocks + 1) * 1_000_000
    assert len(last.block_ns) == last.blocks - first.blocks
    assert min(last.block_ns) > 0.95 * 8_000_000 * 1e9 / LINK_BPS
    served = [server.finish() for server in servers]
    assert all(server.requests in {last.blocks, last.blocks + 1} for server in served)
    assert last.bytes <= sum(server.bytes for server in served) < last.bytes + 2_000_000


def test_a_reader_whose_server_is_killed_says_so(fabric: Fabric) -> None:
    server = roles.serve_reads(fabric.place(fabric.senders[0]))
    reader = roles.read_blocks(fabric.place(fabric.receivers[0]), [fabric.senders[0].address])
    server.stop()
    eventually(lambda: not reader.alive)
    with pytest.raises(ProgramError, match="server 0 is gone"):
        reader.counts()


def test_streams_use_the_congestion_control_that_is_named(fabric: Fabric) -> None:
    to = fabric.receivers[0]
    with (
        roles.sink_streams(fabric.place(to)) as sink,
        roles.send_stream(fabric.place(fabric.senders[0]), to.address, congestion="reno"),
    ):
        assert eventually(lambda: sink.counts().total_bytes > 0)
        with pytest.raises(ProgramError, match="--congestion missing"):
            roles.send_stream(fabric.place(fabric.senders[0]), to.address, congestion="missing")


def test_streams_are_told_apart_by_the_address_they_come_from(fabric: Fabric) -> None:
    host, to = fabric.senders[0], fabric.receivers[0]
    with roles.sink_streams(fabric.place(to)) as sink:
        slow, fast = (
            roles.send_stream(fabric.place(host), to.address, bind=address, rate_bps=rate)
            for address, rate in zip(host.addresses, (10_000_000, 40_000_000), strict=True)
        )
        for program in (sink, slow, fast):
            make_punctual(program.pid)
        before = sink.counts()
        time.sleep(1.0)
        shares = shares_bps(before, sink.counts())
        sent = [slow.finish().bytes, fast.finish().bytes]
        eventually(lambda: sink.counts().total_bytes == sum(sent))
        arrived = sink.counts().sources
    assert [arrived[address].bytes for address in host.addresses] == sent
    assert [arrived[address].count for address in host.addresses] == [1, 1]
    assert shares[host.addresses[0]] == pytest.approx(10e6, rel=0.2)
    assert shares[host.addresses[1]] == pytest.approx(40e6, rel=0.2)


def test_short_flows_arrive_whole_one_after_the_other(fabric: Fabric) -> None:
    host, to = fabric.senders[1], fabric.receivers[0]
    with roles.sink_streams(fabric.place(to)) as sink:
        start_ns = time.monotonic_ns()
        flows = roles.send_short_flows(fabric.place(host), to.address, sequences=20)
        taken: list[int] = []

        def flown() -> int:
            counts = flows.counts()
            taken.extend(counts.flow_ns)
            return counts.flows

        eventually(lambda: flown() > 100)
        sent = flows.finish()
        taken.extend(sent.flow_ns)
        received = sink.counts().sources[host.address]
    assert sent.failed == 0
    assert len(taken) == sent.flows > 100
    assert sent.flows <= received.count
    assert sent.flows * 30_000 <= received.bytes <= (sent.flows + 20) * 30_000
    assert sum(taken) <= 20 * (sent.now_ns - start_ns)  # one flow at a time in each


def test_short_flows_without_a_sink_fail_and_are_counted(fabric: Fabric) -> None:
    host, to = fabric.senders[1], fabric.receivers[0]
    with roles.send_short_flows(fabric.place(host), to.address, sequences=1, port=9) as flows:
        eventually(lambda: flows.counts().failed > 0)
        assert flows.counts().flows == 0


def test_paced_messages_keep_their_rate_and_all_arrive(fabric: Fabric) -> None:
    host, to, drops = fabric.senders[0], fabric.receivers[0], fabric.drops()
    with roles.sink_messages(fabric.place(to)) as sink:
        source = roles.send_messages(
            fabric.place(host), to.address, size=roles.DATAGRAM_BYTES, rate_bps=20_000_000
        )
        make_punctual(source.pid)
        first, before = source.counts(), turns(source.pid)
        time.sleep(1.0)
        rate = rate_bps(first, source.counts())
        waited = turns(source.pid).since(before).waited
        sent = source.finish()
        eventually(
            lambda: sink.counts().sources[host.address].count + fabric.drops() - drops == sent.count
        )
        arrived = sink.counts()
    assert arrived.total_bytes == arrived.sources[host.address].count * roles.DATAGRAM_BYTES
    assert arrived.total_bytes > 0.9 * sent.bytes
    assert 20e6 * (0.9 - waited) < rate < 1.1 * 20e6


def test_a_message_that_lost_a_fragment_does_not_count(fabric: Fabric) -> None:
    to, drops, wire = fabric.receivers[0], fabric.drops(), fabric.wire_bytes()
    with roles.sink_messages(fabric.place(to)) as sink:
        sources = [roles.send_messages(fabric.place(h), to.address) for h in fabric.senders]
        eventually(lambda: fabric.drops() > drops + OVERLOADED)
        sent = sum(source.finish().count for source in sources)
        time.sleep(0.1)
        received = sink.finish()
    whole = sum(source.count for source in received.sources.values())
    carried = (fabric.wire_bytes() - wire) // 46_000  # a message is 45 fragments of at most 1,514
    assert fabric.drops() > drops
    assert received.overflows == 0
    assert received.total_bytes == whole * roles.MESSAGE_BYTES
    assert whole < sent
    assert whole < carried


def test_pings_are_answered_and_timed(fabric: Fabric, stalls: Stalls) -> None:
    host, to = fabric.senders[0], fabric.receivers[0]
    with roles.ping(fabric.place(host), to.address, interval_us=5_000) as ping:
        make_punctual(ping.pid)
        eventually(lambda: ping.counts().received > 20)
        last = ping.finish()
    under_way = 2 + stalls.longest() / 0.005
    assert last.sent - under_way <= last.received <= last.sent


def test_pings_of_nobody_are_not_answered(fabric: Fabric) -> None:
    with roles.ping(fabric.place(fabric.senders[0]), "10.250.0.77") as ping:
        eventually(lambda: ping.counts().sent > 5)
        assert ping.counts().received == 0


def test_a_capture_stamps_and_counts_each_packet(
    fabric: Fabric, tmp_path: Path, stalls: Stalls
) -> None:
    hosts, to = fabric.senders, fabric.receivers[0]
    output, start_ns, drops = tmp_path / "arrivals", time.monotonic_ns(), fabric.drops()
    capture = roles.capture(fabric.place(to), "eth0", output)
    with roles.sink_messages(fabric.place(to)):
        sources = [
            roles.send_messages(fabric.place(host), to.address, size=1_472, rate_bps=rate)
            for host, rate in zip(hosts, (8_000_000, 24_000_000), strict=True)
        ]
        for source in sources:
            make_punctual(source.pid)
        time.sleep(0.5)
        sent = [source.finish().count for source in sources]
    eventually(lambda: capture.counts().packets + fabric.drops() - drops == sum(sent))
    counts, end_ns = capture.finish(), time.monotonic_ns()
    arrivals = list(records.read(output))
    counted = [counts.sources[host.address].count for host in hosts]
    assert counts.missed == 0
    assert sum(counted) == counts.packets > 0.9 * sum(sent)
    assert all(count <= number for count, number in zip(counted, sent, strict=True))
    assert [sum(a.source == host.address for a in arrivals) for host in hosts] == counted
    assert {(a.length, a.protocol) for a in arrivals} == {(FULL_FRAME, 17)}
    stamps = [a.at_ns for a in arrivals]
    assert start_ns < stamps[0] <= stamps[-1] < end_ns
    # two CPUs may hand over neighbours in either order, and one of them may stand still
    apart_ns = 5_000_000 + stalls.longest() * 1e9
    assert all(after > before - apart_ns for before, after in pairwise(stamps))


def test_an_option_that_is_missing_or_senseless_is_named(fabric: Fabric) -> None:
    place = fabric.place(fabric.senders[0])
    with pytest.raises(ProgramError, match="--interface"):
        roles.capture(place, "eth9")
    with pytest.raises(ProgramError, match="--to nowhere is not an IPv4 address"):
        roles.send_messages(place, "nowhere")
    with pytest.raises(ProgramError, match="--size is not from 1 to 65507"):
        roles.send_messages(place, "10.240.0.1", size=70_000)
    with pytest.raises(ProgramError, match="connect: Connection refused"):
        roles.send_stream(place, fabric.receivers[0].address)
