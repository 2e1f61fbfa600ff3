"""The BPF classifier on a real interface: what belongs to which class, whoever sends it."""

import contextlib
import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_frames import ENDLESS, ethernet, sent, udp4

from benchmarks.xco.gates.rig import HOST, LINE_BPS, RECEIVER, Rig, Running, StandIn, rig
from lab.system import namespaces
from xco.protocol.wire import Mode, Permit

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
FAR_MAC = "020000770002"


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcocn") as made:
        made.classifier = "bpf"
        yield made


def joined(bench: Rig, **changes: object) -> tuple[StandIn, Running]:
    stand_in = bench.stand_in()
    running = bench.start(bench.config(**changes))
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.direct(Mode.OPEN, 0, 0)
    return stand_in, running


def waiting(stand_in: StandIn, host: int) -> int:
    entries = stand_in.reports[-1].waiting
    return sum(entry.backlog_bytes for entry in entries if entry.destination == host)


@pytest.mark.parametrize(
    "frame",
    [
        ethernet(udp4(RECEIVER)),
        ethernet(udp4(RECEIVER), tags="81000064"),
        ethernet(udp4(RECEIVER), tags="88a8006481000007"),
        ethernet(udp4(RECEIVER, more="2010")),
        ethernet("46" + udp4(RECEIVER, length=1404)[2:40] + "01010100" + "00" * 1380),
    ],
    ids=["untagged", "vlan", "qinq", "fragment", "options"],
)
def test_packets_to_a_host_wait_at_its_gate_however_they_are_wrapped(
    bench: Rig, frame: str
) -> None:
    stand_in, _ = joined(bench)
    bench.run(sys.executable, "-c", ENDLESS, frame)
    stand_in.keep_until(lambda: waiting(stand_in, 1) > 100_000, Mode.CLOSED)


def test_forged_sources_open_nothing(bench: Rig) -> None:
    """Three hundred of them made a class of its own for everything: the whole line."""
    stand_in, running = joined(bench)
    frames = [
        ethernet(udp4(RECEIVER, source=f"10.99.{n // 250}.{n % 250 + 1}", length=400))
        for n in range(300)
    ]
    bench.run(sys.executable, "-c", ENDLESS, *frames)
    stand_in.keep_until(lambda: waiting(stand_in, 1) > 20_000, Mode.CLOSED)
    stand_in.keep_until(lambda: running.statistics().values["flows"] == 1, Mode.CLOSED)
    assert running.statistics().values["flows_refused"] == 0


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (ethernet(udp4("10.77.0.200")), "7c01:50"),
        (ethernet(udp4("224.0.0.9"), to="01005e000009"), "7c01:50"),
        (ethernet("00" * 1400, kind="88b6"), "7c01:50"),
        (ethernet("0001080006040001" + "00" * 20, kind="0806", to="ff" * 6), "7c01:2"),
        (ethernet(udp4(RECEIVER, length=100)), "7c01:2"),
    ],
    ids=["unlisted", "multicast", "not-ip", "arp", "small"],
)
def test_what_is_no_flow_between_hosts_has_a_class_with_a_bound(
    bench: Rig, frame: str, kind: str
) -> None:
    stand_in, _ = joined(bench)
    before = sent(bench, kind)
    bench.run(sys.executable, "-c", ENDLESS, frame)
    stand_in.keep_until(lambda: sent(bench, kind) > before + 20_000, Mode.CLOSED)


@pytest.mark.parametrize(("priority", "kind"), [(7, "7c01:1"), (0, "7c01:2")])
def test_pauses_of_a_switch_do_not_wait_behind_small_packets(
    bench: Rig, priority: int, kind: str
) -> None:
    """By their priority, which no VM can give to what it sends."""
    stand_in, _ = joined(bench)
    before = sent(bench, kind)
    pause = ethernet("0101" + "00" * 44, kind="8808", to="0180c2000001")
    option = f"out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, {priority})\nframes ="
    bench.run(sys.executable, "-c", ENDLESS.replace("frames =", option, 1), pause)
    stand_in.keep_until(lambda: sent(bench, kind) > before + 20_000, Mode.CLOSED)


def test_unlisted_destinations_share_a_tenth_of_the_line(bench: Rig) -> None:
    """They had the whole of it: an alias of a VM was rid of coordination."""
    stand_in, running = joined(bench)
    bench.run(
        sys.executable, "-c", ENDLESS.replace("time.sleep(0.0003)", ""), ethernet(udp4("10.9.9.9"))
    )

    def unlisted() -> int:
        return running.statistics().values["unlisted_bytes"]

    stand_in.keep_until(lambda: unlisted() > 100_000, Mode.OPEN)
    before, begun = unlisted(), stand_in.now_ns()
    stand_in.keep(1.0, Mode.OPEN)
    rate_bps = (unlisted() - before) * 8e9 / (stand_in.now_ns() - begun)
    assert rate_bps < 0.11 * LINE_BPS


def shell(*lines: str) -> None:
    for line in lines:
        subprocess.run(line.split(), check=True)


@pytest.fixture
def machines(bench: Rig) -> Iterator[list[str]]:
    """Two VMs behind a bridge whose way out is gated."""
    near, names = bench.near, [f"{bench.near}-vm{number}" for number in (1, 2)]
    for name in names:
        namespaces.remove(name)
        namespaces.create(name)
    shell(f"ip -n {near} link add br0 type bridge", f"ip -n {near} link set br0 up")
    shell(f"ip -n {near} addr flush dev e0", f"ip -n {near} link set e0 master br0")
    shell(f"ip -n {near} addr add {HOST}/24 dev br0")
    for number, name in enumerate(names):
        shell(f"ip -n {near} link add vm{number} type veth peer name e0 netns {name}")
        shell(f"ip -n {near} link set vm{number} master br0 up", f"ip -n {name} link set e0 up")
    yield names
    for name in names:
        namespaces.remove(name)


