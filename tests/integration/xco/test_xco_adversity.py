"""What a coordinator relies on fails it: its interface changes, its log, its disk, IPv6, room."""

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path

import pytest
from support import rates
from support.inconclusive import inconclusive
from support.waiting import PATIENCE_S, eventually
from xco_coordinator_rig import build

from benchmarks.xco.gates.rig import (
    HOST,
    LINE_BPS,
    LONG_SILENCE_NS,
    Capture,
    Rig,
    Running,
    StandIn,
    rig,
)
from lab.system import namespaces
from xco.coordinator import gate
from xco.coordinator.config import plain
from xco.coordinator.status import status
from xco.core_files import program
from xco.protocol.wire import Flag, Mode

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
OUTSIDE = "10.78.0.0/16"
SPREAD = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_000_000)
count, rate, data = int(sys.argv[1]), float(sys.argv[2]), bytes(1400)
to = [(f"10.78.{n // 250}.{n % 250 + 1}", 9) for n in range(count)]
sent, start = 0, time.monotonic()
while True:
    while sent < (time.monotonic() - start) * rate:
        out.sendto(data, to[sent % count])
        sent += 1
    time.sleep(0.001)
"""
"""Sends in turn to so many addresses outside the topology: COUNT PACKETS_PER_S."""


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcoad") as made:
        yield made


def ip(bench: Rig, *words: str) -> None:
    subprocess.run(["ip", "-n", bench.near, *words], check=True)


def held(bench: Rig, **changes: object) -> tuple[StandIn, Running, Capture]:
    """Start a coordinator and a paced flow that waits behind its closed gate."""
    capture, stand_in = bench.capture(), bench.stand_in()
    running = bench.start(bench.config(**changes))
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.direct(Mode.CLOSED, 0, 0)
    bench.send(rate=2000)
    stand_in.keep_until(lambda: stand_in.reports[-1].waiting, Mode.CLOSED)
    stand_in.keep_until(lambda: capture.take() == [], Mode.CLOSED)
    stand_in.keep_through(4, Mode.CLOSED)
    capture.take()
    return stand_in, running, capture


def gated(bench: Rig, interface: str) -> bool:
    return namespaces.inside(bench.near, lambda: gate.gated(interface))


@pytest.mark.parametrize(
    ("change", "back", "now"),
    [(("name", "e9"), ("name", "e0"), "e9"), (("mtu", "40000"), ("mtu", "1500"), "e0")],
)
def test_an_interface_that_changed_is_set_free_and_gated_again_when_it_is_as_before(
    bench: Rig, change: tuple[str, str], back: tuple[str, str], now: str
) -> None:
    stand_in, running, capture = held(bench)
    ip(bench, "link", "set", "e0", *change)
    eventually(capture.take)  # the gate was closed
    assert not gated(bench, now)
    eventually(lambda: status(running.config).mode == "unshaped")
    stand_in.keep_until(lambda: stand_in.reports[-1].flags & Flag.FELL_BACK, Mode.CLOSED)
    assert stand_in.reports[-1].waiting == ()  # it asks for no turn
    ip(bench, "link", "set", now, *back)
    stand_in.keep_until(lambda: running.statistics().values["remakes"] == 1, Mode.CLOSED)
    assert gated(bench, "e0")
    running.process.terminate()
    assert running.process.wait(PATIENCE_S) == 0
    assert not gated(bench, "e0")


@pytest.mark.parametrize("change", [("name", "e9"), ("mtu", "40000")])
def test_the_guard_finds_an_interface_that_changed_before_its_loop_was_killed(
    bench: Rig, change: tuple[str, str]
) -> None:
    _, running, _ = held(bench)
    loop = running.loop()
    os.kill(loop, signal.SIGSTOP)  # it cannot see the change
    ip(bench, "link", "set", "e0", *change)
    now = change[1] if change[0] == "name" else "e0"
    assert gated(bench, now)
    os.kill(loop, signal.SIGKILL)
    assert running.process.wait(PATIENCE_S) == 1
    assert not gated(bench, now)


def fill(pipe: int) -> None:
    """Fill a pipe to the last byte, as who has stopped reading leaves it."""
    own = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        try:
            while True:
                os.write(own, bytes(size))
        except BlockingIOError:
            pass
    os.close(own)


def test_a_log_that_nobody_reads_stops_nothing(bench: Rig) -> None:
    capture, stand_in = bench.capture(), bench.stand_in()
    config = bench.config(hang="1s")
    config.plain_file.write_text(plain(config))
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    inside = ["ip", "netns", "exec", bench.near]
    command = [*inside, str(program("xco-coordinator")), str(config.plain_file)]
    with subprocess.Popen(command, stderr=writer) as process:
        try:
            running = Running(process, config, bench.log)
            stand_in.wait_for(lambda: stand_in.reports)
            fill(writer)
            bench.send(rate=2000)
            for times in (1, 2):  # each change is said
                stand_in.allow_silence(LONG_SILENCE_NS)
                stand_in.keep_until(lambda: status(config).mode == "closed", Mode.CLOSED)
                capture.take()
                stand_in.allow_silence(200_000_000)  # and from now on the controller is silent
                eventually(lambda: running.statistics().values["fallbacks"] == times)  # noqa: B023  called at once
                eventually(capture.take)
            os.close(reader)  # and a log that is gone ends nothing
            stand_in.allow_silence(LONG_SILENCE_NS)
            stand_in.keep_until(lambda: status(config).mode == "closed", Mode.CLOSED)
        finally:
            process.terminate()
            os.close(writer)
        assert process.wait(PATIENCE_S) == 0


def test_a_disk_that_is_slow_stops_no_gate_but_the_epoch_is_kept_first(bench: Rig) -> None:
    capture, stand_in = bench.capture(), bench.stand_in()
    config = bench.config(hang="500ms")
    kept = Path(bench.folder, "epoch-e0")
    os.mkfifo(f"{kept}.new")  # to open it is to wait for a reader
    running = bench.start(config)
    stand_in.wait_for(lambda: stand_in.reports)
    bench.send(rate=2000)
    eventually(capture.take)
    stand_in.keep(1.5, Mode.CLOSED)  # longer than a hanging loop may live
    capture.take()
    stand_in.keep_until(capture.take, Mode.CLOSED)  # it is not obeyed yet
    assert status(config).mode == "fallback"
    assert running.process.poll() is None
    reader = os.open(f"{kept}.new", os.O_RDONLY)
    stand_in.keep_until(lambda: status(config).mode == "closed", Mode.CLOSED)
    assert os.read(reader, 100) == b"1\n"
    os.close(reader)


def test_a_new_epoch_is_on_the_disk_before_it_is_obeyed(bench: Rig) -> None:
    stand_in, running, _ = held(bench)
    kept = Path(bench.folder, "epoch-e0")
    assert kept.read_text() == "1\n"
    stand_in.epoch, stand_in.sequence = 9, 0
    stand_in.keep_until(lambda: running.statistics().values["epoch"] == 9, Mode.CLOSED)
    assert kept.read_text() == "9\n"
    assert running.statistics().values["fallbacks"] == 0


def test_directives_that_came_while_the_loop_stood_still_are_no_silence(bench: Rig) -> None:
    stand_in, running, _ = held(bench, hang="20s")
    silence_s = 1.5
    stand_in.allow_silence(round(silence_s * 1e9))
    os.kill(running.loop(), signal.SIGSTOP)
    stand_in.keep(1.5 * silence_s, Mode.CLOSED)
    os.kill(running.loop(), signal.SIGCONT)
    stand_in.keep_through(4, Mode.CLOSED)
    stand_in.keep(0.3, Mode.CLOSED)  # it publishes ten times a second
    fallbacks = running.statistics().values["fallbacks"]
    gap_s = max(b - a for a, b in pairwise(stand_in.directed_ns)) / 1e9
    if fallbacks and gap_s >= silence_s:
        inconclusive(f"this test itself said nothing for {gap_s:.3g} of {silence_s} s")
    assert fallbacks == 0


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system that files may be made on, and that has no page left for what is in them."""
    folder = tmp_path / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_said_and_gates_nothing(bench: Rig, full: Path) -> None:
    config = bench.config(runtime_dir=str(full))
    config.plain_file.write_text(plain(config))
    with suppress(OSError), (full / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    process = bench.run(str(program("xco-coordinator")), str(config.plain_file))
    assert process.wait(PATIENCE_S) == 1
    assert "cannot start: No space left on device" in bench.log.read_text()
    assert not gated(bench, "e0")
    assert not list(full.glob(f"{config.statistics.name}*"))


NO_IPV6 = """
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int socket(int domain, int type, int protocol) {
    if (domain == AF_INET6) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return (int)syscall(SYS_socket, domain, type, protocol);
}
"""
"""What a kernel that was started with ipv6.disable=1 answers."""
NO_FILTER = """
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int setsockopt(int fd, int level, int name, const void *value, socklen_t size) {
    if (name == SO_ATTACH_FILTER && access(FLAG, F_OK) == 0) {
        errno = ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}
"""
"""A kernel without memory for a filter, as long as a file stands there."""


def started_with(bench: Rig, source: str, flag: Path) -> Running:
    """Start a coordinator on a kernel that answers otherwise."""
    file, library = bench.folder / "fault.c", bench.folder / "fault.so"
    file.write_text(source)
    make = [
        "cc",
        "-D_GNU_SOURCE",
        f'-DFLAG="{flag}"',
        "-shared",
        "-fPIC",
        "-o",
        str(library),
        str(file),
    ]
    subprocess.run(make, check=True)
    config = bench.config()
    config.plain_file.write_text(plain(config))
    command = ["env", f"LD_PRELOAD={library}", str(program("xco-coordinator"))]
    return Running(bench.run(*command, str(config.plain_file)), config, bench.log)


def test_a_kernel_without_ipv6_will_do(bench: Rig) -> None:
    stand_in = bench.stand_in()
    running = started_with(bench, NO_IPV6, bench.folder / "flag")
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.keep_until(lambda: status(running.config).mode == "closed", Mode.CLOSED)


def test_queues_that_cannot_be_completed_are_not_left_standing(bench: Rig) -> None:
    bench.classifier = "u32"  # its watch is what is made last
    capture, stand_in, flag = bench.capture(), bench.stand_in(), bench.folder / "flag"
    running = started_with(bench, NO_FILTER, flag)
    stand_in.wait_for(lambda: stand_in.reports)
    bench.send(rate=2000)
    stand_in.keep_until(lambda: stand_in.reports[-1].waiting, Mode.CLOSED)
    flag.touch()
    subprocess.run(["tc", "-n", bench.near, "qdisc", "del", "dev", "e0", "root"], check=True)
    said = "its queues cannot be made: Cannot allocate memory"
    stand_in.keep_until(lambda: said in bench.log.read_text(), Mode.CLOSED)
    capture.take()
    stand_in.keep_until(capture.take, Mode.CLOSED)
    assert not gated(bench, "e0")
    flag.unlink()
    stand_in.keep_until(lambda: running.statistics().values["remakes"] == 1, Mode.CLOSED)
    assert gated(bench, "e0")


def arrived_bytes(bench: Rig) -> int:
    command = ["ip", "netns", "exec", bench.far, "cat", "/sys/class/net/e0/statistics/rx_bytes"]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


def waited_s(process: int) -> float:
    """Return for how long a process was ready to run and had no CPU, as the kernel counts it."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9


def check_not_throttled(bench: Rig, sender: int, limit_bps: float) -> None:
    """Check that more arrives than a limit lets pass.

    Raises:
        Inconclusive: it does not, and the sender did not have a CPU for much of the time.
    """
    before = waited_s(sender)
    rate = rates.watch(lambda: arrived_bytes(bench) * 8, 1.5)
    lacked = waited_s(sender) - before
    if rate.most <= limit_bps and lacked > rate.seconds / 4:
        inconclusive(f"{rate}; its sender waited for a CPU for {lacked:.3g} s")
    assert rate.most > limit_bps


def test_more_flows_than_there_is_room_for_are_not_throttled(bench: Rig) -> None:
    ip(bench, "route", "add", OUTSIDE, "via", "10.77.0.250")
    stand_in = bench.stand_in()
    running = bench.start(bench.config(flow_idle="400ms", bypass_share=0.02, classifier="u32"))
    stand_in.wait_for(lambda: stand_in.reports)
    # 92 Mbit/s where there is CPU for it; 2 % of the line are 10.
    spread = bench.run(sys.executable, "-c", SPREAD, "400", "8000")
    eventually(lambda: running.statistics().values["flows_refused"] > 0)
    eventually(lambda: "more large flows than there is room for" in bench.log.read_text())
    check_not_throttled(bench, spread.pid, LINE_BPS * 0.02 * 2)
    assert running.statistics().values["flows"] <= 128  # the other half is the topology's
    bench.send(rate=2000)
    eventually(lambda: "b" in [flow.host for flow in status(running.config).flows])
    spread.kill()
    eventually(lambda: "there is room for large flows again" in bench.log.read_text())


SENT = """
import socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(257):
    out.sendto(bytes(1000), (f"10.78.{n // 256}.{n % 256}", 9))
"""


def test_the_watch_leaves_out_every_flow_within_an_old_kernels_memory_for_filters(
    bench: Rig, tmp_path: Path
) -> None:
    shim = build(tmp_path)
    ip(bench, "route", "add", OUTSIDE, "via", "10.77.0.250")
    namespaces.write_sysctls(bench.near, {"net/core/optmem_max": 20480})
    index = namespaces.inside(bench.near, lambda: socket.if_nametoindex("e0"))
    watch = namespaces.inside(bench.near, lambda: shim.xco_watch_open(index, 128))
    assert watch >= 0
    source, first = (int(ip_address(one)) for one in (HOST, "10.78.0.0"))
    for _ in range(2):  # the old filter counts until the new one stands
        assert shim.shim_except(watch, *map(ctypes.c_uint32, (source, first, 256))) == 0
    assert bench.run(sys.executable, "-c", SENT).wait(PATIENCE_S) == 0
    sights = (ctypes.c_uint8 * 36 * 300)()
    assert shim.xco_watch_take(watch, sights, 300) == 1
    assert bytes(sights[0])[28:32] == bytes([10, 78, 1, 0])  # the one that is not left out
    os.close(watch)
