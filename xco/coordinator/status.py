"""A coordinator's state, from its loop's statistics: for the command line and Prometheus."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from threading import Thread
from typing import Final
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from xco.coordinator.config import CoordinatorConfig, endpoint
from xco.coordinator.locations_file import problem_of
from xco.coordinator.vm_status import VmStatus, metrics_of, read_vms, waiting
from xco.errors import ControllerError
from xco.protocol.stats import Snapshot, read_statistics
from xco.protocol.wire import CONTROLLER

MODES: Final = ("fallback", "closed", "slice", "rate", "open", "unshaped", "hygenicc")
"""Modes of gates, by the number that the loop publishes."""
STALE_NS: Final = 1_000_000_000
"""Older statistics belong to a loop that no longer runs; it writes ten times a second."""
_OFFSET: Final = 2**64
_GAUGES: Final = frozenset(
    {
        "mode",
        "classifier",
        "paced",
        "host",
        "joined",
        "epoch",
        "sequence",
        "silence_ns",
        "clock_offset_ns",
        "clock_way_ns",
        "gate_late_ns",
        "gate_late_max_ns",
        "gate_set_max_ns",
        "flows",
        "flow_ready_ns",
        "flow_ready_max_ns",
        "places_here",
        "places_there",
        "spin_ns",
        "offers",
        "shared_bps",
        "destinations_refused",
        "vms",
        "vms_beyond",
    }
)


@dataclass(frozen=True)
class FlowStatus:
    """A V2V flow with a queue of its own; `host` is None outside the topology."""

    source: str
    destination: str
    host: str | None
    open_bps: int
    sent_bytes: int
    backlog_bytes: int


@dataclass(frozen=True)
class SourceStatus:
    """What came from one host since the loop began; `host` is None for all others together."""

    host: str | None
    packets: int
    bytes: int
    marks: int
    """Of the packets, those that met congestion on the way (ECN)."""
    offer_bps: int = 0
    """What this host offered it last, to live without a controller; 0: nothing."""
    offered_bps: int = 0
    """What it offered this host last."""
    refused: bool = False
    """Whether this host refuses new connections to it now."""
    attempts_refused: int = 0
    """Attempts to connect to it that this host refused."""


@dataclass(frozen=True)
class CoordinatorStatus:
    """The state of a coordinator; `counters` are its numbers as published."""

    interface: str
    mode: str
    running: bool
    joined: bool
    epoch: int
    flows: tuple[FlowStatus, ...]
    counters: dict[str, int]
    sources: tuple[SourceStatus, ...] = ()
    """Where congestion marks are counted."""
    vms: tuple[VmStatus, ...] = ()
    """Listed VMs that are here."""
    problem: str = ""
    """What waits for a restart or is not written; "" if nothing."""


def status(config: CoordinatorConfig) -> CoordinatorStatus:
    """Return the state of the coordinator of this configuration.

    Raises:
        ControllerError: it has published nothing yet.
    """
    snapshot = read_statistics(config.statistics)
    values = dict(snapshot.values)
    running = snapshot.age_ns(time.monotonic_ns()) < STALE_NS
    mode = MODES[values["mode"]] if running else "unshaped"
    values["clock_offset_ns"] = _signed(values["clock_offset_ns"])
    flows = tuple(_flows(config, snapshot)) if running else ()
    joined = running and bool(values["joined"])
    sources = tuple(_sources(config)) if running and config.table.marks != "off" else ()
    return CoordinatorStatus(
        config.table.interface,
        mode,
        running,
        joined,
        values["epoch"],
        flows,
        values,
        sources,
        tuple(read_vms(config.vms_file, STALE_NS)) if running and config.vms else (),
        "; ".join(filter(None, _problems(config))) if running else "",
    )


def _problems(config: CoordinatorConfig) -> Iterator[str]:
    yield waiting(config.vms, config.plain_file)
    yield problem_of(config)


def running_pid(config: CoordinatorConfig) -> int | None:
    """Return the process of the loop that publishes where this configuration says, if any."""
    try:
        snapshot = read_statistics(config.statistics)
    except ControllerError:
        return None  # it uses another runtime_dir, or has just started
    return snapshot.pid if snapshot.age_ns(time.monotonic_ns()) < STALE_NS else None


def _signed(value: int) -> int:
    return value - _OFFSET if value >= _OFFSET // 2 else value


def _flows(config: CoordinatorConfig, snapshot: Snapshot) -> Iterator[FlowStatus]:
    hosts = config.topology.hosts
    for row in snapshot.rows:
        yield FlowStatus(
            _address(row["source_high"], row["source_low"]),
            _address(row["destination_high"], row["destination_low"]),
            None if row["host"] == CONTROLLER else hosts[row["host"]].name,
            row["open_bps"],
            row["sent_bytes"],
            row["backlog_bytes"],
        )


def _sources(config: CoordinatorConfig) -> Iterator[SourceStatus]:
    """Yield what the loop counts of each host; nothing while it does not."""
    try:
        snapshot = read_statistics(config.marks_file)
    except ControllerError:
        return
    if snapshot.age_ns(time.monotonic_ns()) >= STALE_NS:
        return  # of an earlier loop: this one does not count
    hosts = dict(enumerate(host.name for host in config.topology.hosts))
    for row in snapshot.rows:
        number = row["host"]
        name = None if number == CONTROLLER else hosts.get(number, f"host {number}")
        counted = row["packets"], row["bytes"], row["marks"]
        refused = bool(row["refused"]), row["attempts_refused"]
        yield SourceStatus(name, *counted, row["offer_bps"], row["offered_bps"], *refused)


def _address(high: int, low: int) -> str:
    """Return an address; 0 means any: a BPF classifier tells hosts apart, not addresses."""
    if high == low == 0:
        return "any"
    address = ip_address((high << 64 | low).to_bytes(16, "big"))
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


class Metrics(Collector):
    """The loop's statistics as Prometheus metrics, read at each scrape."""

    def __init__(self, config: CoordinatorConfig) -> None:
        self._config = config

    def collect(self) -> Iterator[Metric]:
        """Yield one metric for each number, and one for each mode."""
        labels = ["interface"]
        try:
            report = status(self._config)
        except ControllerError:
            return  # the loop has not published yet
        interface = [report.interface]
        mode = GaugeMetricFamily(
            "xco_coordinator_mode", "1 for how gates stand.", labels=[*labels, "mode"]
        )
        for name in MODES:
            mode.add_metric([*interface, name], float(name == report.mode))
        yield mode
        for key, value in report.counters.items():
            if key != "mode":
                kind = GaugeMetricFamily if key in _GAUGES else CounterMetricFamily
                family = kind(f"xco_coordinator_{key}", f"{key} of the loop.", labels=labels)
                family.add_metric(interface, value)
                yield family
        yield from _of_sources(report)
        yield from metrics_of(report.interface, report.vms)


