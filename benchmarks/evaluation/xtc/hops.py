"""Hosts in a row, each with a router and a daemon of its own: loss and round trip by hop (Fig. 20).

Each host is a lab of its own. Hosts are connected by bridges between a router's far interface and
the next router's near one. Rows of one, two and three hosts show the metrics up to each hop. The
flood is what the longest row carries without control; setpoints are two thirds of it, on all hosts
of a row. Ours are set by one policer: the path is a class of terms, which the routers' contracts
name. For the paper's law this program plays the paper's policing mechanism, which only sets
setpoints.
"""

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from benchmarks.evaluation.calibration import Calibration, model
from benchmarks.evaluation.plan import Cell, Experiment, Measure, Metric
from benchmarks.evaluation.result import Value
from benchmarks.evaluation.xtc.path_contract import contracted
from benchmarks.evaluation.xtc.stage import (
    DEAD_BEAT,
    NONE,
    OURS,
    PROBE_US,
    RISING_S,
    Window,
    begin_at_fixed_cap,
    quota_of,
    table_of,
)
from benchmarks.rig import Rig
from lab.programs.processes import Place
from lab.routers.topology import Lab
from lab.system import namespaces
from lab.system.links import index_of
from lab.traffic import roles
from lab.traffic.counts import Pinged
from lab.traffic.program import Traffic
from xtc.wire import Activate

ROWS: Final = (3, 2, 1)
QUICK_ROWS: Final = (2,)
PREFIX: Final = "xtcevalrow"
NAME: Final = "vr"
FLOOD_PPS: Final = 200e3
SHARE: Final = 2 / 3
WAYS: Final = (NONE, DEAD_BEAT, OURS)
LOSS: Final = "probe loss, %"
RTT: Final = "mean round trip, ms"
ERROR: Final = "error of the last router's mean, %"
PAPER_RTT_MS: Final = 14.0
WINDOW: Final = Window(4, 4)
QUICK_WINDOW: Final = Window(2, 2)
BRIDGE: Final = ("rowin", "rowout")
LINK: Final = ("linkin", "linkout")
FOREIGN_MAC: Final = "02:00:fe:00:00:0{}"
"""Of an interface that hands on frames for the addresses of its host."""


class Row:
    """Hosts in a row; the first has the sender, the last the sink."""

    def __init__(self, labs: Sequence[Lab], calibration: Calibration, folder: Path) -> None:
        """Connect the hosts, and write the model file of the paper's laws."""
        self._labs, self._calibration, self._folder = labs, calibration, folder
        self._model = folder / "model.toml"
        self._model.write_text(model(calibration))
        self._routers = [lab.routers[NAME] for lab in labs]
        for before, after in pairwise(labs):
            _connect(before, after)
        self.flood = self._routers[0].flood(0.0)

    def carried(self, seconds: int) -> float:
        """Return the throughput of the row without control, in packets/s."""
        self.flood.set_rate(FLOOD_PPS)
        with self._daemons(NONE) as rigs:
            return _mean(rigs[-1], Window(2, seconds))

    def measure(self, way: str, setpoint: float, window: Window) -> tuple[float, Pinged, Pinged]:
        """Return the last router's throughput, and the probe's counts before and after."""
        with (
            self._fixed_caps(way, setpoint),
            self._daemons(way) as rigs,
            self._probe() as probe,
            self._holding(way, rigs, setpoint),
        ):
            rigs[-1].wait_for_ticks(window.for_way(way).settle)
            first = probe.counts()
            pps = _mean(rigs[-1], Window(0, window.counted))
            return pps, first, probe.counts()

    @contextmanager
    def _holding(self, way: str, rigs: Sequence[Rig], setpoint: float) -> Iterator[None]:
        """Hold all routers at a setpoint: ours by a policer, the paper's by this program."""
        with ExitStack() as stack:
            if way == OURS:
                folder = self._folder / "policer"
                stack.enter_context(contracted(folder, rigs, NAME, setpoint))
            elif way == DEAD_BEAT:
                for rig in rigs:
                    rig.client.call(Activate(NAME, setpoint))
            yield

    @contextmanager
    def _fixed_caps(self, way: str, setpoint: float) -> Iterator[None]:
        with ExitStack() as stack:
            for router in self._routers:
                quota = stack.enter_context(quota_of(router))
                begin_at_fixed_cap(quota, way, self._calibration, setpoint)
            yield

    @contextmanager
    def _daemons(self, way: str) -> Iterator[list[Rig]]:
        with ExitStack() as stack:
            yield [
                stack.enter_context(Rig({NAME: table_of(router, way, self._model)}, lab))
                for lab, router in zip(self._labs, self._routers, strict=True)
            ]

    def _probe(self) -> Traffic[Pinged]:
        near, far = self._routers[0].ports
        place = Place(self._labs[0].dom0_netns)
        return roles.ping(place, far.host_address, bind=near.host_address, interval_us=PROBE_US)


