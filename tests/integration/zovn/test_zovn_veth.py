"""Ports to containers: a full receiver stops its senders, back to their sockets, without loss."""

import signal
import socket
import subprocess
import time

import pytest
from rigs.zovn_veth_rig import (
    ENOUGH,
    GRO,
    HOST,
    PORT,
    SO_SNDBUFFORCE,
    SWITCH,
    Sink,
    address,
    all_sleep,
    container,
    floods,
    host,
    inside,
    link,
    port,
    qdisc,
    require_lossless_veth,
    run,
    set_offload,
    set_receive_queues,
    sink,
    state_of_host,
    switch,
    write_inside,
)
from support.waiting import eventually

from lab.system import namespaces

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
STOP_S = 1.0
NEVER = 2**31 - 1


@pytest.fixture(scope="module", autouse=True)
def _lossless_veth() -> None:
    require_lossless_veth()


def check_whole(into: Sink, sent: int) -> None:
    """Check that all datagrams came, in order."""
    assert (into.settled(sent), into.gaps, into.reordered) == (sent, 0, 0)


def check_counters(counters: dict[str, str]) -> None:
    """Check that the switch dropped nothing, and the kernel neither."""
    lossy = ("dropped", "lost", "stalls")
    assert not {
        name: value for name, value in counters.items() if name.endswith(lossy) and value != "0"
    }


def test_ping_and_tcp_between_two_containers() -> None:
    with host(1, 2), switch(1, 2) as running, inside(2, socket.SOCK_STREAM) as listener:
        for name in (container(1), container(2)):
            run("ip", "-n", name, "neighbour", "flush", "dev", "e0")
        run("ip", "netns", "exec", container(1), "ping", "-c", "3", "-i", "0.1", address(2))
        listener.bind((address(2), PORT))
        listener.listen()
        body = bytes(range(256)) * 20_000
        with inside(1, socket.SOCK_STREAM) as client:
            client.settimeout(30)
            client.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, ENOUGH)
            client.connect((address(2), PORT))
            server, _ = listener.accept()
            with server:
                client.sendall(body)
                client.shutdown(socket.SHUT_WR)
                got = b"".join(iter(lambda: server.recv(1 << 16), b""))
        assert got == body
        check_counters(running.end())


def test_a_flood_sleeps_while_the_switch_stands_still() -> None:
    pairs = [(1, 2)] * 8
    with host(1, 2), switch(1, 2) as running, sink(2) as into:
        with floods(pairs) as flooding:
            eventually(lambda: into.received > 1000)
            running.signal(signal.SIGSTOP)
            begun = time.monotonic()
            before = all_sleep(flooding)
            time.sleep(max(0.0, begun + STOP_S - time.monotonic()))
            assert sum(flood.sent for flood in flooding) == before
            running.signal(signal.SIGCONT)
            eventually(lambda: sum(flood.sent for flood in flooding) > 2 * before)
        check_whole(into, sum(flood.sent for flood in flooding))
        check_counters(running.end())


@pytest.mark.parametrize("lossy", [False, True])
def test_two_senders_overload_a_slow_receiver(lossy: bool) -> None:
    options = ("-l", "20000") if lossy else ()
    with host(1, 2, 3), switch(1, 2, 3, options=options) as running, sink(3) as into:
        # The receiver takes what its ring has only every 0.1 s.
        write_inside(3, "napi_defer_hard_irqs", NEVER)
        write_inside(3, "gro_flush_timeout", 100_000_000)
        with floods([(1, 3), (2, 3)]) as flooding:
            eventually(lambda: into.received > 3000)
        sent = sum(flood.sent for flood in flooding)
        received = into.settled(None if lossy else sent)
        counters = running.end()
        assert int(counters[f"{port(3)}.blocked_ns"]) > 0
        assert into.reordered == 0
        dropped = sum(int(counters[f"{port(n)}.congestion"]) for n in (1, 2))
        assert received == sent - dropped
        assert (dropped > 0) == lossy
        if not lossy:
            check_counters(counters)


