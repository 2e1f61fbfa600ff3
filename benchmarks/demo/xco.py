"""make demo-xco: a shared link collapses without coordination, and recovers with it.

Five hosts send to one through a shallow-buffered port: first five TCP streams, then two of them are
UDP messages of 64 KB. XCo is switched on, then its controller is killed and restarted.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from benchmarks.demo.xco_plot import plot
from benchmarks.demo.xco_watch import SAMPLE_S, Phase, Recording, Watcher, watcher
from benchmarks.xco.rig import XcoRig, rig
from lab.fabric.fabric import Fabric
from lab.fabric.plan import parse_bitrate
from lab.system import requirements
from lab.traffic import roles
from xco.core_files import program
from xco.errors import CoreError

BOTTLENECK = "200Mbps"
BUFFER_BYTES = 32_000
SENDERS = 5
UDP_SENDERS = 2
OUTPUT = Path("build/demo-xco")


@dataclass(frozen=True)
class Line:
    """One line of the summary: one phase, once it has settled."""

    phase: str
    goodput_share: float
    """Of the link."""
    wire_share: float
    tcp_flow_bps: float
    """The mean TCP stream."""
    udp_flow_bps: float
    drops_per_s: float


def story(xco: XcoRig, watch: Watcher, pace: float) -> None:
    """Run the demo; `pace` is 1 for the whole length."""
    fabric = xco.fabric
    mixed, alone = fabric.senders[:UDP_SENDERS], fabric.senders[UDP_SENDERS:]
    to = fabric.receivers[0].address
    with ExitStack() as stack:
        xco.go("uncoordinated")
        streams = {
            host: stack.enter_context(roles.send_stream(fabric.place(host), to))
            for host in (*mixed, *alone)
        }
        watch.phase("five TCP streams without coordination")
        watch.wait(6 * pace)
        watch.phase("two of the five send UDP messages: collapse")
        for host in mixed:
            streams[host].stop()
            stack.enter_context(roles.send_messages(fabric.place(host), to))
        watch.wait(10 * pace)
        watch.phase("XCo coordinates: timeslices")
        xco.go("timeslice")
        watch.wait(16 * pace)
        watch.phase("the controller is killed: safe shares")
        xco.kill_controller()
        watch.wait(6 * pace)
        watch.phase("the controller is back")
        xco.start_controller()
        watch.wait(8 * pace)


def summary(recording: Recording) -> list[Line]:
    """Return the results of each phase in its last half, when it has settled."""
    lines = []
    ends = [phase.begins_s for phase in recording.phases[1:]] + [float("inf")]
    last = recording.samples[-1].at_s
    for phase, end in zip(recording.phases, ends, strict=True):
        middle = (phase.begins_s + min(end, last)) / 2
        lines.append(_line(recording, phase, middle, end))
    return lines


def _line(recording: Recording, phase: Phase, begin: float, end: float) -> Line:
    samples = [s for s in recording.samples if begin <= s.at_s - SAMPLE_S and s.at_s <= end]
    samples = samples or recording.samples[-1:]
    count, link = len(samples), recording.link_bps

    def mean_flow(kind: Sequence[tuple[float, ...]]) -> float:
        flows = [sum(flow) / count for flow in zip(*kind, strict=True)]
        sending = [flow for flow in flows if flow > 0]
        return sum(sending) / len(sending) if sending else 0.0

    return Line(
        phase=phase.words,
        goodput_share=sum(s.goodput_bps for s in samples) / count / link,
        wire_share=sum(s.wire_bps for s in samples) / count / link,
        tcp_flow_bps=mean_flow([s.tcp_bps for s in samples]),
        udp_flow_bps=mean_flow([s.udp_bps for s in samples]),
        drops_per_s=sum(s.drops for s in samples) / (count * SAMPLE_S),
    )


def _print_summary(console: Console, lines: Sequence[Line]) -> None:
    table = Table(title="Summary", box=None, header_style="bold")
    headings = ("phase", "goodput", "wire", "a TCP stream", "a UDP sender", "drops/s")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "phase" else "right")
    for line in lines:
        rates = (f"{bps / 1e6:.1f} Mb/s" for bps in (line.tcp_flow_bps, line.udp_flow_bps))
        shares = (f"{share * 100:.0f}%" for share in (line.goodput_share, line.wire_share))
        table.add_row(line.phase, *shares, *rates, f"{line.drops_per_s:.0f}")
    console.print(table)
    console.print(f"{OUTPUT / 'demo-xco.png'} shows it over time")
    console.print(f"{OUTPUT / 'summary.json'} holds this summary")


def _require(parser: argparse.ArgumentParser) -> None:
    missing = requirements.missing()
    try:
        program("xco-controller"), program("xco-coordinator")
    except CoreError as error:
        missing.append(str(error))
    if missing:
        parser.exit(1, "\n".join(missing) + "\n")


def main() -> None:
    """Run the demo, and leave summary.json and demo-xco.png in build/demo-xco."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bottleneck", default=BOTTLENECK)
    parser.add_argument("--pace", type=float, default=1.0, help="of the story; 0.5 is half as long")
    options = parser.parse_args()
    _require(parser)
    console = Console(highlight=False)
    recording = Recording(parse_bitrate("bottleneck", options.bottleneck))
    with Fabric("xcodemo") as fabric, ExitStack() as stack:
        fabric.incast(SENDERS, recording.link_bps, BUFFER_BYTES)
        xco = stack.enter_context(rig(fabric))
        live = stack.enter_context(
            Live(console=console, auto_refresh=False, transient=not console.is_terminal)
        )
        story(xco, stack.enter_context(watcher(fabric, recording, live)), options.pace)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    lines = summary(recording)
    (OUTPUT / "summary.json").write_text(json.dumps([asdict(line) for line in lines], indent=2))
    plot(recording, OUTPUT / "demo-xco.png")
    _print_summary(console, lines)
    collapsed, coordinated = lines[1].goodput_share, lines[2].goodput_share
    sys.exit(coordinated < 2 * collapsed)


if __name__ == "__main__":
    main()
