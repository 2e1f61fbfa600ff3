"""A coordinator counts congestion marks by source, shows them, and leaves nothing behind."""

import os
import signal
import socket
import time
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from benchmarks.xco.gates.rig import HOST, RECEIVER, Rig, Running, StandIn, rig
from lab.system import namespaces
from xco.coordinator.config import plain
from xco.coordinator.status import Metrics, SourceStatus, status
from xco.core_files import program
from xco.protocol.wire import Mode, Port, PortCounts, Strategy

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
PORT, IP_RECVTOS = 4001, 13
NOT_ECT, ECT_0, CE = 0, 2, 3


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcomark") as made:
        yield made


def joined(bench: Rig, marks: str = "hide") -> tuple[StandIn, Running]:
    stand_in = bench.stand_in()
    running = bench.start(bench.config(marks=marks))
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.direct(Mode.OPEN, 0, 0)
    return stand_in, running


def opened(name: str, address: str) -> socket.socket:
    def create() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, PORT))
        made.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        made.settimeout(10.0)
        return made

    return namespaces.inside(name, create)


def arrives(bench: Rig, bits: int, *, back: bool = False) -> int:
    """Send a datagram with these bits to the receiver, or back; return those of its arrival."""
    ends = [(bench.near, HOST), (bench.far, RECEIVER)]
    (sender, source), (receiver, address) = reversed(ends) if back else ends
    with opened(sender, source) as out, opened(receiver, address) as to:
        out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, bits)
        out.sendto(bytes(64), (address, PORT))
        _, [(_, _, value)], _, _ = to.recvmsg(2000, 100)
    return value[0]


def source(running: Running) -> SourceStatus | None:
    """Return what came from the receiver's host."""
    found = [one for one in status(running.config).sources if one.host == "b"]
    return found[0] if found else None


def counted(running: Running) -> tuple[int, int]:
    found = source(running)
    return (0, 0) if found is None else (found.packets, found.marks)


def test_marks_are_counted_by_source_and_hidden_and_packets_leave_capable(bench: Rig) -> None:
    stand_in, running = joined(bench)
    assert [arrives(bench, bits, back=True) for bits in (CE, CE, NOT_ECT, ECT_0)] == [NOT_ECT] * 4
    stand_in.keep_until(lambda: counted(running) == (4, 2), Mode.OPEN)
    assert arrives(bench, NOT_ECT) == ECT_0
    registry = CollectorRegistry()
    registry.register(Metrics(running.config))
    labels = {"interface": "e0", "source": "b"}
    assert registry.get_sample_value("xco_coordinator_source_marks_total", labels) == 2
    assert registry.get_sample_value("xco_coordinator_source_packets_total", labels) == 4


def test_marks_may_be_kept(bench: Rig) -> None:
    stand_in, running = joined(bench, "keep")
    assert arrives(bench, CE, back=True) == CE
    stand_in.keep_until(lambda: counted(running) == (1, 1), Mode.OPEN)


def ports(stand_in: StandIn) -> list[PortCounts]:
    """Return the counters of the host's port in all messages so far."""
    return [port for one in stand_in.others if isinstance(one, Port) for port in one.ports]


def test_in_gcc_a_host_reports_its_own_port(bench: Rig) -> None:
    stand_in = bench.stand_in()
    stand_in.strategy = Strategy.GCC
    running = bench.start(bench.config(marks="hide"))
    stand_in.wait_for(lambda: ports(stand_in))
    for bits in (CE, NOT_ECT, CE):
        arrives(bench, bits, back=True)
    stand_in.keep_until(lambda: ports(stand_in)[-1].marks == 2, Mode.OPEN)
    last = ports(stand_in)[-1]
    nodes = running.config.topology.node_indices
    assert (last.source, last.target) == (nodes["s"], nodes["a"])
    assert last.packets >= 3
    assert 3 * 64 <= last.coordinated_bytes <= last.bytes
    digests = {one.digest for one in stand_in.others if isinstance(one, Port)}
    assert digests == {running.config.topology.nodes_digest()}


def test_in_gcc_a_host_that_does_not_count_says_so_once(bench: Rig) -> None:
    stand_in = bench.stand_in()
    stand_in.strategy = Strategy.GCC
    bench.start(bench.config(marks="off"))
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.keep_until(lambda: "the strategy is gcc" in bench.log.read_text(), Mode.OPEN)
    stand_in.keep(0.1, Mode.OPEN)
    assert bench.log.read_text().count("the strategy is gcc") == 1
    assert ports(stand_in) == []


def test_another_protocol_version_is_named_once(bench: Rig) -> None:
    stand_in, _ = joined(bench)
    for _ in range(3):
        stand_in.send(b"XCO1\x04\x02" + bytes(60))
    stand_in.keep_until(lambda: "protocol version 2" in bench.log.read_text(), Mode.OPEN)
    assert bench.log.read_text().count("protocol version") == 1


def test_without_the_setting_packets_are_left_alone(bench: Rig) -> None:
    _, running = joined(bench, "off")
    assert arrives(bench, CE, back=True) == CE
    assert arrives(bench, NOT_ECT) == NOT_ECT
    assert status(running.config).sources == ()


def test_counting_goes_on_after_the_interface_was_replaced(bench: Rig) -> None:
    stand_in, running = joined(bench)
    arrives(bench, CE, back=True)
    stand_in.keep_until(lambda: counted(running) == (1, 1), Mode.OPEN)
    bench.part()
    bench.join()
    stand_in.wait_for(lambda: running.statistics().values["remakes"] >= 1)
    assert arrives(bench, CE, back=True) == NOT_ECT
    stand_in.wait_for(lambda: counted(running) == (2, 2))


def test_nothing_is_left_when_the_loop_and_its_guard_are_killed(bench: Rig) -> None:
    _, running = joined(bench)
    assert arrives(bench, NOT_ECT) == ECT_0
    loop = running.loop()
    for process in (running.process.pid, loop):
        os.kill(process, signal.SIGKILL)
    running.process.wait(10)
    until = time.monotonic() + 10  # the kernel still ends the loop
    while arrives(bench, CE, back=True) != CE:
        assert time.monotonic() < until
    assert arrives(bench, NOT_ECT) == NOT_ECT


def test_a_program_that_the_kernel_does_not_take_is_refused_with_the_setting(bench: Rig) -> None:
    config = bench.config(marks="hide")
    bench.stand_in()
    text = plain(config)
    shim = next(line for line in text.splitlines() if line.startswith("shim "))
    config.plain_file.write_text(text.replace(shim, f"shim {config.plain_file}"))
    process = bench.run(str(program("xco-coordinator")), str(config.plain_file))
    assert process.wait(20) == 3
    assert "coordinator.marks asks for it" in bench.log.read_text()
    assert arrives(bench, NOT_ECT) == NOT_ECT