def reaches_the_host(number: int) -> bool:
    """Return whether a datagram of the container comes to its host."""
    with (
        inside(number) as sender,
        namespaces.inside(HOST, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as got,
    ):
        got.bind(("", PORT))
        got.settimeout(5)
        sender.sendto(b"x", ("10.77.0.254", PORT))
        return got.recv(10) == b"x"


def release(*numbers: int) -> None:
    """Undo what a killed switch left."""
    ports = [port(number) for number in numbers]
    run("nsenter", f"--net={namespaces.path(HOST)}", str(SWITCH), "-r", *ports)


def test_a_killed_switch_is_followed_by_another() -> None:
    with host(1, 2), sink(2) as into, switch(1, 2) as running, floods([(1, 2)] * 4) as flooding:
        eventually(lambda: into.received > 1000)
        running.kill()
        all_sleep(flooding)
        with switch(1, 2) as second:
            enough = into.received + 1000
            eventually(lambda: into.received > enough)
            assert second.end()[f"{port(1)}.state"] == "runs"


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize("killed", [False, True])
def test_settings_are_restored(joins: bool, killed: bool) -> None:
    with host(1, 2), sink(2) as into:
        set_offload(HOST, port(1), GRO, on=joins)
        before = state_of_host(1)
        with switch(1, 2) as running, floods([(1, 2)]):
            eventually(lambda: into.received > 10)
            assert state_of_host(1) != before
            if killed:
                running.kill()
                release(1, 2)
            else:
                running.end()
        assert state_of_host(1) == before
        run("ip", "-n", HOST, "address", "add", "10.77.0.254/24", "dev", port(1))
        assert reaches_the_host(1)


def test_release_refuses_a_port_in_use() -> None:
    with host(1, 2), switch(1, 2):
        command = ["nsenter", f"--net={namespaces.path(HOST)}", SWITCH, "-r", port(1)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert (
            done.stderr == "zovn-veth-switch: p1: another program uses it (XDP); stop that first\n"
        )
        assert qdisc(HOST, port(1))["kind"] == "pfifo"


def test_a_container_that_is_deleted_harms_no_other() -> None:
    with host(1, 2, 3), switch(1, 2, 3) as running, sink(2) as into:
        with floods([(1, 2), (1, 3)]) as flooding:
            eventually(lambda: into.received > 1000)
            namespaces.remove(container(3))
            enough = into.received + 10_000
            eventually(lambda: into.received > enough)
        check_whole(into, flooding[0].sent)
        counters = running.end()
        assert counters[f"{port(3)}.state"] == "gone"
        assert counters[f"{port(2)}.dropped"] == counters[f"{port(1)}.lost"] == "0"


def test_an_interface_that_was_down_works_again() -> None:
    with host(1, 2), switch(1, 2) as running, sink(2) as into:
        with floods([(1, 2)]):
            eventually(lambda: into.received > 1000)
            run("ip", "-n", HOST, "link", "set", port(1), "down")
            run("ip", "-n", HOST, "link", "set", port(1), "up")
            enough = into.received + 10_000
            eventually(lambda: into.received > enough)
        assert running.end()[f"{port(1)}.state"] == "runs"


@pytest.mark.parametrize("limit", [0, 100])
def test_without_a_long_queue_the_loss_is_the_containers_own(limit: int) -> None:
    with host(1, 2), switch(1, 2) as running, sink(2) as into:
        run("tc", "-n", container(1), "qdisc", "delete", "dev", "e0", "root")
        if limit:
            queue = ("root", "pfifo", "limit", str(limit))
            run("tc", "-n", container(1), "qdisc", "add", "dev", "e0", *queue)
        with floods([(1, 2)] * 8) as flooding:
            eventually(lambda: into.received > 1000)
            running.signal(signal.SIGSTOP)
            enough = sum(flood.sent for flood in flooding) + 5000
            eventually(lambda: sum(flood.sent for flood in flooding) > enough)
            running.signal(signal.SIGCONT)
        queued = qdisc(container(1), "e0")["drops"]
        dropped = link(container(1), "e0")["stats64"]["tx"]["dropped"]
        lost = queued if limit else dropped
        assert lost > 0
        whole = sum(flood.sent for flood in flooding) - lost
        assert into.settled(whole) == whole
        check_counters(running.end())


def test_checksums_are_the_containers_own_work() -> None:
    with host(1, 2), switch(1, 2) as running, sink(2) as into, inside(1) as sender:
        for on in (True, False):
            set_offload(container(1), "e0", "tx-checksumming", on=on)
            for serial in range(10):
                sender.sendto(bytes(8) + serial.to_bytes(8, "big"), (address(2), PORT))
        check_whole(into, 10)
        check_counters(running.end())


def refusal(interface: str) -> str:
    """Return why a switch refuses a port."""
    command = ["nsenter", f"--net={namespaces.path(HOST)}", SWITCH, interface]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.removeprefix("zovn-veth-switch: ").strip()


@pytest.mark.parametrize(
    ("interface", "said"),
    [
        ("nothing", "nothing: there is no such interface in this network namespace"),
        ("lo", "lo: not a veth; name the host's end of one"),
        ("p1", "p1: another program uses it (XDP); stop that first"),
        ("p3", "p3: it is down; set it up"),
    ],
)
def test_an_interface_that_cannot_be_a_port_is_refused(interface: str, said: str) -> None:
    with host(1, 2, 3), switch(1, 2):
        run("ip", "-n", HOST, "link", "set", port(3), "down")
        assert refusal(interface) == said


def test_an_interface_with_a_queue_of_its_own_is_refused_and_keeps_it() -> None:
    with host(1):
        run("tc", "-n", HOST, "qdisc", "add", "dev", port(1), "root", "pfifo", "limit", "10")
        before = state_of_host(1)
        assert refusal(port(1)).startswith("p1: it has a queue (tc qdisc)")
        assert state_of_host(1) == before


def test_an_interface_with_several_receive_queues_is_refused_and_restored() -> None:
    with host(1):
        set_receive_queues(HOST, port(1), 2)
        before = state_of_host(1)
        assert refusal(port(1)).startswith("p1: it has several receive queues")
        assert state_of_host(1) == before
