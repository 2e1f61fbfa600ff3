"""TCP next to UDP on one Dom0 core (paper, section 7.3, Fig. 17): what dropping early saves.

Set-up: two routers in user space on one host; one forwards TCP flows, the other is flooded with as
much UDP as the host could forward alone. Packets of 524 bytes of data come from a separate machine
into Dom0, which bridges them into their router, takes them back and bridges them to a second
machine; kernel threads on one core do all of Dom0's packet work (`lab.routers.machines`). Sources,
sinks and both routers' forwarders share the other core. In turns: nothing is held; both routers are
held, at 20 and 80 % of the shared throughput, without shields; the same, and the host limits what
it sends into the flooded router to its setpoint and a tenth, as the policer does; both are held
with their shields, as the daemon does by default.

What differs from the paper: its host is a Xen host with a Dom0 that forwards 100 kp/s, and its
routers are virtual machines. Here Dom0 would forward several times that, and the routers would be
the limit. So a chain of filters checks each packet when it enters a router and when it comes back,
in place of the work of Xen's back ends (`--weight`). The shares of the two agree with the paper's
figures: 100 kp/s shrink to 68 if 40 % of Dom0's work is done by the time that a packet is in its
router. Dom0's work before the limiter can drop a packet is not made heavier: where that is a large
part of its work, no limiter saves much (`Price.limited`), and the paper does not say how large it
is on Xen. There are several TCP flows, since one alone does not fill the core; answers count as
packets forwarded, as xtc counts.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.rig import Rig, lab_missing, lab_router
from common.arguments import whole_number
from common.units import format_rate
from lab.programs.processes import Source
from lab.programs.source import TCP_DATA
from lab.routers.router import Router
from lab.routers.topology import Lab, cpus_beside
from lab.system import namespaces
from policer.decide.round import LEEWAY
from xtc.measure.meter import Counters, parse
from xtc.wire import Activate, Deactivate, Limit

PREFIX: Final = "xtcbeside"
TCP, UDP = "tcp", "udp"
SHARES: Final = {TCP: 0.8, UDP: 0.2}
"""Of the shared throughput, as in the paper."""
WAYS: Final = ("uncontrolled", "setpoints", "setpoints and limiter", "setpoints and shields")
PAPER: Final = {"uncontrolled": 1.0, "setpoints": 0.68}
"""The paper's aggregates, of the uncontrolled one."""
INTO, BACK = 10_000, 13_000
"""Comparisons per packet, on its way into a router and back, with a weight of 1."""
TOO_MUCH: Final = 100e3
"""Packets/s that no Dom0 of this bench forwards."""
ALMOST_NOTHING: Final = 1.0
"""A setpoint, packets/s, at which a router forwards next to nothing."""


@dataclass(frozen=True)
class Price:
    """Cost of one packet on the Dom0 core, in microseconds."""

    arrive_us: float
    """Receive it and send it towards its router; the limiter cannot save this."""
    enter_us: float
    """Deliver it into its router, whether that forwards it or not."""
    leave_us: float
    """Take it back and pass it on."""

    @property
    def whole_us(self) -> float:
        """Of a packet that is forwarded."""
        return self.arrive_us + self.enter_us + self.leave_us

    def collapsed(self, share: float) -> float:
        """Return the aggregate, of the uncontrolled one, that setpoints alone should leave.

        The flood is the host's capacity, and all of it enters a router that forwards only a share
        of it.
        """
        paid = self.arrive_us + self.enter_us + share * self.leave_us
        return share + 1 - paid / self.whole_us

    def limited(self, share: float, leeway: float = LEEWAY) -> float:
        """Return the same with the flooded router's input limited to its setpoint and a leeway."""
        entered = min(1.0, leeway * share)
        paid = self.arrive_us + entered * self.enter_us + share * self.leave_us
        return share + 1 - paid / self.whole_us