def _mean(rig: Rig, window: Window) -> float:
    rig.wait_for_ticks(window.settle + window.counted)
    return statistics.fmean(pps for _, pps in rig.recording.throughput(NAME)[-window.counted :])


def _connect(before: Lab, after: Lab) -> None:
    """Connect one host's far side to the next host's near side."""
    first, second = (Path(lab.dom0_netns).name for lab in (before, after))
    peer = {"ifname": LINK[0], "net_ns_fd": second}
    namespaces.configure(first, lambda ip: ip.link("add", ifname=LINK[1], kind="veth", peer=peer))
    far, near = before.routers[NAME].host_interfaces[1], after.routers[NAME].host_interfaces[0]
    namespaces.configure(first, partial(_bridge, side=1, members=(far, LINK[1])))
    namespaces.configure(second, partial(_bridge, side=0, members=(near, LINK[0])))


def _bridge(ip: Any, side: int, members: Sequence[str]) -> None:
    """Join two interfaces by a bridge that hands on every frame and takes none."""
    ip.link("add", ifname=BRIDGE[side], kind="bridge")
    bridge = index_of(ip, BRIDGE[side])
    ip.link("set", index=bridge, state="up")
    for number, member in enumerate(members):
        index = index_of(ip, member)
        ip.link("set", index=index, address=FOREIGN_MAC.format(2 * side + number))
        ip.link("set", index=index, master=bridge, state="up")
        ip.brport("set", index=index, learning=0)


def values_of(
    way: str, point: str, seen: tuple[float, Pinged, Pinged], setpoint: float
) -> Iterator[Value]:
    """Yield the metrics of one way in a row."""
    pps, first, last = seen
    sent, received = last.sent - first.sent, last.received - first.received
    yield Value(way, point, LOSS, max(0.0, 1 - received / max(1, sent)) * 100)
    if last.rtt_ns:
        yield Value(way, point, RTT, statistics.fmean(last.rtt_ns) / 1e6)
    if way != NONE:
        yield Value(way, point, ERROR, abs(pps / setpoint - 1) * 100)


def point_of(hosts: int) -> str:
    """Return the name of a row."""
    return f"{hosts} host{'s' * (hosts > 1)}"


@contextmanager
def row(hosts: int, calibration: Calibration) -> Iterator[Row]:
    """Open a row of hosts."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="xtc-evaluation-"))
        labs = [stack.enter_context(Lab(f"{PREFIX}{number}")) for number in range(1, hosts + 1)]
        for lab in labs:
            lab.add_router(NAME, "user-space")
        yield Row(labs, calibration, Path(folder))


@contextmanager
def bench(calibration: Calibration | None, quick: bool) -> Iterator[Measure]:
    """Return a measure that builds the rows of a run one after the other, the longest first."""
    assert calibration is not None
    window = QUICK_WINDOW if quick else WINDOW
    rows = QUICK_ROWS if quick else ROWS
    yield lambda _run: list(_measure(rows, calibration, window))


def _measure(rows: Sequence[int], calibration: Calibration, window: Window) -> Iterator[Value]:
    offered = 0.0
    for hosts in rows:
        with row(hosts, calibration) as hosts_in_row:
            offered = offered or hosts_in_row.carried(window.counted)
            hosts_in_row.flood.set_rate(offered)
            for way in WAYS:
                seen = hosts_in_row.measure(way, SHARE * offered, window)
                yield from values_of(way, point_of(hosts), seen, SHARE * offered)


EXPERIMENT: Final = Experiment(
    name="xtc-hops",
    paper="XTC",
    title="Hosts in a row, a daemon on each: loss and round trip by hop",
    figures="Fig. 20",
    metrics=tuple(Metric(name, "lower") for name in (LOSS, RTT, ERROR)),
    cells=(Cell("all ways", "", 124.0),),
    quick_cells=(Cell("all ways", "", 35.0),),
    bench=bench,
    published={(way, point_of(n), RTT): PAPER_RTT_MS for way in (DEAD_BEAT, OURS) for n in (2, 3)},
    method=f"{WINDOW}, the paper's law from the fixed cap on, with {RISING_S} s more",
    calibrated=True,
)