def sent_of_queues(bench: Rig) -> list[int]:
    """Return what each queue of the first gate has passed on."""
    return [sent(bench, f"7e00:{0x10 + queue:x}") for queue in range(8)]


def test_machines_share_a_gate_alike_though_one_claims_to_be_many(
    bench: Rig, machines: list[str]
) -> None:
    """Queues belong to the interface that packets came from, whatever addresses they carry."""
    stand_in, _ = joined(bench)
    many = [ethernet(udp4(RECEIVER, source=f"10.99.0.{n + 1}"), to=FAR_MAC) for n in range(50)]
    start = ["ip", "netns", "exec"]
    flood = ENDLESS.replace("time.sleep(0.0003)", "")
    # The slower one first: a fast machine's flood would fill the gate before it has begun.
    senders = [subprocess.Popen([*start, machines[1], sys.executable, "-c", ENDLESS, many[0]])]
    try:
        stand_in.keep_until(lambda: waiting(stand_in, 1) > 400_000, Mode.CLOSED)
        senders.append(subprocess.Popen([*start, machines[0], sys.executable, "-c", flood, *many]))
        stand_in.keep_until(lambda: waiting(stand_in, 1) > 1_000_000, Mode.CLOSED)
        before = sent_of_queues(bench)
        # A twelfth of what the slower one sends, so that both always have something to wait for.
        stand_in.keep(1.0, Mode.RATE, Permit(1, 5_000_000))
        stand_in.keep_through(4, Mode.CLOSED)  # queues are read one after the other
        after = sent_of_queues(bench)
    finally:
        for sender in senders:
            sender.kill()
            sender.wait()
    *others, less, more = sorted(now - then for now, then in zip(after, before, strict=True))
    assert less > 0.8 * more > 0
    assert sum(others) == 0  # one queue each, not one for each address


def test_the_loop_keeps_only_the_privileges_that_it_uses(bench: Rig) -> None:
    _, running = joined(bench)
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text()
    for process, most in ((running.process.pid, 3), (int(children.split()[0]), 5)):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        held = int(next(line for line in lines if line.startswith("CapEff")).split()[1], 16)
        assert held.bit_count() == most
        assert "NoNewPrivs:\t1" in lines


def maps_of(running: Running) -> set[int]:
    """Return the numbers of the BPF maps that a coordinator holds (/proc/PID/fdinfo)."""
    file, found = str(running.config.plain_file).encode(), set()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # others end meanwhile
            if file in command.read_bytes():
                told = [one.read_text() for one in (command.parent / "fdinfo").iterdir()]
                found |= {int(one) for one in re.findall(r"map_id:\t(\d+)", "".join(told))}
    return found


def count_as_left(running: Running, more: int) -> None:
    """Add to what a coordinator's program has counted as left of its first gate."""
    bpf, changed = ctypes.CDLL("libbpf.so.1"), 0
    for number in maps_of(running):
        descriptor = bpf.bpf_map_get_fd_by_id(number)
        told, length = (ctypes.c_char * 256)(), ctypes.c_uint32(256)
        bpf.bpf_obj_get_info_by_fd(descriptor, told, ctypes.byref(length))
        if told.raw[24:40].rstrip(b"\0") == b"passages":
            key, passage = ctypes.c_uint32(0), (ctypes.c_uint64 * 3)()  # entered, left, tell
            assert bpf.bpf_map_lookup_elem(descriptor, ctypes.byref(key), passage) == 0
            passage[1] = (passage[1] + more) % 2**64
            assert bpf.bpf_map_update_elem(descriptor, ctypes.byref(key), passage, 0) == 0
            changed += 1
        os.close(descriptor)
    assert changed == 1


def test_a_gate_that_holds_packets_is_reported_again_after_a_wrong_count(bench: Rig) -> None:
    """It seemed empty and stayed closed: its host sent nothing for ten seconds."""
    stand_in, running = joined(bench)
    stand_in.keep(0.1, Mode.CLOSED)
    bench.send(count=600)  # some pass as newcomers until the host has a gate
    stand_in.keep_until(lambda: waiting(stand_in, 1) > 20_000, Mode.CLOSED)
    real = since = 0

    def was_empty() -> bool:
        entries = [report.waiting for report in stand_in.reports[since:]]
        return any(sum(one.backlog_bytes for one in some) == 0 for some in entries)

    def is_real() -> bool:
        return waiting(stand_in, 1) == real

    for _ in range(20):
        stand_in.keep(0.5, Mode.CLOSED)
        real, since = waiting(stand_in, 1), len(stand_in.reports)
        count_as_left(running, real)
        stand_in.keep(0.3, Mode.CLOSED)
        if was_empty():
            break
        # A comparison came before the next look, and counts that were corrected once are asked
        # about at each look: with the right count back, the next comparison ends that.
        count_as_left(running, -real)
        stand_in.keep(1.0, Mode.CLOSED)
        stand_in.keep_until(is_real, Mode.CLOSED)
    assert was_empty()
    stand_in.keep_until(is_real, Mode.CLOSED, seconds=5)