@dataclass(frozen=True)
class Turn:
    """One way over some seconds; rates and setpoints in packets/s."""

    way: str
    tcp_pps: float
    tcp_data_pps: float
    """Of the TCP router's packets, those that carry data."""
    udp_pps: float
    udp_entered_pps: float
    """Packets/s that Dom0 sent into the flooded router."""
    tcp_setpoint: float | None
    udp_setpoint: float | None
    dom0_busy: float
    """Share of its core."""
    other_busy: float

    @property
    def aggregate(self) -> float:
        """Both routers' throughput."""
        return self.tcp_pps + self.udp_pps


@dataclass(frozen=True)
class Reading:
    """Counters at an instant: of Dom0's interfaces, its threads, and the CPUs."""

    at: float
    interfaces: dict[str, Counters]
    dom0_s: float
    """CPU time of Dom0's packet work."""
    cpus: dict[int, tuple[int, int]]
    """Busy and all ticks of each CPU."""


class Bench:
    """Both routers under the daemon."""

    def __init__(self, lab: Lab, rig: Rig, target: float) -> None:
        self._lab, self._rig, self._target = lab, rig, target
        self._cpus = cpus_beside()

    @property
    def _flooded(self) -> Router:
        return self._lab.routers[UDP]

    def capacity(self, flood: Source, seconds: float) -> float:
        """Return Dom0's throughput of a flood alone, the best of three times, in packets/s."""
        flood.set_rate(TOO_MUCH)
        watched = [self._watch(2.0, seconds / 3) for _ in range(3)]
        return max(_forwarded(self._flooded, *pair) for pair in watched)

    def price(self, flood: Source, rate: float, seconds: float) -> Price:
        """Return Dom0's cost of packets, measured with a flood that it can easily carry."""
        flood.set_rate(rate)
        whole = self._cost(seconds)
        self._rig.client.call(Activate(UDP, ALMOST_NOTHING))
        dropped = self._cost(seconds)
        self._rig.client.call(Limit(UDP, ALMOST_NOTHING))
        limited = self._cost(seconds)
        self._let_go()
        return Price(limited, dropped - limited, whole - dropped)

    def _cost(self, seconds: float) -> float:
        before, after = self._watch(6.0, seconds)
        arrived = after.interfaces["eth0"].rx_packets - before.interfaces["eth0"].rx_packets
        return (after.dom0_s - before.dom0_s) / arrived * 1e6

    def turns(self, settle: float, seconds: float) -> list[Turn]:
        """Measure every way once, with setpoints from the uncontrolled throughput."""
        self._let_go()
        first = self._turn(WAYS[0], {}, settle, seconds)
        whole = self._target * first.aggregate
        setpoints = {vr: share * whole for vr, share in SHARES.items()}
        for vr, setpoint in setpoints.items():
            self._rig.client.call(Activate(vr, setpoint))
        second = self._turn(WAYS[1], setpoints, settle, seconds)
        self._rig.client.call(Limit(UDP, LEEWAY * setpoints[UDP]))
        third = self._turn(WAYS[2], setpoints, settle, seconds)
        self._rig.client.call(Limit(UDP, None))
        self._rig.shield(on=True)
        last = self._turn(WAYS[3], setpoints, settle, seconds)
        return [first, second, third, last]

    def _turn(self, way: str, setpoints: dict[str, float], settle: float, seconds: float) -> Turn:
        before, after = self._watch(settle, seconds)
        tcp, udp = self._lab.routers[TCP], self._flooded
        turn = Turn(
            way=way,
            tcp_pps=_forwarded(tcp, before, after),
            tcp_data_pps=_rate(tcp.host_interfaces[1], "rx_packets", before, after),
            udp_pps=_forwarded(udp, before, after),
            udp_entered_pps=_rate(udp.host_interfaces[0], "tx_packets", before, after),
            tcp_setpoint=setpoints.get(TCP),
            udp_setpoint=setpoints.get(UDP),
            dom0_busy=(after.dom0_s - before.dom0_s) / (after.at - before.at),
            other_busy=_busy(self._cpus.source, before, after),
        )
        print(f"  {turn}", file=sys.stderr)
        return turn

    def _let_go(self) -> None:
        self._rig.shield(on=False)
        self._rig.client.call(Limit(UDP, None))
        self._rig.client.call(Deactivate(None))

    def _watch(self, settle: float, seconds: float) -> tuple[Reading, Reading]:
        time.sleep(settle)
        before = self._read()
        time.sleep(seconds)
        return before, self._read()

    def _read(self) -> Reading:
        netns = Path(self._lab.dom0_netns).name
        raw = namespaces.inside(netns, Path("/proc/thread-self/net/dev").read_bytes)
        dom0_s = sum(_thread_seconds(thread) for thread in self._lab.dom0_threads)
        return Reading(time.monotonic(), parse(raw), dom0_s, dict(_cpu_ticks()))


