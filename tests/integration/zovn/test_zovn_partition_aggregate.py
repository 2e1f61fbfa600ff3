"""Partition-aggregate through `zovn switch run`: frames are lost where it may drop them only."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from rigs.zovn_veth_rig import require_lossless_veth
from support.waiting import eventually

from benchmarks.zovn.partition_network import Network, Request
from benchmarks.zovn.partition_run import Load, Running, start
from lab.errors import ProgramError
from lab.programs.processes import environment
from lab.system import namespaces

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
WORKERS = 4
QUEUE = 8
SIZE = 24_000
LOAD = Load(queries=20, limit=60.0, bottleneck="200Mbps")


@pytest.fixture(scope="module", autouse=True)
def _lossless_veth() -> None:
    require_lossless_veth()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def begin(stack: ExitStack, way: str, load: Load = LOAD) -> Running:
    request = Request(f"z{os.getpid()}", WORKERS, QUEUE, load.bottleneck)
    return start(stack, request, way, load)


def all_in_vain(network: Network) -> bool:
    """Return whether all that TCP sent again had arrived already."""
    with network.awake():
        losses = network.losses()
    return losses.retransmitted == losses.spurious


def test_the_lossless_switch_loses_nothing(stack: ExitStack) -> None:
    running = begin(stack, "zovn")
    took, losses = running.ask(SIZE, LOAD)
    assert len(took) == LOAD.queries
    assert losses.dropped == 0
    assert eventually(lambda: all_in_vain(running.network))
    least_ns = WORKERS * SIZE * 8 / 200e6 * 1e9
    assert min(took) > 0.9 * least_ns, "the port has its rate"


def test_without_tail_loss_probes_only_timeouts_send_again(stack: ExitStack) -> None:
    running = begin(stack, "zovn")
    took, losses = running.ask(SIZE, LOAD, tail_probes=False)
    assert len(took) == LOAD.queries
    assert (losses.dropped, losses.probes) == (0, 0)
    assert losses.retransmitted == 0 or losses.timeouts > 0
    assert eventually(lambda: all_in_vain(running.network))


def test_the_lossy_switch_drops_above_its_queue_and_tcp_waits(stack: ExitStack) -> None:
    took, losses = begin(stack, "zovn-lossy").ask(SIZE, LOAD, tail_probes=False)
    assert len(took) == LOAD.queries
    assert losses.dropped > 0
    assert losses.retransmitted > 0
    assert losses.probes == 0
    assert losses.timeouts > 0
    assert max(took) > 0.15e9, "TCP waits 200 ms at least"


def test_workers_answer_with_other_congestion_control(stack: ExitStack) -> None:
    reno = Load(queries=3, limit=60.0, bottleneck="200Mbps", congestion="reno")
    took, _ = begin(stack, "zovn", reno).ask(SIZE, reno)
    assert len(took) == 3
    with ExitStack() as other, pytest.raises(ProgramError, match="congestion none"):
        begin(other, "bridge", Load(1, 1.0, "200Mbps", congestion="none"))


def test_an_interrupted_benchmark_leaves_nothing_behind() -> None:
    words = ["--workers", "2", "--queue", "64", "--sizes", "2KB", "--queries", "1000000"]
    # What runs the tests may ignore SIGINT, and so would the benchmark.
    command = ["env", "--default-signal=INT", sys.executable, "-m"]
    command += ["benchmarks.zovn.partition_aggregate", *words]
    with subprocess.Popen(
        [*command, "--ways", "zovn"], stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stderr is not None
        assert any("1 of 5" in line for line in process.stderr)
        assert namespaces.named("zpa0")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGINT
    assert not namespaces.named("zpa0")
