"""New connections to a host whose way is congested are refused; everything else goes on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry
from raw_frames import ACK, FIN_ACK, ONCE, SYN, SYN_ACK, ethernet, tcp4, wrapped
from support.waiting import eventually
from xco_refusals_rig import (
    accepted,
    attempts,
    carries,
    configured,
    connecting,
    connecting_in,
    connects,
    during_refusal,
    first_attempts,
    fresh_attempts,
    hosts_refused,
    listening,
    listening_in,
    passes,
    peer,
    refused,
    refused_connection,
)

from benchmarks.xco.gates.rig import (
    CONTROLLER_ADDRESS,
    OTHER,
    RECEIVER,
    Rig,
    Running,
    rig,
)
from benchmarks.xco.rig import LAB, Settings
from benchmarks.xco.rig import rig as rig_on
from lab.fabric.fabric import Fabric
from lab.marking.terms import Marking
from lab.plan import namespace
from lab.traffic import roles
from xco.coordinator import gate
from xco.coordinator.config import plain
from xco.coordinator.gate import lacking
from xco.coordinator.status import Metrics, status
from xco.core_files import program
from xco.protocol.wire import Mode

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
SYN_ECN = 0xC2
LINK_BPS, UNSERVED = 100_000_000, 1e-7
"""Served at this share of a rate, a port marks every packet behind the first."""
GATES = ["tbf"] if lacking(gate.NEEDED_BY_EDT) else ["tbf", "edt"]
"""The kinds of gate that this kernel has."""
LEASE_S = 0.2
"""After it the program admits by itself."""


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcoref") as made:
        made.classifier = "bpf"
        yield made


@pytest.mark.parametrize("gates", GATES)
def test_a_congested_host_gets_no_new_connection_and_keeps_those_it_has(
    bench: Rig, gates: str
) -> None:
    config = configured(bench, gates=gates)
    running = bench.start(config)
    with listening(bench, RECEIVER) as there, listening(bench, OTHER), peer(bench, config) as told:
        told.share = 0.0
        eventually(config.statistics.exists)
        with connecting(bench, RECEIVER) as before, accepted(before, there) as end:
            told.share = 1.0

            def observe() -> tuple[bool, bool, bool, int]:
                count = fresh_attempts(running)
                with connecting(bench, RECEIVER) as late, connecting(bench, OTHER) as elsewhere:
                    made = passes(elsewhere), connects(late, 0.5) is not None
                    count = first_attempts(running, late) - count
                return *made, carries(before, end), count

            assert during_refusal(running, observe) == (True, False, True, 1)


def test_a_connection_that_was_refused_is_made_when_the_marks_end(bench: Rig) -> None:
    config = configured(bench)
    running = bench.start(config)
    with listening(bench, RECEIVER), peer(bench, config) as told:
        with refused_connection(bench, running) as late:
            told.share = 0.0
            assert connects(late, 10.0) is not None
        eventually(lambda: hosts_refused(running) == 0)
    log = bench.log.read_text()
    begun = log.count("connections to host 1 are refused: 100 % of what arrives there is marked")
    assert begun == log.count("connections to host 1 are admitted again, after") >= 1


def test_status_and_metrics_say_which_host_is_refused(bench: Rig) -> None:
    config = configured(bench)
    running = bench.start(config)
    registry = CollectorRegistry()
    registry.register(Metrics(config))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"xco_coordinator_{name}", {"interface": "e0"} | labels)

    def observe() -> tuple[object, ...]:
        with connecting(bench, RECEIVER):
            eventually(lambda: attempts(running) > 0 or hosts_refused(running) == 0)
        fresh_attempts(running)  # from here on it stays: both readings below are of all attempts
        found = {one.host: one for one in status(config).sources}["b"]
        b = {"destination": "b"}
        return (
            found.refused,
            found.attempts_refused == value("attempts_refused_total"),
            value("destinations_refused"),
            value("destination_refused", **b),
            value("destination_attempts_refused_total", **b) == found.attempts_refused,
        )

    with listening(bench, RECEIVER), peer(bench, config):
        assert during_refusal(running, observe) == (True, True, 1, 1, True)


def test_a_host_that_always_claims_marks_gets_connections_within_seconds(bench: Rig) -> None:
    config = configured(bench)
    running = bench.start(config)
    refusing = refused_connection(bench, running)
    with listening(bench, RECEIVER), peer(bench, config), refusing as late:
        took = connects(late, 12.0)
    assert took is not None
    assert took < 9.0


ASKING = {
    **wrapped(SYN),
    "ecn": ethernet(tcp4(SYN_ECN)),
    "data": ethernet(tcp4(SYN) + "00" * 1000),
}


@pytest.mark.parametrize("gates", GATES)
def test_every_kind_of_first_segment_is_refused_and_no_other(bench: Rig, gates: str) -> None:
    config = configured(bench, gates=gates)
    running = bench.start(config)
    others = [ethernet(tcp4(flags)) for flags in (ACK, SYN_ACK)]

    def observe() -> list[int]:
        counts = [fresh_attempts(running)]
        for frames in (ASKING.values(), [*others, *wrapped(FIN_ACK).values()]):
            assert bench.run(sys.executable, "-c", ONCE, *frames).wait(20) == 0
            counts.append(fresh_attempts(running) - counts[0])
        return counts[1:]

    with peer(bench, config):
        assert during_refusal(running, observe) == [len(ASKING), len(ASKING)]


def test_without_the_setting_marks_refuse_nothing(bench: Rig) -> None:
    config = configured(bench, admission=None)
    running = bench.start(config)
    with listening(bench, RECEIVER), peer(bench, config):
        eventually(config.statistics.exists)
        eventually(lambda: running.statistics().values["peer_taken"] > 50)
        with connecting(bench, RECEIVER) as one:
            assert passes(one)
    assert (hosts_refused(running), attempts(running)) == (0, 0)


def filters(bench: Rig) -> str:
    command = ["tc", "-n", bench.near, "filter", "show", "dev", "e0", "egress"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("victims", ["loop", "both"])
def test_nothing_is_refused_when_the_coordinator_is_killed(bench: Rig, victims: str) -> None:
    """The guard removes the program; killed as well, it leaves one that refuses no longer."""
    config = configured(bench)
    running = bench.start(config)
    with listening(bench, RECEIVER), peer(bench, config):
        eventually(refused(running))
        loop = running.loop()
        killed = [loop] if victims == "loop" else [running.process.pid, loop]
        for number in (signal.SIGSTOP, signal.SIGKILL):  # neither is to see the other's end
            for pid in killed:
                os.kill(pid, number)
        running.process.wait(20)
        if victims == "loop":
            eventually(lambda: "xco" not in filters(bench))
        else:
            assert "xco" in filters(bench)
        time.sleep(1.5 * LEASE_S)
        with connecting(bench, RECEIVER) as one:
            assert passes(one)


def test_a_controller_ends_refusals(bench: Rig) -> None:
    stand_in = bench.stand_in()
    config = configured(bench, controllers=[f"{CONTROLLER_ADDRESS}:7400"])
    running = bench.start(config)
    with listening(bench, RECEIVER), peer(bench, config):
        eventually(refused(running))
        stand_in.keep_until(lambda: hosts_refused(running) == 0, Mode.OPEN, seconds=4.0)
        with connecting(bench, RECEIVER) as one:
            assert passes(one)
        stand_in.keep(0.5, Mode.OPEN)
        assert hosts_refused(running) == 0


def test_without_a_program_it_is_said_once_that_nothing_is_refused(bench: Rig) -> None:
    bench.classifier = "auto"
    config = configured(bench)
    lines = plain(config).splitlines(keepends=True)
    config.plain_file.write_text("".join(one for one in lines if not one.startswith("classifier ")))
    running = Running(
        bench.run(str(program("xco-coordinator")), str(config.plain_file)), config, bench.log
    )
    with listening(bench, RECEIVER), peer(bench, config):
        eventually(config.statistics.exists)
        eventually(lambda: running.statistics().values["peer_taken"] > 50)
        with connecting(bench, RECEIVER) as one:
            assert passes(one)
    assert bench.log.read_text().count("no connection is refused, since no BPF program") == 1
    assert hosts_refused(running) == 0


def test_marks_on_the_wire_refuse_the_connections_of_who_sends_there() -> None:
    """Two coordinators and a switch that marks what it forwards: no port in use explains that."""
    coordinator = {"marks": "hide", "fallback": "hygenicc", "admission": 0.8}
    settings = Settings(LAB.controller, {**LAB.coordinator, **coordinator})
    with Fabric(f"rf{os.getpid()}") as fabric:
        fabric.incast(2, LINK_BPS)
        receiver, (busy, other) = fabric.receivers[0], fabric.senders
        places = [namespace(fabric.prefix, host.name) for host in (receiver, busy, other)]
        sink = roles.sink_messages(fabric.place(receiver))
        with rig_on(fabric, settings) as xco, sink, listening_in(places[0], receiver.address):
            xco.go("hygenicc")
            flood = roles.send_messages(
                fabric.place(busy), receiver.address, size=1000, rate_bps=LINK_BPS // 10
            )
            with flood:
                eventually(lambda: xco.host_counters(busy)["offers"] == 1)
                fabric.mark(Marking(threshold=0.0, phantom=UNSERVED))
                eventually(lambda: xco.host_counters(busy)["destinations_refused"] == 1)
                with (
                    connecting_in(places[1], receiver.address) as late,
                    connecting_in(places[2], receiver.address) as early,
                ):
                    assert passes(early)
                    eventually(lambda: xco.host_counters(busy)["attempts_refused"] > 0)
                    fabric.unmark()
                    assert connects(late, 10.0) is not None
                eventually(lambda: xco.host_counters(busy)["destinations_refused"] == 0)
            assert xco.host_counters(other)["attempts_refused"] == 0
