"""Gates on a real interface: they hold and release real packets, and leave no trace."""

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from benchmarks.xco_gate_rig import (
    HOST,
    LINE_BPS,
    OTHER,
    RECEIVER,
    SECOND_VM,
    Capture,
    Rig,
    Running,
    StandIn,
    rig,
)
from lab import namespaces
from xco import gate
from xco.core_files import program
from xco.errors import Denied, GateError, Gone, Unsupported
from xco.wire import Mode, Permit

pytestmark = pytest.mark.root
TO_B, TO_C = Permit(1, LINE_BPS), Permit(2, LINE_BPS)


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcogn") as made:
        yield made


def joined(bench: Rig, **changes: object) -> tuple[StandIn, Running]:
    stand_in = bench.stand_in()
    running = bench.start(bench.config(**changes))
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.direct(Mode.OPEN, 0, 0)
    return stand_in, running


def numbers(capture: Capture) -> list[int]:
    return [number for _, number, _ in capture.take()]


def backlog(stand_in: StandIn, host: int) -> int:
    waiting = stand_in.reports[-1].waiting
    return sum(entry.backlog_bytes for entry in waiting if entry.destination == host)


def flows(running: Running) -> int:
    return running.statistics().values["flows"]


def queued(bench: Rig, stand_in: StandIn, to: str = RECEIVER, host: int = 1) -> None:
    """Have a flow of its own wait behind its closed gate, its sender done."""
    sender = bench.send(to=to, rate=20_000)
    stand_in.keep_until(lambda: backlog(stand_in, host) > 100_000, Mode.CLOSED)
    sender.kill()
    sender.wait()
    stand_in.keep(0.05, Mode.CLOSED)