def _forwarded(router: Router, before: Reading, after: Reading) -> float:
    return sum(_rate(name, "rx_packets", before, after) for name in router.host_interfaces)


def _rate(interface: str, counter: str, before: Reading, after: Reading) -> float:
    counted: int = getattr(after.interfaces[interface], counter)
    counted -= getattr(before.interfaces[interface], counter)
    return counted / (after.at - before.at)


def _thread_seconds(thread: int) -> float:
    """Return a thread's CPU time, softirqs in it included (/proc/PID/schedstat)."""
    return int(Path(f"/proc/{thread}/schedstat").read_text().split()[0]) / 1e9


def _cpu_ticks() -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield busy and all ticks of each CPU (proc(5), /proc/stat; columns 4 and 5 are idle)."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name.startswith("cpu") and name != "cpu":
            values = [int(tick) for tick in ticks[:8]]
            yield int(name[3:]), (sum(values) - values[3] - values[4], sum(values))


def _busy(cpu: int | None, before: Reading, after: Reading) -> float:
    """Return the busy share of a CPU's time."""
    if cpu is None:
        raise RuntimeError("this takes two CPUs, to tell Dom0's work from the routers'")
    (busy0, all0), (busy1, all1) = before.cpus[cpu], after.cpus[cpu]
    return (busy1 - busy0) / max(1, all1 - all0)


def measure(options: argparse.Namespace) -> tuple[float, Price, list[list[Turn]]]:
    """Return Dom0's throughput alone, its cost of packets, and the rounds."""
    with Lab(PREFIX, beside=True) as lab:
        for name in SHARES:
            lab.add_router(name, "user-space").set_packet_cost(
                round(options.weight * INTO), round(options.weight * BACK)
            )
        tables = {name: lab_router(router) for name, router in lab.routers.items()}
        with Rig(tables, lab) as rig:
            rig.shield(on=False)
            bench = Bench(lab, rig, options.target)
            flood = lab.routers[UDP].flood(0.0, payload=TCP_DATA)
            capacity = bench.capacity(flood, options.seconds / 2)
            price = bench.price(flood, 0.6 * capacity, options.seconds / 2)
            print(f"Dom0 carries {format_rate(capacity)}; {price}", file=sys.stderr)
            flood.set_rate(options.flood * capacity)
            for number in range(options.flows):
                lab.routers[TCP].tcp(port=5001 + number)
            rounds = [bench.turns(options.settle, options.seconds) for _ in range(options.rounds)]
        if dead := lab.died():
            raise RuntimeError(f"ended while it was measured: {', '.join(dead)}")
        return capacity, price, rounds


def ratios(rounds: list[list[Turn]]) -> dict[str, float]:
    """Return each way's median aggregate, relative to the uncontrolled one of the same round."""
    return {
        way: statistics.median(turns[i].aggregate / turns[0].aggregate for turns in rounds)
        for i, way in enumerate(WAYS)
    }