def _of_sources(report: CoordinatorStatus) -> Iterator[Metric]:
    """Yield the counters by source, the label being "other" for all that are not listed."""
    helps = {
        "packets": "Packets that came from a source.",
        "bytes": "Bytes that came from a source.",
        "marks": "Packets from a source that met congestion (ECN).",
    }
    for key, text in helps.items():
        family = CounterMetricFamily(
            f"xco_coordinator_source_{key}", text, labels=["interface", "source"]
        )
        for source in report.sources:
            family.add_metric([report.interface, source.host or "other"], getattr(source, key))
        yield family
    yield from _of_offers(report)


def _of_offers(report: CoordinatorStatus) -> Iterator[Metric]:
    """Yield what hosts offer each other, where they live without a controller."""
    helps = {
        "offer_bps": "What this host offers a source to send, bits/s.",
        "offered_bps": "What a source offers this host to send, bits/s.",
    }
    for key, text in helps.items():
        family = GaugeMetricFamily(
            f"xco_coordinator_source_{key}", text, labels=["interface", "source"]
        )
        for source in report.sources:
            if source.host:
                family.add_metric([report.interface, source.host], getattr(source, key))
        yield family
    yield from _of_refusals(report)


def _of_refusals(report: CoordinatorStatus) -> Iterator[Metric]:
    """Yield to which hosts connections are refused."""
    labels = ["interface", "destination"]
    now = GaugeMetricFamily(
        "xco_coordinator_destination_refused",
        "1 while new connections to a host are refused.",
        labels=labels,
    )
    attempts = CounterMetricFamily(
        "xco_coordinator_destination_attempts_refused",
        "Attempts to connect to a host that were refused.",
        labels=labels,
    )
    for source in report.sources:
        if source.host:
            now.add_metric([report.interface, source.host], float(source.refused))
            attempts.add_metric([report.interface, source.host], source.attempts_refused)
    yield from (now, attempts)


class Served:
    """Serve metrics over HTTP during a `with` block; do nothing if none are configured.

    Raises ControllerError if the address cannot be listened on, perhaps not yet: retry later.
    """

    def __init__(self, config: CoordinatorConfig) -> None:
        self._config = config
        self._server: WSGIServer | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> None:
        if self._config.table.metrics is None:
            return
        address, port = endpoint(self._config.table.metrics, self._config.file)
        registry = CollectorRegistry()
        registry.register(Metrics(self._config))
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except OSError as error:
            what = f"{self._config.file}: coordinator.metrics"
            problem = f"{self._config.table.metrics}: {error.strerror or error}"
            fix = "name a free address of this machine"
            raise ControllerError(what, problem, fix) from error

    def __exit__(self, *_: object) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
