"""Watch the demo of XCo: sample what arrives, and show the newest sample as bars."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lab.fabric.fabric import Fabric
from lab.traffic import roles
from lab.traffic.counts import BySource, MessagesReceived, StreamReceived, shares_bps
from lab.traffic.program import Traffic

SAMPLE_S = 0.25
BAR = 40


@dataclass(frozen=True)
class Sample:
    """What arrived in a quarter of a second, in bits/s."""

    at_s: float
    tcp_bps: tuple[float, ...]
    """Of each sender, in whole bytes of its stream."""
    udp_bps: tuple[float, ...]
    """Of each sender, in whole messages."""
    wire_bps: float
    drops: int

    @property
    def goodput_bps(self) -> float:
        """Application goodput."""
        return sum(self.tcp_bps) + sum(self.udp_bps)


@dataclass(frozen=True)
class Phase:
    """A part of the demo."""

    words: str
    begins_s: float


@dataclass
class Recording:
    """All observations of the demo."""

    link_bps: int
    samples: list[Sample] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)


class Watcher:
    """Sample and show what arrives, in a separate thread."""

    def __init__(self, fabric: Fabric, recording: Recording, live: Live) -> None:
        self._fabric, self._recording, self._live = fabric, recording, live
        to = fabric.place(fabric.receivers[0])
        self._streams: Traffic[StreamReceived] = roles.sink_streams(to)
        self._messages: Traffic[MessagesReceived] = roles.sink_messages(to)
        self._began = time.monotonic()
        self._over = threading.Event()
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def phase(self, words: str) -> None:
        """Begin a part of the demo."""
        self._recording.phases.append(Phase(words, time.monotonic() - self._began))

    def wait(self, seconds: float) -> None:
        """Wait.

        Raises:
            Exception: the error that ended the sampling.
        """
        self._over.wait(seconds)
        if self._problem is not None:
            raise self._problem

    def close(self) -> None:
        """End the sampling."""
        self._over.set()
        self._thread.join()
        self._streams.stop()
        self._messages.stop()

    def _run(self) -> None:
        try:
            before = self._counts()
            while not self._over.wait(SAMPLE_S):
                now = self._counts()
                self._recording.samples.append(self._sample(before, now))
                before = now
                self._live.update(picture(self._recording), refresh=True)
        except Exception as problem:  # noqa: BLE001  the main thread raises it again
            self._problem = problem
            self._over.set()

    def _counts(self) -> tuple[float, int, int, BySource, BySource]:
        now = time.monotonic() - self._began
        wire, drops = self._fabric.wire_bytes(), self._fabric.drops()
        return now, wire, drops, self._streams.counts(), self._messages.counts()

    def _sample(
        self,
        before: tuple[float, int, int, BySource, BySource],
        now: tuple[float, int, int, BySource, BySource],
    ) -> Sample:
        tcp, udp = (shares_bps(b, a) for b, a in zip(before[3:], now[3:], strict=True))
        addresses = [host.address for host in self._fabric.senders]
        return Sample(
            at_s=now[0],
            tcp_bps=tuple(tcp.get(address, 0.0) for address in addresses),
            udp_bps=tuple(udp.get(address, 0.0) for address in addresses),
            wire_bps=(now[1] - before[1]) * 8 / (now[0] - before[0]),
            drops=now[2] - before[2],
        )


@contextmanager
def watcher(fabric: Fabric, recording: Recording, live: Live) -> Iterator[Watcher]:
    """Yield a watcher, and end it."""
    made = Watcher(fabric, recording, live)
    try:
        yield made
    finally:
        made.close()


def picture(recording: Recording) -> Group:
    """Return the newest sample as bars."""
    sample, link = recording.samples[-1], recording.link_bps
    table = Table(box=None, pad_edge=False, show_header=False)
    for index, (tcp, udp) in enumerate(zip(sample.tcp_bps, sample.udp_bps, strict=True), 1):
        table.add_row(f"h{index}", _bar(tcp, link, "green"), f"{tcp / 1e6:6.1f} Mb/s TCP")
        if udp > 0:
            table.add_row("", _bar(udp, link, "yellow"), f"{udp / 1e6:6.1f} Mb/s UDP")
    good = f"{sample.goodput_bps / 1e6:6.1f} Mb/s reach applications"
    table.add_row("all", _bar(sample.goodput_bps, link, "bold cyan"), good)
    wire = f"{sample.wire_bps / 1e6:6.1f} Mb/s on the wire, {sample.drops} packets dropped"
    table.add_row("link", _bar(sample.wire_bps, link, "white"), wire)
    words = recording.phases[-1].words if recording.phases else "setting up"
    return Group(Text(f"{sample.at_s:5.1f} s  {words}", style="bold"), table)


def _bar(rate_bps: float, link_bps: int, style: str) -> Text:
    full = min(BAR, round(rate_bps / link_bps * BAR))
    return Text("█" * full + "·" * (BAR - full), style=style)