def root_of(bench: Rig) -> str:
    shown = subprocess.run(
        ["ip", "netns", "exec", bench.near, "tc", "qdisc", "show", "dev", "e0", "root"],
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.split(" root")[0].strip()


def test_a_closed_gate_holds_and_an_open_one_releases_everything_in_order(bench: Rig) -> None:
    capture = bench.capture()
    stand_in, running = joined(bench)
    queued(bench, stand_in)
    newcomers = numbers(capture)
    held = backlog(stand_in, 1)
    stand_in.keep(0.2, Mode.CLOSED)
    assert numbers(capture) == []
    assert backlog(stand_in, 1) == held
    stand_in.keep(0.3, Mode.RATE, TO_B)
    released = numbers(capture)
    assert len(released) == held // 1442
    # nothing was dropped: numbers go on where those that left before the flow had a queue end
    assert released == list(range(newcomers[-1] + 1, newcomers[-1] + 1 + len(released)))
    assert running.statistics().values["flows_made"] == 1


def test_a_gate_opens_for_its_own_destination_alone(bench: Rig) -> None:
    to_b, to_c = bench.capture(), bench.capture(OTHER)
    stand_in, _ = joined(bench)
    queued(bench, stand_in)
    queued(bench, stand_in, OTHER, 2)
    to_b.take()
    to_c.take()
    stand_in.keep(0.2, Mode.RATE, TO_C)
    assert numbers(to_b) == []
    assert len(numbers(to_c)) > 50


def test_two_flows_to_one_destination_share_its_gate(bench: Rig) -> None:
    capture = bench.capture()
    stand_in, running = joined(bench)
    for source in (HOST, SECOND_VM):
        bench.send(source=source, rate=20_000)
    stand_in.keep_until(lambda: flows(running) == 2, Mode.CLOSED)
    stand_in.keep(0.2, Mode.CLOSED)
    capture.take()
    stand_in.keep(0.5, Mode.RATE, Permit(1, 50_000_000))
    sources = [source for _, _, source in capture.take()]
    # each with a gate of its own would be twice the rate; timers that come late only take from it
    assert 20e6 < len(sources) * 1442 * 8 / 0.5 < 55e6
    assert sources.count(HOST) == pytest.approx(len(sources) / 2, rel=0.1)


def test_small_packets_do_not_wait_for_a_gate(bench: Rig) -> None:
    capture = bench.capture()
    stand_in, _ = joined(bench)
    bench.send(rate=20_000)
    stand_in.keep_until(lambda: backlog(stand_in, 1) > 100_000, Mode.CLOSED)
    capture.take()
    bench.send(rate=200, size=64)
    stand_in.keep_until(capture.take, Mode.CLOSED)
    stand_in.keep(0.5, Mode.CLOSED)
    arrived = numbers(capture)
    assert arrived == list(range(arrived[0], arrived[0] + len(arrived)))
    assert len(arrived) > 50  # of 100: a sender that is kept waiting sends fewer


def test_many_flows_at_once_do_not_keep_each_other_newcomers(bench: Rig) -> None:
    capture = bench.capture()
    stand_in, running = joined(bench, bypass_share=0.01)
    for end in range(20, 40):  # 20 sources share 5 Mbit/s: 312 bytes each in a window of 10 ms
        address = f"10.77.0.{end}/24"
        subprocess.run(["ip", "-n", bench.near, "addr", "add", address, "dev", "e0"], check=True)
    code = (
        "import socket,time\n"
        "out=[socket.socket(socket.AF_INET,socket.SOCK_DGRAM) for _ in range(20)]\n"
        "[one.bind((f'10.77.0.{20+n}',0)) for n,one in enumerate(out)]\n"
        f"while True:\n [o.sendto(bytes(1400),('{RECEIVER}',9)) for o in out]; time.sleep(.01)\n"
    )
    bench.run(sys.executable, "-c", code)
    stand_in.keep_until(lambda: flows(running) == 20, Mode.OPEN)
    capture.take()
    stand_in.keep(0.5, Mode.OPEN)
    assert len(numbers(capture)) > 600  # of 1,000; as newcomers 217 would pass


def test_what_bypasses_is_limited_to_its_share(bench: Rig) -> None:
    capture = bench.capture()
    stand_in, _ = joined(bench, bypass_share=0.01)
    bench.send(size=64)  # 106 bytes a frame: small, and as many as there can be
    stand_in.keep_until(capture.take, Mode.CLOSED)
    stand_in.keep(0.2, Mode.CLOSED)
    capture.take()
    stand_in.keep(0.5, Mode.CLOSED)
    rate_bps = len(numbers(capture)) * 106 * 8 / 0.5
    assert rate_bps == pytest.approx(LINE_BPS * 0.01, rel=0.2)


def test_ipv6_flows_are_gated_too(bench: Rig) -> None:
    for name, end in ((bench.near, "fd77::1"), (bench.far, "fd77::100")):
        namespaces.write_sysctls(
            name, {"ipv6/conf/e0/disable_ipv6": 0, "ipv6/conf/e0/accept_dad": 0}
        )
        command = ["ip", "-n", name, "addr", "add", f"{end}/64", "dev", "e0", "nodad"]
        subprocess.run(command, check=True)
    stand_in, running = joined(bench)
    code = (
        "import socket,time\ns=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM)\n"
        "while True:\n s.sendto(bytes(1400),('fd77::100',9)); time.sleep(0.0002)\n"
    )
    bench.run("python3", "-c", code)
    stand_in.keep_until(lambda: backlog(stand_in, 1) > 20_000, Mode.CLOSED)
    stand_in.keep_until(lambda: flows(running) == 1, Mode.CLOSED)


def test_a_new_flow_is_ready_within_10_ms(bench: Rig) -> None:
    stand_in, running = joined(bench)
    bench.send(rate=20_000)
    stand_in.keep_until(lambda: flows(running) == 1, Mode.OPEN)
    ready_ns = running.statistics().values["flow_ready_max_ns"]
    assert 0 < ready_ns < 10_000_000


def test_the_queue_of_an_idle_flow_is_removed(bench: Rig) -> None:
    stand_in, running = joined(bench, flow_idle="200ms")
    sender = bench.send(rate=20_000)
    stand_in.keep_until(lambda: flows(running) == 1, Mode.OPEN)
    sender.kill()
    stand_in.keep_until(lambda: flows(running) == 0, Mode.OPEN)
    capture = bench.capture()
    bench.send(rate=20_000)
    stand_in.keep_until(lambda: flows(running) == 1, Mode.OPEN)
    capture.take()
    stand_in.keep(0.2, Mode.OPEN)
    assert len(numbers(capture)) > 500
    assert running.statistics().values["flows_removed"] == 1


def test_a_foreign_root_is_refused_and_stays(bench: Rig) -> None:
    add = ["tc", "-n", bench.near, "qdisc", "add", "dev", "e0", "root", "handle", "5:", "bfifo"]
    subprocess.run(add, check=True)
    with pytest.raises(GateError, match=r"e0: its root qdisc bfifo 5: is somebody else's \(rem"):
        namespaces.inside(bench.near, lambda: gate.check("e0"))
    running = bench.start(bench.config())
    assert running.process.wait(5) == 6
    assert "e0: somebody else's root qdisc stands there" in bench.log.read_text()
    assert root_of(bench) == "qdisc bfifo 5:"


def test_the_default_is_put_back_at_the_end(bench: Rig) -> None:
    before = root_of(bench)
    _, running = joined(bench)
    assert root_of(bench) == "qdisc htb 7c01:"
    second = bench.start(bench.config())
    assert second.process.wait(5) == 7
    assert root_of(bench) == "qdisc htb 7c01:"  # the second one did not touch the first one's
    running.process.terminate()
    assert running.process.wait(5) == 0
    assert root_of(bench) == before


def test_what_waits_at_an_orderly_end_leaves_first(bench: Rig) -> None:
    capture = bench.capture()
    stand_in, running = joined(bench)
    queued(bench, stand_in)
    held = backlog(stand_in, 1) // 1442
    capture.take()
    running.process.terminate()
    assert running.process.wait(5) == 0
    assert len(numbers(capture)) == held


def test_checks_are_typed_and_leave_no_trace(bench: Rig) -> None:
    before = root_of(bench)
    namespaces.inside(bench.near, lambda: gate.check("e0"))
    assert gate.lacking(gate.NEEDED) == []
    # the kernel's own answer to a kind that it lacks
    assert gate.lacking(("htb", "xcogate")) == ["xcogate"]
    with pytest.raises(Gone, match="nowhere: there is no such interface"):
        namespaces.inside(bench.near, lambda: gate.check("nowhere"))
    assert root_of(bench) == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "NEEDED", ("htb", "xcogate"))
        with pytest.raises(Unsupported, match=r"e0: the kernel lacks xcogate \(load what has it"):
            namespaces.inside(bench.near, lambda: gate.check("e0"))


