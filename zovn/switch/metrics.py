"""The switch's Prometheus metrics, asked for at each scrape."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from common.errors import ConfigError
from zovn.errors import ListenError, SwitchAway
from zovn.switch.control import PortReport, SwitchReport, status

DEFAULT_LISTEN: Final = "127.0.0.1:9171"
PATIENCE_S: Final = 5.0
"""Less than Prometheus waits (10 s): a switch that hangs is then reported as one that is away."""
_SECOND: Final = 1e-9
_PORT: Final = ["port"]
_THREAD: Final = ["thread"]


class Counted(NamedTuple):
    """A counter of the switch as a metric."""

    metric: str
    """Its name without `zovn_port_`, and without `_total`."""
    meaning: str
    now: bool = False
    """Whether it is a present value, which may fall."""
    unit: float = 1.0
    """What one of it is in the metric's unit."""


COUNTED: Final = {
    "in": Counted("in_frames", "Frames from the port"),
    "in_bytes": Counted("in_bytes", "Bytes from the port"),
    "copies": Counted("copies", "Further copies of its flooded frames"),
    "delivered": Counted("delivered_frames", "Of its frames and copies, those delivered"),
    "held": Counted("held_frames", "Its frames that wait in its own ring", now=True),
    "parked": Counted("parked_frames", "Copies of its flooded frames that wait", now=True),
    "out": Counted("out_frames", "Frames to the port"),
    "out_bytes": Counted("out_bytes", "Bytes to the port"),
    "marked": Counted("marked_frames", "Frames to the port that were marked (ECN)"),
    "finished": Counted(
        "finished_frames", "Frames to the port with checksums or headers that the switch made"
    ),
    "waiting": Counted("waiting_frames", "Frames that wait for the port", now=True),
    "waiting_bytes": Counted("waiting_bytes", "Bytes that wait for the port", now=True),
    "blocked_ns": Counted(
        "blocked_seconds",
        "Time in which frames waited for the port and it took none; of a wire, over all classes",
        unit=_SECOND,
    ),
    "longest_ns": Counted(
        "longest_block_seconds", "The longest of such times", now=True, unit=_SECOND
    ),
    "stalls": Counted("stalls", "Times that the port took nothing for longer than `stall`"),
    "moves": Counted("moves", "Addresses that moved to the port"),
    "not_learned": Counted("not_learned_frames", "Frames with an address that was not learned"),
    "beyond": Counted("beyond_frames", "Frames from a wire beyond the buffer of their class"),
    "unsound": Counted("unsound_frames", "Frames from a wire that are not sound"),
    "pauses_sent": Counted("pfc_sent_frames", "PFC frames to the peer of a wire"),
    "pauses": Counted("pfc_received_frames", "PFC frames from the peer of a wire"),
    "paused_ns": Counted(
        "paused_seconds", "Time in which the peer of a wire paused a class", unit=_SECOND
    ),
}
"""Metrics by the names that the program gives its counters (zovn/core/program/report.c)."""


