"""Gates of departure times on real interfaces: made where the kernel has fq, refused where not.

What passes them is measured on a kernel with fq, in emulation (tests/system/test_edt.py).
"""

import subprocess
from collections.abc import Iterator

import pytest
from support.waiting import eventually

from benchmarks.xco.gates.rig import Rig, Running, rig
from lab.system import namespaces
from xco.coordinator import gate
from xco.coordinator.gate import lacking

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
EXIT_UNSUPPORTED = 3


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcoedt") as made:
        yield made


@pytest.fixture(scope="module")
def has_fq() -> bool:
    return not lacking(gate.NEEDED_BY_EDT)


def root_of(bench: Rig) -> str:
    command = ["tc", "-n", bench.near, "qdisc", "show", "dev", "e0"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def many_queues(bench: Rig) -> None:
    """Give the interface four transmit queues."""
    bench.part()
    command = (
        f"ip -n {bench.near} link add e0 numtxqueues 4 type veth peer name e0 netns {bench.far}"
    )
    subprocess.run(command.split(), check=True)
    for name, address in ((bench.near, "10.77.0.1"), (bench.far, "10.77.0.250")):
        for words in (f"address add {address}/24 dev e0", "link set e0 up"):
            subprocess.run(["ip", "-n", name, *words.split()], check=True)


@pytest.mark.parametrize("queues", [1, 4])
def test_what_must_be_departure_times_stands_or_is_refused_and_leaves_the_interface_alone(
    bench: Rig, has_fq: bool, queues: int
) -> None:
    if queues > 1:
        many_queues(bench)
    before = root_of(bench)
    running = bench.start(bench.config(gates="edt"))
    if has_fq:
        eventually(lambda: "gates stand" in bench.log.read_text())
        assert f"{'mq' if queues > 1 else 'fq'} 7c01:" in root_of(bench)
        assert running.statistics().values["paced"] == 1
        stop(running)
    else:
        assert running.process.wait(30) == EXIT_UNSUPPORTED
        assert "the kernel lacks fq" in bench.log.read_text()
    assert root_of(bench) == before


@pytest.mark.parametrize("queues", [1, 4])
def test_what_may_be_departure_times_is_token_buckets_without_fq(
    bench: Rig, has_fq: bool, queues: int
) -> None:
    if queues > 1:
        many_queues(bench)
    before = root_of(bench)
    stand_in = bench.stand_in()
    running = bench.start(bench.config(gates="auto"))
    stand_in.wait_for(lambda: stand_in.reports)
    assert running.statistics().values["paced"] == int(has_fq)
    assert ("htb 7c01:" in root_of(bench)) == (not has_fq)
    assert ("the kernel lacks fq: gates are token buckets" in bench.log.read_text()) != has_fq
    stop(running)
    assert root_of(bench) == before


def test_a_root_of_somebody_else_is_left_alone(bench: Rig) -> None:
    others = f"tc -n {bench.near} qdisc add dev e0 root handle 1: pfifo"
    subprocess.run(others.split(), check=True)
    before = root_of(bench)
    running = bench.start(bench.config(gates="edt"))
    assert running.process.wait(30) == 6
    assert "a root qdisc of another program" in bench.log.read_text()
    assert root_of(bench) == before


def test_a_killed_one_leaves_an_mq_that_is_released(bench: Rig) -> None:
    """With mq alone, which every kernel has: the root is ours by its handle."""
    many_queues(bench)
    command = f"tc -n {bench.near} qdisc add dev e0 root handle 7c01: mq"
    subprocess.run(command.split(), check=True)
    assert namespaces.inside(bench.near, lambda: gate.gated("e0"))
    assert namespaces.inside(bench.near, lambda: gate.release("e0"))
    assert "7c01:" not in root_of(bench)


def stop(running: Running) -> None:
    running.process.terminate()
    running.process.wait(30)