def predicted(price: Price) -> dict[str, float]:
    """Return the aggregates predicted from the costs, as shares of the uncontrolled one."""
    share = SHARES[UDP]
    ways = (price.collapsed(share), price.limited(share), price.limited(share, 1.0))
    return dict(zip(WAYS[1:], ways, strict=True))


def met(rounds: list[list[Turn]], way: int) -> dict[str, float]:
    """Return each router's throughput relative to its setpoint: the medians."""
    turns = [turns[way] for turns in rounds]
    return {
        TCP: statistics.median(t.tcp_pps / t.tcp_setpoint for t in turns if t.tcp_setpoint),
        UDP: statistics.median(t.udp_pps / t.udp_setpoint for t in turns if t.udp_setpoint),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=whole_number(1), default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="that a turn is measured")
    parser.add_argument("--settle", type=float, default=10.0, help="seconds before that")
    parser.add_argument("--flows", type=whole_number(1), default=32, help="of TCP")
    parser.add_argument("--flood", type=float, default=1.0, help="of what Dom0 carries alone")
    parser.add_argument("--weight", type=float, default=1.0, help="of the work on each packet")
    parser.add_argument("--target", type=float, default=0.96, help="share that is shared out")
    options = parser.parse_args()
    if missing := lab_missing():
        sys.exit("real packets need: " + "; ".join(missing))
    capacity, price, rounds = measure(options)
    if options.json:
        print(json.dumps(_as_json(capacity, price, rounds), indent=2))
    else:
        _print(capacity, price, rounds)


def _as_json(capacity: float, price: Price, rounds: list[list[Turn]]) -> dict[str, object]:
    return {
        "capacity_pps": capacity,
        "price": asdict(price) | {"whole_us": price.whole_us},
        "predicted": predicted(price),
        "paper": PAPER,
        "aggregate_of_uncontrolled": ratios(rounds),
        "throughput_of_setpoint": {WAYS[way]: met(rounds, way) for way in (1, 2, 3)},
        "turns": [asdict(turn) | {"round": n} for n, turns in enumerate(rounds) for turn in turns],
    }


def _print(capacity: float, price: Price, rounds: list[list[Turn]]) -> None:
    console = Console(highlight=False, width=120)
    console.print(
        f"Dom0 carries {format_rate(capacity)} of a flood alone. A packet costs it "
        f"{price.arrive_us:.1f} us to arrive, {price.enter_us:.1f} us to enter its router, "
        f"{price.leave_us:.1f} us to leave."
    )
    expected = predicted(price)
    table = Table(box=None, header_style="bold")
    for heading in ("", "tcp", "of setpoint", "udp", "of setpoint", "aggregate", "of uncontrolled"):
        table.add_column(heading, justify="right")
    table.add_column("by those costs", justify="right")
    table.add_column("paper", justify="right")
    for way, name in enumerate(WAYS):
        table.add_row(
            name, *_row(rounds, way), _percent(expected.get(name)), _percent(PAPER.get(name))
        )
    console.print(table)
    busy = [(t.dom0_busy, t.other_busy) for turns in rounds for t in turns]
    console.print(
        f"Medians of {len(rounds)} rounds. Dom0's core was busy for {_span(b for b, _ in busy)} of "
        f"a turn, the other for {_span(b for _, b in busy)}."
    )


def _row(rounds: list[list[Turn]], way: int) -> list[str]:
    turns = [turns[way] for turns in rounds]
    reached = met(rounds, way) if way else {}
    return [
        format_rate(statistics.median(t.tcp_pps for t in turns)),
        _percent(reached.get(TCP)),
        format_rate(statistics.median(t.udp_pps for t in turns)),
        _percent(reached.get(UDP)),
        format_rate(statistics.median(t.aggregate for t in turns)),
        _percent(ratios(rounds)[WAYS[way]]),
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.1f} %"


def _span(shares: Iterator[float]) -> str:
    values = sorted(shares)
    return f"{values[0] * 100:.0f} to {values[-1] * 100:.0f} %"


if __name__ == "__main__":
    main()