class SwitchCollector(Collector):
    """Asks the switch at every scrape."""

    def __init__(self, ask: Callable[[], SwitchReport]) -> None:
        """Take what returns the present state, or raises SwitchAway."""
        self._ask = ask

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the switch and of each port; only zovn_up while it is away."""
        try:
            report = self._ask()
        except SwitchAway:
            yield GaugeMetricFamily("zovn_up", "Whether the switch answers", value=0)
            return
        yield GaugeMetricFamily("zovn_up", "Whether the switch answers", value=1)
        yield from _of_switch(report)
        yield from _states(report.ports)
        yield from (_counters(report.ports, key, one) for key, one in COUNTED.items())
        yield from _drops(report.ports)


def _of_switch(report: SwitchReport) -> Iterator[Metric]:
    yield CounterMetricFamily("zovn_naps", "Sleeps of the forwarding threads", value=report.naps)
    missed = "Sleeps that a notification should have ended earlier"
    yield CounterMetricFamily("zovn_missed_naps", missed, value=report.missed)
    yield GaugeMetricFamily("zovn_lossy_classes", "Classes with a limit", value=report.lossy)
    yield GaugeMetricFamily("zovn_threads", "Threads that forward", value=report.threads)
    yield from _of_threads(report)


def _of_threads(report: SwitchReport) -> Iterator[Metric]:
    used = CounterMetricFamily(
        "zovn_thread_cpu_seconds", "CPU time of a forwarding thread", labels=_THREAD
    )
    for number, cpu_ns in enumerate(report.cpu_ns):
        used.add_metric([str(number)], cpu_ns * _SECOND)
    held = Counter(port.thread for port in report.ports)
    ports = GaugeMetricFamily(
        "zovn_thread_ports", "Attached ports of a forwarding thread", labels=_THREAD
    )
    for number in range(report.threads):
        ports.add_metric([str(number)], held[number])
    yield from (used, ports)


def _states(ports: Iterable[PortReport]) -> Iterator[Metric]:
    attached = GaugeMetricFamily("zovn_port_attached", "Whether a peer is attached", labels=_PORT)
    attachments = CounterMetricFamily("zovn_port_attachments", "Peers so far", labels=_PORT)
    stalled = GaugeMetricFamily("zovn_port_stalled", "Whether frames to it drop", labels=_PORT)
    fault = GaugeMetricFamily(
        "zovn_port_fault", "1 for the fault that stopped the port", labels=[*_PORT, "fault"]
    )
    lost = CounterMetricFamily(
        "zovn_port_lost_frames", "Frames that were lost at the interface of the port", labels=_PORT
    )
    for port in ports:
        if port.lost is not None:
            lost.add_metric([port.name], port.lost)
        attached.add_metric([port.name], port.attached)
        attachments.add_metric([port.name], port.attachments)
        stalled.add_metric([port.name], port.stall)
        if port.fault != "none":
            fault.add_metric([port.name, port.fault], 1)
    yield from (attached, attachments, stalled, fault, lost)


def _counters(ports: Iterable[PortReport], key: str, one: Counted) -> Metric:
    kind = GaugeMetricFamily if one.now else CounterMetricFamily
    family = kind(f"zovn_port_{one.metric}", one.meaning, labels=_PORT)
    for port in ports:
        family.add_metric([port.name], port.counters[key] * one.unit)
    return family


def _drops(ports: Iterable[PortReport]) -> Iterator[Metric]:
    congestion = CounterMetricFamily(
        "zovn_port_congestion_drops", "Frames above a lossy class's limit", labels=_PORT
    )
    others = CounterMetricFamily(
        "zovn_port_drops", "Dropped frames for other reasons", labels=[*_PORT, "reason"]
    )
    for port in ports:
        for reason, count in port.drops.items():
            if reason == "congestion":
                congestion.add_metric([port.name], count)
            else:
                others.add_metric([port.name, reason], count)
    yield from (congestion, others)


@contextmanager
def served(control: Path, listen: str) -> Iterator[str]:
    """Serve the metrics of the switch at a control socket over HTTP; yield their address.

    Raises:
        ConfigError: `listen` is no address.
        ListenError: it cannot be listened on, perhaps not yet.
    """
    host, number = _address(listen)
    registry = CollectorRegistry()
    registry.register(SwitchCollector(lambda: status(control, PATIENCE_S)))
    try:
        server, thread = start_http_server(number, host, registry)
    except OSError as error:
        raise ListenError(listen, error.strerror or str(error)) from error
    try:
        yield f"http://{listen.rpartition(':')[0]}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _address(listen: str) -> tuple[str, int]:
    host, _, number = listen.rpartition(":")
    if not host or not number.isdecimal() or int(number) > 65535:
        raise ConfigError("--listen", f"{listen!r} is no address", f"e.g. {DEFAULT_LISTEN}")
    return host.strip("[]"), int(number)