def test_an_interface_that_is_not_there_is_an_error(bench: Rig) -> None:
    bench.part()
    running = bench.start(bench.config())
    assert running.process.wait(5) == 5
    assert "e0: there is no such interface" in bench.log.read_text()


def test_without_privileges_the_traffic_is_untouched(bench: Rig) -> None:
    before, config = root_of(bench), bench.config()
    config.plain_file.write_text("")
    running = bench.run(
        "setpriv",
        "--bounding-set=-net_admin",
        "--",
        "tc",
        "qdisc",
        "add",
        "dev",
        "e0",
        "root",
        "htb",
    )
    assert running.wait(5) != 0  # the machine does refuse
    with pytest.raises(Denied):
        raise gate.explain("e0", 1)
    assert root_of(bench) == before


def test_release_removes_ours_alone(bench: Rig) -> None:
    release = partial(namespaces.inside, bench.near, lambda: gate.release("e0"))
    assert release() is False
    _, running = joined(bench)
    loop = running.loop()
    for pid in (running.process.pid, loop):  # the guard first, then what would clean up after it
        subprocess.run(["kill", "-STOP", str(pid)], check=True)
    for pid in (running.process.pid, loop):
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
    running.process.wait(5)
    time.sleep(0.05)
    assert root_of(bench) == "qdisc htb 7c01:"
    assert release() is True
    assert namespaces.inside(bench.near, lambda: gate.gated("e0")) is False
    again = bench.run(str(program("xco-coordinator")), "--release", "e0")
    assert again.wait(5) == 0
    assert Path(bench.folder).is_dir()
