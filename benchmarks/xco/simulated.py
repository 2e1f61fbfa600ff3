"""The simulator against the lab on the small set-ups of the paper (section 5): do both agree?

Senders of 64 KB messages, as fast as their links allow: several to one port (figure 1a), and each
to a separate receiver over one uplink (figure 1b). The lab has real packets, and the simulator gets
its rates, buffers and slices.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle

from benchmarks.xco.rig import Way, XcoRig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    Options,
    Seen,
    Window,
    options,
    percent,
    show,
    side_by_side,
)
from lab.fabric.fabric import Fabric
from lab.traffic import roles
from lab.traffic.counts import rate_bps
from xco.simulate import run as simulate
from xco.simulate.options import Options as Scenario
from xco.simulate.options import overridden, scenario_of

FRAME_BYTES = 1_514
SETUPS = ("incast", "uplink")
SENDERS = (1, 2, 3, 5)
SHORT = (2, 5)


@dataclass(frozen=True)
class Compared:
    """One set-up in one way, in the lab and simulated; shares of the bottleneck."""

    setup: str
    senders: int
    way: Way
    lab_loss: float
    """Of the frames that arrived at the shared port."""
    simulated_loss: float
    lab_wire: float
    simulated_wire: float
    lab_messages: float
    """In whole messages."""
    simulated_messages: float
    seen: Seen


def lab(xco: XcoRig, link_bps: int, seconds: float) -> tuple[float, float, float, Seen]:
    """Make all senders send; return loss, wire and whole messages, the last two of the link."""
    fabric = xco.fabric
    with ExitStack() as stack:
        sinks = [
            stack.enter_context(roles.sink_messages(fabric.place(host)))
            for host in fabric.receivers
        ]
        for host, to in zip(fabric.senders, cycle(fabric.receivers)):
            stack.enter_context(roles.send_messages(fabric.place(host), to.address))
        time.sleep(SETTLING_S)
        before, window = [sink.counts() for sink in sinks], Window(fabric)
        time.sleep(seconds)
        seen, after = window.close(), [sink.counts() for sink in sinks]
    goodput_bps = sum(rate_bps(b, a) for b, a in zip(before, after, strict=True))
    arrived = seen.wire_bps * seconds / 8 / FRAME_BYTES
    loss = seen.drops / max(1.0, seen.drops + arrived)
    return loss, seen.wire_bps / link_bps, goodput_bps / link_bps, seen


def simulated(setup: str, senders: int, way: Way, chosen: Options) -> tuple[float, float, float]:
    """Return the same from the simulator."""
    rate = f"{chosen.bottleneck_bps}bps"
    given = {
        "setup": setup,
        "senders": senders,
        "strategy": way,
        "edge": rate,
        "uplink": rate,
        "buffer": f"{BUFFER_BYTES // 1000}KB",
        "slice": chosen.settings.controller["slice"],
        "seconds": 2.0,
        "slot": "200us",
    }
    result = simulate(scenario_of(overridden(Scenario(), given)))
    link_bps = chosen.bottleneck_bps
    return result.loss, result.goodput_bps / link_bps, result.application_bps / link_bps


def run(chosen: Options) -> Iterator[Compared]:
    """Measure and simulate each set-up with each number of senders in each way."""
    for setup in SETUPS:
        for senders in SHORT if chosen.short else SENDERS:
            yield from compare(setup, senders, chosen)


def compare(setup: str, senders: int, chosen: Options) -> Iterator[Compared]:
    """Measure one set-up in each way, and simulate it."""
    link_bps = chosen.bottleneck_bps

    def build(fabric: Fabric) -> None:
        if setup == "incast":
            fabric.incast(senders, link_bps, BUFFER_BYTES)
        else:
            fabric.uplink(senders, link_bps, link_bps, BUFFER_BYTES)

    def rows(xco: XcoRig, way: Way) -> Iterator[Compared]:
        loss, wire, messages, seen = lab(xco, link_bps, chosen.seconds)
        other_loss, other_wire, other_messages = simulated(setup, senders, way, chosen)
        yield Compared(
            *(setup, senders, way, loss, other_loss, wire, other_wire, messages),
            *(other_messages, seen),
        )

    return side_by_side("xcosimulated", chosen, build, rows)


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 2.0, "100Mbps")
    rows = list(run(chosen))
    columns = {
        "set-up": lambda row: row.setup,
        "senders": lambda row: str(row.senders),
        "way": lambda row: row.way,
        "loss, lab": lambda row: percent(row.lab_loss),
        "simulated": lambda row: percent(row.simulated_loss),
        "wire, lab": lambda row: percent(row.lab_wire),
        "simulated ": lambda row: percent(row.simulated_wire),
        "messages, lab": lambda row: percent(row.lab_messages),
        " simulated": lambda row: percent(row.simulated_messages),
        "CPU idle": lambda row: percent(row.seen.cpu_idle),
    }
    worst = max((abs(row.lab_loss - row.simulated_loss) for row in rows), default=0.0)
    show(chosen, rows, columns, largest_difference_of_loss=worst)


if __name__ == "__main__":
    main()
