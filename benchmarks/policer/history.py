"""Cost of a fleet's history: CPU of recording, time and bytes of writing, on SQLite.

`python -m benchmarks.policer.history --hosts 500 --routers 20 --minutes 3` passes the ticks of a
fleet to a recorder as fast as it takes them, and prints the cost of each part. With `--hosts 20
--minutes 61` it has a whole hour of minutes, and prints the disk use of the default settings.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from common.arguments import whole_number
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.decide.state import Order
from policer.decide.telemetry import HostTelemetry
from policer.fleet.live import HostLive
from policer.history.chunks import MINUTE_S, POINTS, SECOND_S
from policer.history.retention import Retention
from policer.recording.writer import HistoryWriter
from policer.store import Store, open_store
from xtc.wire import Finding, Mode, Report

BEGIN = 1_790_002_800.4
"""Offset of its begin within a second: most periods touch two."""
EVERY_S = 10
"""Interval of writes here; the policer checks every few seconds."""
NOISE = 0.05
"""Scatter of rates from second to second."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a fleet's history; CPU and time are those of EVERY_S seconds, unless it says else."""

    hosts: int
    routers: int
    """Of each host."""
    minutes: int
    tick_cpu_us: float
    """For recording a host's tick."""
    packing_cpu_s: float
    """In the mean."""
    packing_cpu_most_s: float
    writing_s: float
    """In the mean."""
    writing_most_s: float
    chunk_bytes: Mapping[int, int]
    """The largest chunk of a host, by the seconds of its points."""
    hour_bytes: int
    """An hour of seconds, each host."""
    month_bytes: int | None
    """30 days of minutes, each host; None without a whole hour of them."""


def report(vr: str, base: float) -> Report:
    """Return a daemon's report on a held router."""
    offered = base * random.gauss(1.0, NOISE)
    return Report(
        vr=vr,
        active=True,
        mode=Mode.CLOSED_LOOP,
        finding=Finding.NONE,
        setpoint_pps=base,
        throughput_pps=min(offered, base),
        offered_pps=offered,
        cap=0.4,
        used=0.3,
        binding=True,
        lease_remaining_s=12.0,
        sample_age_s=0.1,
        interfaces=(),
    )


def fleet(hosts: int, routers: int) -> list[HostLive]:
    """Return hosts that have not reported yet, with contracts for all routers."""
    names = [f"customer-{number}" for number in range(routers)]
    contracts = {vr: Contract(guarantee_pps=1e3 * (1 + n % 30)) for n, vr in enumerate(names)}
    orders = {vr: Order(contract.guarantee_pps) for vr, contract in contracts.items()}
    return [
        HostLive(
            Host(f"host-{number}", f"ipc:///run/{number}/a", f"ipc:///run/{number}/b", 1e6),
            contracts,
            orders=orders,
        )
        for number in range(hosts)
    ]


def timed(work: Callable[[], None], clock: Callable[[], float] = time.process_time) -> float:
    """Return the seconds that a call takes; of CPU, unless another clock is given."""
    began = clock()
    work()
    return clock() - began


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hosts", type=whole_number(1), default=500)
    parser.add_argument("--routers", type=whole_number(1), default=20)
    parser.add_argument("--minutes", type=whole_number(1), default=3)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cost = measure(Path(folder), wanted.hosts, wanted.routers, wanted.minutes)
    if wanted.json:
        print(json.dumps(asdict(cost), indent=2))
    else:
        _print(cost)


def measure(folder: Path, hosts: int, routers: int, minutes: int) -> Cost:
    """Simulate a fleet, and return the cost."""
    store = open_store(f"sqlite:///{folder}/policer.db")
    epoch = store.leadership("benchmark").acquire() or 0
    wall = [BEGIN]
    history_writer = HistoryWriter(store, lambda: True, Retention(), lambda: wall[0])
    history_writer.lead(epoch, epoch)
    lives = fleet(hosts, routers)
    heard, collected, flushed = [], [], []
    for tick in range(1, 60 * minutes + 1):
        wall[0] = BEGIN + tick
        sights = [telemetry(live, tick) for live in lives]
        heard.append(timed(partial(hear, history_writer, lives, sights)))
        lives = [replace(live, telemetry=now) for live, now in zip(lives, sights, strict=True)]
        if tick % EVERY_S == 0:
            collected.append(timed(history_writer.collect))
            flushed.append(timed(history_writer.flush, time.perf_counter))
    sizes = _chunk_bytes(store)
    store.close()
    return Cost(
        hosts,
        routers,
        minutes,
        tick_cpu_us=1e6 * sum(heard) / (len(heard) * hosts),
        packing_cpu_s=mean(collected),
        packing_cpu_most_s=max(collected),
        writing_s=mean(flushed),
        writing_most_s=max(flushed),
        chunk_bytes=sizes,
        hour_bytes=3600 // (POINTS[SECOND_S] * SECOND_S) * sizes[SECOND_S],
        month_bytes=24 * 30 * sizes[MINUTE_S] if minutes > 60 else None,
    )


def _chunk_bytes(store: Store) -> dict[int, int]:
    """Return the size of the largest chunk, by the seconds of its points."""
    query = "SELECT span, max(length(points)) FROM history GROUP BY span"
    with store._database.read() as connection:  # noqa: SLF001  it counts bytes
        return {row[0]: row[1] for row in connection.exec_driver_sql(query)}


def _print(cost: Cost) -> None:
    print(f"{cost.hosts} hosts of {cost.routers} routers, {cost.minutes} minutes")
    print(f"recording a host's tick: {cost.tick_cpu_us:.0f} us of CPU")
    packing, writing = f"packing {EVERY_S} s", f"writing {EVERY_S} s"
    print(
        f"{packing}: mean {cost.packing_cpu_s:.3f} s of CPU, most {cost.packing_cpu_most_s:.3f} s"
    )
    print(f"{writing}: mean {cost.writing_s:.3f} s, most {cost.writing_most_s:.3f} s")
    for span, size in cost.chunk_bytes.items():
        print(f"a host's chunk of {POINTS[span]} points of {span} s: at most {size} bytes")
    print(f"an hour of seconds, each host: {cost.hour_bytes / 1e3:.0f} kB")
    if cost.month_bytes is not None:
        print(f"30 days of minutes, each host: {cost.month_bytes / 1e6:.1f} MB")


def hear(history_writer: HistoryWriter, lives: list[HostLive], sights: list[HostTelemetry]) -> None:
    """Deliver a tick of every host."""
    for live, now in zip(lives, sights, strict=True):
        history_writer.heard(live, now)


def telemetry(live: HostLive, tick: int) -> HostTelemetry:
    """Return a host after a number of ticks."""
    reports = (report(vr, order.setpoint_pps or 0.0) for vr, order in live.orders.items())
    return HostTelemetry(tick, float(tick), tick, {one.vr: one for one in reports})


def mean(values: list[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
